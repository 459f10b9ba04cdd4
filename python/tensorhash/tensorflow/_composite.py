"""Ragged and sparse tensors as plain ones, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf

from tensorhash.tensorflow._errors import refuse

#: What a lookup returns: the structure of the keys.
Composite: TypeAlias = "tf.Tensor | tf.RaggedTensor | tf.SparseTensor"


def flat(value: Any) -> Any:
    """The values of a RaggedTensor or a SparseTensor as one tensor; anything else as it is."""
    if isinstance(value, tf.RaggedTensor):
        return value.flat_values
    return value.values if isinstance(value, tf.SparseTensor) else value


def rebuild(keys: Any, value_shape: tf.TensorShape) -> Callable[[tf.Tensor], Composite]:
    """A function that gives a tensor with one row per key of `flat(keys)` the structure of `keys`."""
    if isinstance(keys, tf.RaggedTensor):
        restructure: Callable[[tf.Tensor], Composite] = keys.with_flat_values
        return restructure
    if not isinstance(keys, tf.SparseTensor):
        return lambda rows: rows
    if value_shape.rank != 0:
        raise refuse(
            f"keys: expected a dense or a ragged tensor for values of shape {value_shape}, got a SparseTensor, "
            "which holds scalars only; use tf.RaggedTensor.from_sparse(keys)",
        )
    return lambda rows: tf.SparseTensor(keys.indices, rows, keys.dense_shape)
