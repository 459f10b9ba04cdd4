"""Converts arrays, lists and numbers to tensors of their own dtype, without a table's dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tensorhash._arrays import take_array
from tensorhash._frameworks import NUMPY, as_numpy, framework_of
from tensorhash._lists import natural_array
from tensorhash.tensorflow._arguments import as_tensor, holds_arrays, without_nulls
from tensorhash.tensorflow._errors import refuse


def natural_tensor(argument: str, value: Any) -> tf.Tensor:
    """Converts `value` in the dtype that TensorFlow gives it; an error if that rounds an integer.

    Python's integers become int32, int64 or uint64, its floats float32. A tuple of 1-D arrays has
    one per column.
    """
    if _holds_words(value):
        return as_tensor(argument, value, tf.string)
    try:
        if holds_arrays(value):
            return _join(argument, value)
        value = without_nulls(argument, value, None)
        value, dtype = _with_dtype(argument, value)
    except (TypeError, ValueError) as error:
        raise refuse(str(error)) from error
    return as_tensor(argument, value, dtype, exact=True)


def _join(argument: str, columns: tuple[Any, ...]) -> tf.Tensor:
    if all(map(tf.is_tensor, columns)):  # tensors of a graph have no values yet
        return tf.stack(columns, axis=-1)
    taken = take_array(columns, None, argument)
    assert taken is not None
    return tf.convert_to_tensor(as_numpy(taken[0]))


def _holds_words(value: Any) -> bool:
    """Whether a column of pandas, polars or Arrow holds strings."""
    source = framework_of(type(value))
    if source is None or source is NUMPY or source.results is not NUMPY:
        return False
    plain = np.asarray(value)
    if plain.dtype == object:
        return any(isinstance(one, str | bytes) for one in plain.flat)
    return plain.dtype.kind in "UST"


def _with_dtype(argument: str, value: Any) -> tuple[Any, tf.DType]:
    """(a value that TensorFlow can convert, the dtype that TensorFlow gives it)."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    try:
        return value, tf.convert_to_tensor(value).dtype
    except (TypeError, ValueError):
        if not isinstance(value, list | tuple):
            raise
    # Integers beyond int64. For any other list, natural_array says what is wrong.
    return value, tf.as_dtype(natural_array(value, argument).dtype)
