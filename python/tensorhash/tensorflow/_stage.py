"""Carries the gradients of table rows from a tape to an optimizer.

A tape returns one gradient per variable, and a table's rows are no variable. So an embedding has
two variables without elements. The gradient of the first, RowsAnchor, has one row per id of the
step, in the order in which the Stage has seen them. The gradient of the second, StepAnchor, has no
elements either: its length is the number of the step, so that a late gradient is noticed.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tensorhash.tensorflow.table import HashTable


class ScratchTable(HashTable):
    """A table that checkpoints leave out."""

    def _serialize_to_tensors(self) -> dict[str, tf.Tensor]:
        return {}

    def _restore_from_tensors(self, restored_tensors: dict[str, tf.Tensor]) -> Any:
        return tf.no_op()


class Stage(tf.Module):
    """The ids of a training step, numbered from 0 in the order of their first sighting.

    A step begins with the first ids after an update; forward passes without an update add to it.
    """

    def __init__(self, key_dtype: Any) -> None:
        super().__init__()
        self.ids = ScratchTable(key_dtype, tf.bool, False)
        #: Has a forward pass read rows without training, and has one trained them?
        self.was_read = self.was_trained = False
        with tf.init_scope():
            # From 2 on: gradients of length 1 would be broadcast if somebody added them.
            self.step = tf.Variable(2, trainable=False, dtype=tf.int64)
            self.updated = tf.Variable(False, trainable=False)

    def number(self, ids: tf.Tensor) -> tf.Tensor:
        """The number of each id within the step, int64."""
        tf.cond(self.updated, self._begin, lambda: False)
        self.ids.accumulate(ids, tf.zeros(tf.shape(ids), tf.bool), reduce="first")
        return self.ids._locate(ids)

    def _begin(self) -> bool:
        self.ids.clear()
        self.step.assign_add(1)
        self.updated.assign(False)
        return True

    def sum_rows(self, rows: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
        """The gradient of a RowsAnchor: the sum of the rows of each id of the step."""
        return tf.math.unsorted_segment_sum(rows, numbers, self.ids.size())

    def tag(self, dtype: tf.DType) -> tf.Tensor:
        """The gradient of a StepAnchor."""
        return tf.zeros(tf.stack([self.step, 0]), dtype)

    def require_current(self, tag: tf.Tensor) -> tf.Operation | None:
        """An error unless the gradient belongs to this step."""
        return tf.debugging.assert_equal(
            tf.shape(tag, tf.int64)[0],
            self.step.read_value(),
            "gradients: expected those of the last training step, got older ones; the layer no "
            "longer has their ids",
        )

    def require_training(self, path: str) -> None:
        """ValueError if rows without a gradient were only ever read: nothing would train them."""
        if self.was_read and not self.was_trained:
            raise ValueError(
                f"gradients: expected one of {path}, got None, because the layer has only run "
                "without training=True; Keras passes it on if the call of your model has a "
                "parameter `training`. With trainable=False, the rows rest"
            )

    def keys(self, gradient: tf.Tensor) -> tf.Tensor:
        """The ids of the rows of a RowsAnchor's gradient."""
        keys, _ = self.ids.export()
        return keys[: tf.shape(gradient)[0]]


class RowsAnchor(keras.Variable):
    """The variable that stands for the rows of an embedding in the model's trainable weights."""

    def __init__(
        self, table: HashTable, stage: Stage, dropped: ScratchTable | None, name: str
    ) -> None:
        width = int(table.value_shape[0])
        dtype = table.value_dtype.name
        super().__init__("zeros", (0, width), dtype, True, autocast=False, name=name)
        self.table, self.stage = table, stage
        #: The ids that lost their row since the last step; None if rows are never evicted.
        self.dropped = dropped


class StepAnchor(keras.Variable):
    """The variable with a gradient that tells the step.

    Keras' optimizers assign the gradients of such variables before they change anything. So one
    that does not know tables gets our error.
    """

    overwrite_with_gradient = True

    def __init__(self, stage: Stage, name: str, dtype: str) -> None:
        super().__init__("zeros", (0, 0), dtype, True, autocast=False, name=name)
        self.stage = stage

    def assign(self, value: Any) -> Any:
        if tuple(value.shape) == (0, 0):  # a weight that is restored
            return super().assign(value)
        raise TypeError(
            "optimizer: expected one of tensorhash.tensorflow.optimizers, such as "
            "thtf.optimizers.Adam(1e-3), which step the rows of tables, got one of keras.optimizers"
        )
