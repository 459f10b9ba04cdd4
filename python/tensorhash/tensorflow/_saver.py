"""Registers tables in TensorFlow 1 graphs for tf.compat.v1.train.Saver and tables_initializer."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.training.saving.saveable_object import SaveableObject, SaveSpec

# The name of TensorFlow's own tables in object-based checkpoints: "table-keys", "table-values".
CHECKPOINT_NAME = "table"


class TableSaveable(SaveableObject):
    """Saves a table as `name`-keys and `name`-values, like TensorFlow's own tables."""

    def __init__(self, table: Any, name: str) -> None:
        keys, values = table.export()
        specs = [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")]
        super().__init__(table, specs, name)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        return self.op._import(*restored_tensors)


def add_to_saver(table: Any, name: str) -> None:
    keys = tf.compat.v1.GraphKeys.SAVEABLE_OBJECTS
    tf.compat.v1.add_to_collection(keys, TableSaveable(table, name))


def add_initializer(operation: Any) -> None:
    keys = tf.compat.v1.GraphKeys.TABLE_INITIALIZERS
    tf.compat.v1.add_to_collection(keys, operation)
