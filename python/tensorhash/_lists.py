"""Converts Python lists and numbers to arrays.

An array must have the table's dtype. A list has no dtype, so it is converted, and a value that does
not fit is an error. Floats are rounded to the dtype; integers in keys never are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._arrays import without_arrays
from tensorhash._dtypes import bfloat16_bits

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_BFLOAT16_MAX = 3.3895313892515355e38
_INTEGERS = (bool, int, np.integer, np.bool_)
_NUMBERS = (*_INTEGERS, float, np.floating)


def array_of(values: Any, dtype: str, argument: str, exact: bool = False) -> Any:
    """An array of `dtype` (for bfloat16 a core tensor) from a list or a number.

    With `exact`, an integer that a float dtype would round is a ValueError.
    """
    values = without_arrays(values, argument)
    natural = _as_numpy(values, argument)
    if natural.size == 0:
        natural = natural.astype(np.uint8)  # NumPy reads an empty list as float64
    if natural.dtype.kind == "O":
        _require_numbers(natural, argument)
    if dtype in _FLOATS:
        if exact:
            _require_unrounded(values, natural, dtype, argument)
        return _floats(natural, dtype, argument)
    if natural.dtype.kind in "fO":
        natural = _exact_integers(values, dtype, argument)
    low, high = (0, 1) if dtype == "bool" else _limits(dtype)
    _require_range(natural, low, high, dtype, argument)
    return natural.astype(dtype)


def rows_of(
    values: Any, dtype: str, element_shape: tuple[int, ...], argument: str, exact: bool = False
) -> Any:
    """`array_of` for a batch. An empty list gives zero rows of the element shape."""
    array = array_of(values, dtype, argument, exact)
    if len(values) > 0:
        return array
    empty = np.empty((0, *element_shape), dtype="uint16" if dtype == "bfloat16" else dtype)
    return _core.Tensor.wrap(empty, argument, dtype) if dtype == "bfloat16" else empty


def natural_array(values: Any, argument: str) -> Any:
    """The NumPy array of a list of numbers; ValueError if NumPy would round an integer."""
    values = without_arrays(values, argument)
    natural = _as_numpy(values, argument)
    if natural.dtype.kind == "O":
        _require_numbers(natural, argument)
    if natural.dtype.kind != "O" and natural.dtype != np.float64:
        return natural
    # NumPy gives float64 for a mix of integers and floats, and of int64 and larger integers.
    if natural.dtype.kind == "O" or _may_be_rounded(natural, "float64").any():
        exact = np.asarray(values, dtype=object)
        if all(isinstance(value, _INTEGERS) for value in exact.flat):
            return _wide_integers(exact, argument)
        _require_unrounded(values, natural, "float64", argument)
    return natural.astype(np.float64, copy=False)


def _as_numpy(values: Any, argument: str) -> Any:
    """The NumPy array of a list, of kind "O" if no dtype holds all its elements."""
    try:
        natural = np.asarray(values)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise ValueError(f"{argument}: expected rows of numbers: {error}") from error
        raise ValueError(f"{argument}: expected rows of equal length, got a ragged list") from None
    except OverflowError:
        natural = np.asarray(values, dtype=object)
    if natural.dtype.kind not in "biufO":
        raise TypeError(f"{argument}: expected numbers, got {_first_non_number(values)}")
    return natural


def _first_non_number(values: Any) -> str:
    for value in np.asarray(values, dtype=object).flat:
        if not isinstance(value, _NUMBERS):
            return f"{value!r}, a {type(value).__name__}"
    return "something else"


def _elements(array: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    return ((index, array[index]) for index in np.ndindex(array.shape))


def _require_numbers(natural: Any, argument: str) -> None:
    """TypeError for elements such as None, which NumPy would turn into NaN."""
    for index, value in _elements(natural):
        if isinstance(value, _NUMBERS):
            continue
        if isinstance(value, (list, tuple)):
            raise ValueError(f"{argument}: expected rows of equal length, got a ragged list")
        null = "; drop such rows first" if value is None or _is_missing(value) else ""
        raise TypeError(
            f"{argument}: {_where(index)}expected a number, got {value!r}, "
            f"a {type(value).__name__}{null}"
        )


def _is_missing(value: Any) -> bool:
    """Whether it is pandas' NA or NaT."""
    return type(value).__name__ in ("NAType", "NaTType")


