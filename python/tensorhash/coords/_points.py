"""Arguments that the coordinate functions share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorhash._arrays import NUMPY, Framework, is_number, take_array
from tensorhash._lists import natural_array


def take_numbers(array: Any, argument: str, home: Framework = NUMPY) -> tuple[Any, Framework]:
    """(the array as the core reads it, its framework); a list becomes an array of `home`."""
    taken = take_array(array, None, argument)
    if taken is not None:
        return taken
    return natural_array(array, argument), home


def take_optional(array: Any, argument: str) -> Any:
    """The array as the core reads it, or None."""
    return None if array is None else take_numbers(array, argument)[0]


def rows_and_columns(rows: Any, argument: str) -> tuple[int, int]:
    """The shape of a matrix."""
    shape = tuple(rows.shape) if hasattr(rows, "shape") else np.asarray(rows).shape
    if len(shape) != 2:
        raise ValueError(f"{argument}: expected shape (N, D), one row per point, got {shape}")
    return shape[0], shape[1]


def per_axis(values: Any, axes: int, argument: str) -> list[float]:
    """One float per axis, from one number or one each."""
    try:
        if is_number(values) or getattr(values, "shape", None) == ():
            return [number(values, argument)] * axes
        return [number(value, argument) for value in values]
    except TypeError:
        raise TypeError(
            f"{argument}: expected a number or {axes} of them, got {values!r}"
        ) from None


def number(value: Any, argument: str) -> float:
    """A float, from anything that is one number; never from text."""
    if isinstance(value, (str, bytes, bool)) or value is None:
        raise TypeError(f"{argument}: expected a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        raise TypeError(f"{argument}: expected a number, got {value!r}") from None
