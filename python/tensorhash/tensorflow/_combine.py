"""Joins the rows of several ids into one, as tf.nn.embedding_lookup_sparse does."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

COMBINERS = ("sum", "mean", "sqrtn")


def segments_of(inputs: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """(the row of the result that each flat id belongs to, the number of such rows)."""
    if isinstance(inputs, tf.RaggedTensor):
        if inputs.ragged_rank != 1:
            raise ValueError(
                f"inputs: expected a ragged tensor of ragged rank 1 for a combiner, got "
                f"{inputs.ragged_rank}"
            )
        return inputs.value_rowids(), inputs.nrows()
    if isinstance(inputs, tf.SparseTensor):
        return inputs.indices[:, 0], inputs.dense_shape[0]
    length = tf.shape(inputs, tf.int64)[-1]
    count = tf.reduce_prod(tf.shape(inputs, tf.int64)[:-1])
    return tf.repeat(tf.range(count), length), count


def combine(
    rows: tf.Tensor, weights: tf.Tensor, segments: tf.Tensor, count: tf.Tensor, combiner: str
) -> tf.Tensor:
    """The weighted "sum" of the rows of each segment; "mean" divides it by the sum of the weights,
    "sqrtn" by the root of the sum of their squares. An empty segment gives zeros."""
    total = tf.math.unsorted_segment_sum(rows * weights[:, None], segments, count)
    if combiner == "sum":
        return total
    norm = weights if combiner == "mean" else weights * weights
    norm = tf.math.unsorted_segment_sum(norm, segments, count)
    return tf.math.divide_no_nan(total, (norm if combiner == "mean" else tf.sqrt(norm))[:, None])