def _limits(dtype: str) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _where(index: tuple[Any, ...]) -> str:
    return f"row {index[0]}: " if index else ""


def _exact_integers(values: Any, dtype: str, argument: str) -> Any:
    """The list as an array of Python integers, because NumPy may read large ones as floats."""
    exact = np.asarray(values, dtype=object)
    for index, value in _elements(exact):
        if not isinstance(value, _INTEGERS):
            raise TypeError(
                f"{argument}: {_where(index)}expected {dtype}, got the float {value}; "
                f"convert it first, for example with int()"
            )
    return exact


def _wide_integers(exact: Any, argument: str) -> Any:
    """Integers beyond int64 as uint64; ValueError if uint64 cannot hold all of them."""
    for index, value in _elements(exact):
        if not -(2**63) <= value < 2**64:
            raise ValueError(
                f"{argument}: {_where(index)}expected numbers that fit 64 bits, got {value}"
            )
    low, high = min(exact.flat), max(exact.flat)
    if low < 0:
        raise ValueError(
            f"{argument}: expected integers that int64 or uint64 holds, got both {low} and {high}; "
            f"convert them first, for example to rows of two numbers"
        )
    return exact.astype(np.uint64)


def _mantissa_bits(dtype: str) -> int:
    return 8 if dtype == "bfloat16" else int(np.finfo(dtype).nmant) + 1


def _may_be_rounded(natural: Any, dtype: str) -> Any:
    """A mask of the numbers outside the range in which `dtype` holds every integer."""
    limit = 2 ** _mantissa_bits(dtype)
    return (natural >= limit) | (natural <= -limit)


def _require_unrounded(values: Any, natural: Any, dtype: str, argument: str) -> None:
    """ValueError for an integer that `dtype`, a float, does not hold exactly."""
    if natural.dtype.kind == "b":
        return
    large = np.argwhere(_may_be_rounded(natural, dtype))
    if len(large) == 0:
        return
    exact = np.asarray(values, dtype=object)
    for row in large:
        index = tuple(int(i) for i in row)
        value = exact[index]
        if isinstance(value, _INTEGERS) and not _is_exact(int(value), dtype):
            raise ValueError(
                f"{argument}: {_where(index)}expected numbers that {dtype} holds exactly, "
                f"got {value}; pass integers without floats, or round them first with float()"
            )


def _is_exact(value: int, dtype: str) -> bool:
    """Whether an integer fits the mantissa; its range is checked elsewhere."""
    trailing_zeros = (value & -value).bit_length() - 1
    return value.bit_length() - trailing_zeros <= _mantissa_bits(dtype)


def _require_range(natural: Any, low: int, high: int, dtype: str, argument: str) -> None:
    if natural.size == 0:
        return
    if natural.dtype.kind == "b" or (int(natural.min()) >= low and int(natural.max()) <= high):
        return
    for index, number in _elements(natural):
        value = int(number)
        if not low <= value <= high:
            raise ValueError(
                f"{argument}: {_where(index)}{value} does not fit {dtype}, "
                f"which holds {low} to {high}"
            )


def _floats(natural: Any, dtype: str, argument: str) -> Any:
    try:
        wide = natural.astype(np.float64)
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
            f"which holds at most {limit:g}"
        )
    if dtype == "bfloat16":
        return _core.Tensor.wrap(bfloat16_bits(wide.astype(np.float32)), argument, "bfloat16")
    return wide.astype(dtype)
