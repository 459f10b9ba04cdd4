"""Python lists and numbers as arrays of a table's dtype: exact or refused.

Arrays must have the table's dtype; a list has none, so it is converted, and a value that does not
fit is an error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._dtypes import bfloat16_bits

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_BFLOAT16_MAX = 3.3895313892515355e38


def array_of(values: Any, dtype: str, argument: str) -> Any:
    """An array of `dtype` (for bfloat16 a core tensor) with the values of a list or a number."""
    natural = natural_array(values, argument)
    if natural.size == 0:
        natural = natural.astype(np.uint8)  # an empty list has no type of its own
    if dtype in _FLOATS:
        return _floats(natural, dtype, argument)
    if natural.dtype.kind in "fO":
        natural = _exact_integers(values, natural, dtype, argument)
    low, high = (0, 1) if dtype == "bool" else _limits(dtype)
    _require_range(natural, low, high, dtype, argument)
    return natural.astype(dtype)


def rows_of(values: Any, dtype: str, element_shape: tuple[int, ...], argument: str) -> Any:
    """The same for a batch: an empty list has zero rows of any element shape."""
    array = array_of(values, dtype, argument)
    if len(values) > 0:
        return array
    empty = np.empty((0, *element_shape), dtype="uint16" if dtype == "bfloat16" else dtype)
    return _core.Tensor.wrap(empty, argument, dtype) if dtype == "bfloat16" else empty


def natural_array(values: Any, argument: str) -> Any:
    """The array that NumPy makes of a list of numbers; kind "O" if no dtype holds them all."""
    try:
        natural = np.asarray(values)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(f"{argument}: expected rows of equal length, got a ragged list") from None
    except OverflowError:
        natural = np.asarray(values, dtype=object)
    if natural.dtype.kind not in "biufO":
        raise TypeError(f"{argument}: expected numbers, got {_first_stranger(values)}")
    return natural


def _first_stranger(values: Any) -> str:
    for value in np.asarray(values, dtype=object).flat:
        if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
            return f"{value!r}, a {type(value).__name__}"
    return "something else"


def _limits(dtype: str) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _where(index: tuple[Any, ...]) -> str:
    return f"row {index[0]}: " if index else ""


def _exact_integers(values: Any, natural: Any, dtype: str, argument: str) -> Any:
    """The list as Python integers: NumPy reads big ones as floats or objects."""
    exact = np.asarray(values, dtype=object)
    for index in np.ndindex(exact.shape):
        value = exact[index]
        if isinstance(value, (bool, int, np.integer, np.bool_)):
            continue
        if isinstance(value, (float, np.floating)):
            raise TypeError(
                f"{argument}: {_where(index)}expected {dtype}, got the float {value!r}; "
                f"convert it first, for example with int()"
            )
        if isinstance(value, (list, tuple)):
            raise ValueError(f"{argument}: expected rows of equal length, got a ragged list")
        raise TypeError(f"{argument}: {_where(index)}expected a number, got {value!r}")
    return exact


def _require_range(natural: Any, low: int, high: int, dtype: str, argument: str) -> None:
    if natural.size == 0:
        return
    if natural.dtype.kind == "b" or (int(natural.min()) >= low and int(natural.max()) <= high):
        return
    for index in np.ndindex(natural.shape):
        value = int(natural[index])
        if not low <= value <= high:
            raise ValueError(
                f"{argument}: {_where(index)}{value} does not fit {dtype}, "
                f"which holds {low} to {high}"
            )


def _floats(natural: Any, dtype: str, argument: str) -> Any:
    try:
        wide = natural.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{argument}: expected numbers, got {_first_stranger(natural)}") from None
    except OverflowError:
        wide = np.full(natural.shape, math.inf)
    limit = _BFLOAT16_MAX if dtype == "bfloat16" else float(np.finfo(dtype).max)
    too_big = np.argwhere(np.isfinite(wide) & (np.abs(wide) > limit))
    if natural.dtype.kind == "O":
        too_big = np.argwhere(np.abs(natural) > limit)
    if len(too_big):
        index = tuple(int(i) for i in too_big[0])
        raise ValueError(
            f"{argument}: {_where(index)}{natural[index]} does not fit {dtype}, "
            f"whose largest number is {limit:g}"
        )
    if dtype == "bfloat16":
        return _core.Tensor.wrap(bfloat16_bits(wide.astype(np.float32)), argument, "bfloat16")
    return wide.astype(dtype)
