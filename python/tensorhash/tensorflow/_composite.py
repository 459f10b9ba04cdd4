"""Converts ragged and sparse tensors to plain ones, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf

from tensorhash.tensorflow._errors import refuse

#: The result of a lookup, with the structure of the keys.
Composite: TypeAlias = "tf.Tensor | tf.RaggedTensor | tf.SparseTensor"


def flat(value: Any) -> Any:
    """The values of a RaggedTensor or SparseTensor as one tensor; other values unchanged."""
    if isinstance(value, tf.RaggedTensor):
        return value.flat_values
    return value.values if isinstance(value, tf.SparseTensor) else value


def rebuild(keys: Any, value_shape: tf.TensorShape) -> Callable[[tf.Tensor], Composite]:
    """A function that restores the structure of `keys` to a tensor with one row per flat key."""
    if isinstance(keys, tf.RaggedTensor):
        restructure: Callable[[tf.Tensor], Composite] = keys.with_flat_values
        return restructure
    if not isinstance(keys, tf.SparseTensor):
        return lambda rows: rows
    if value_shape.rank != 0:
        raise refuse(
            f"keys: expected a dense or a ragged tensor for values of shape {value_shape}, "
            "got a SparseTensor, which holds scalars only; use tf.RaggedTensor.from_sparse(keys)",
        )
    return lambda rows: tf.SparseTensor(keys.indices, rows, keys.dense_shape)
