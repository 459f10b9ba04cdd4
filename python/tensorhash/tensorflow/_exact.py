"""Refuses keys that a float dtype would round: two keys could become equal, and one be lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tensorhash._lists import array_of
from tensorhash._types import NumPyArray
from tensorhash.tensorflow._errors import refuse


def require_exact(argument: str, value: Any, dtype: tf.DType) -> None:
    """Raises for an integer, or a float in an array, that the float `dtype` would round.

    Tensors already have the dtype. Single floats of Python and NumPy may be rounded, as in lists.
    """
    if tf.is_tensor(value):
        return
    if isinstance(value, list | tuple):
        _require_list(argument, value, dtype)
    elif isinstance(value, range) or (
        hasattr(value, "__array__") and not isinstance(value, np.generic)
    ):
        _require_array(argument, np.asarray(value), dtype)
    else:
        _require_numbers(argument, value, dtype)


def _require_list(argument: str, value: list[Any] | tuple[Any, ...], dtype: tf.DType) -> None:
    leaves = tf.nest.flatten(value)
    classes = set(map(type, leaves))
    arrays = tuple(
        one for one in classes if hasattr(one, "__array__") and not issubclass(one, np.generic)
    )
    if not arrays:
        _require_numbers(argument, value, dtype)
        return
    for leaf in leaves:
        if isinstance(leaf, arrays):
            require_exact(argument, leaf, dtype)
    _require_numbers(argument, [leaf for leaf in leaves if not isinstance(leaf, arrays)], dtype)


def _require_numbers(argument: str, value: Any, dtype: tf.DType) -> None:
    try:
        array_of(value, dtype.name, argument, exact=True)
    except (TypeError, ValueError) as error:
        raise refuse(str(error)) from error


def _require_array(argument: str, array: NumPyArray, dtype: tf.DType) -> None:
    if array.dtype == object:
        _require_numbers(argument, array.tolist(), dtype)
        return
    if array.dtype.itemsize < dtype.size:  # float64 holds int32; float32 holds int16 and float16
        return
    rounded = _rounded(array, dtype)
    if len(rounded):
        hint = f"cast them with tf.cast({argument}, tf.{dtype.name}) to round them"
        raise refuse(
            f"{argument}: expected numbers that {dtype.name} holds exactly, got {rounded[0]} "
            f"({array.dtype}); {hint}"
        )


def _rounded(array: NumPyArray, dtype: tf.DType) -> list[Any]:
    """The numbers of the array that change in a cast."""
    with np.errstate(over="ignore"):
        cast = array.astype(dtype.as_numpy_dtype)
    if array.dtype.kind == "f":
        changed: NumPyArray = (cast != array) & ~np.isnan(array)
        return list(array[changed].tolist())
    # NumPy would convert integers to floats to compare them; Python compares exactly.
    limit = 2 ** (np.finfo(dtype.as_numpy_dtype).nmant + 1)
    large = (array > limit) | (array < -limit) if array.dtype.kind == "i" else array > limit
    pairs = zip(array[large].tolist(), cast[large].tolist(), strict=True)
    return [before for before, after in pairs if before != after]
