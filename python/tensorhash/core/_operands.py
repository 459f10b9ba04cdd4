"""Open3D's rules for operands: numbers take the tensor's dtype; two tensors must have the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorhash._arrays import is_number
from tensorhash.core._base import Base, as_numpy, dtype_text, is_bool, is_float


def number_like(value: Any, dtype: Any, argument: str) -> Any:
    """The number as a 0-D array of `dtype`, converted as in C++.

    Integers drop the fraction; for Bool any number but 0 is True. ValueError if an integer dtype
    cannot hold the number.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, complex):
        raise TypeError(f"{argument}: expected a real number, got {plain!r}")
    if is_bool(dtype):
        return np.asarray(bool(plain))
    if is_float(dtype):
        with np.errstate(over="ignore"):
            return np.asarray(plain, dtype=dtype)
    limits = np.iinfo(dtype)
    if not (math.isfinite(plain) and limits.min <= int(plain) <= limits.max):
        raise ValueError(
            f"{argument}: expected a number that {dtype_text(dtype)} holds, "
            f"{limits.min} to {limits.max}, got {plain}"
        )
    return np.asarray(int(plain), dtype=dtype)


def scalar_like(value: Any, dtype: Any, argument: str) -> Any:
    """`number_like` for operators. Like Open3D's, they convert a float to Float32 first.

    They do so for Float64 and integer tensors too. ValueError if that would lose the number: if it
    is out of Float32's range, or a whole number beyond 2^24 that Float32 cannot represent.
    """
    if not isinstance(value, (float, np.floating)):
        return number_like(value, dtype, argument)
    with np.errstate(over="ignore", under="ignore"):
        short = float(np.float32(value))
    out_of_range = short != value and (math.isinf(short) or short == 0)
    whole_lost = dtype.kind in "iu" and short != value and abs(short) >= 2**24
    if whole_lost or (out_of_range and dtype.name == "float64"):
        raise ValueError(
            f"{argument}: expected a number that Float32 holds, because operators convert floats "
            f"to it, got {value!r}; pass o3c.Tensor({value!r}).to(o3c.{dtype.name})"
        )
    return number_like(short, dtype, argument)


def is_operand(value: Any) -> bool:
    """Whether an operator accepts `value`; if not, Python tries the other operand's method."""
    return value is not None and not isinstance(value, (str, bytes, dict, set))


def operand(array: Any, value: Any, argument: str = "other") -> Any:
    """The other operand of an operator on `array`. A number gets the dtype of `array`."""
    if is_number(value):
        return scalar_like(value, array.dtype, argument)
    return broadcasting(array, same_dtype(array, value, argument), argument)


def broadcasting(array: Any, other: Any, argument: str = "other") -> Any:
    """Returns `other`; ValueError unless its shape broadcasts with that of `array`."""
    try:
        np.broadcast_shapes(array.shape, other.shape)
    except ValueError:
        raise ValueError(
            f"{argument}: expected a shape that broadcasts with {array.shape}, got {other.shape}"
        ) from None
    return other


def same_dtype(array: Any, value: Any, argument: str = "other") -> Any:
    """The array of a tensor, list or number; TypeError unless it has the dtype of `array`."""
    other = as_numpy(value, argument)
    if other.dtype.name != array.dtype.name:  # names ignore the byte order
        name = dtype_text(array.dtype)
        shown = argument if isinstance(value, Base) else f"Tensor({argument})"
        raise TypeError(
            f"{argument}: expected {name}, the dtype of the tensor, got {dtype_text(other.dtype)}; "
            f"pass {shown}.to(o3c.{array.dtype.name})"
        )
    return other
