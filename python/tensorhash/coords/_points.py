"""Parses arguments of the functions on points: arrays of numbers, and numbers per axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorhash._arguments import number
from tensorhash._arrays import is_number, take_array
from tensorhash._frameworks import NUMPY, Framework
from tensorhash._lists import natural_array


def take_numbers(array: Any, argument: str, home: Framework = NUMPY) -> tuple[Any, Framework]:
    """(array for the core, framework of the results); `home` is the framework for lists."""
    taken = take_array(array, None, argument)
    if taken is not None:
        return taken
    return natural_array(array, argument), home


def take_optional(array: Any, argument: str) -> Any:
    """The array for the core, or None."""
    return None if array is None else take_numbers(array, argument)[0]


def shape_of(array: Any) -> tuple[int, ...]:
    """The shape of an array or a buffer."""
    return tuple(array.shape) if hasattr(array, "shape") else np.asarray(array).shape


def rows_and_columns(rows: Any, argument: str) -> tuple[int, int]:
    """(rows, columns) of a matrix; ValueError for other shapes."""
    shape = shape_of(rows)
    if len(shape) != 2:
        raise ValueError(f"{argument}: expected shape (N, D), one row per point, got {shape}")
    return shape[0], shape[1]


def per_axis(values: Any, axes: int, argument: str) -> list[float]:
    """One float per axis, from one number for all axes or one per axis."""
    try:
        if is_number(values) or getattr(values, "shape", None) == ():
            return [number(values, argument)] * axes
        return [number(value, argument) for value in values]
    except TypeError:
        raise TypeError(
            f"{argument}: expected a number or {axes} of them, got {values!r}"
        ) from None
