"""What an optimizer keeps about the rows of one embedding: their state, and pending gradients."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tensorhash.tensorflow._files import load_table, save_table
from tensorhash.tensorflow._stage import RowsAnchor
from tensorhash.tensorflow.table import HashTable


class Rows:
    """Some rows in the place of a variable: Keras' update_step reads and assigns them."""

    def __init__(self, anchor: RowsAnchor, now: tf.Tensor) -> None:
        self.anchor, self.now = anchor, now
        self.name, self.path = anchor.name, anchor.path
        self.dtype = anchor.dtype

    @property
    def shape(self) -> tf.TensorShape:
        return self.now.shape

    def assign(self, value: tf.Tensor) -> None:
        self.now = tf.cast(value, self.dtype)

    def assign_add(self, value: tf.Tensor) -> None:
        self.assign(self.now + value)

    def assign_sub(self, value: tf.Tensor) -> None:
        self.assign(self.now - value)

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> tf.Tensor:
        return tf.convert_to_tensor(self.now, dtype=dtype, name=name)


class Pending:
    """Gradients that wait for the end of an accumulation, in the place of Keras' accumulator.

    As a tensor it is zero: open() has already added them to the gradient that Keras gets.
    """

    def __init__(self, anchor: RowsAnchor) -> None:
        self.shape, self.dtype = anchor.shape, anchor.dtype
        self.table = HashTable(
            anchor.table.key_dtype, anchor.table.value_dtype, np.zeros(anchor.shape[1])
        )

    def assign(self, value: tf.Tensor) -> None:
        """Keras assigns zeros."""
        self.table.clear()

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> tf.Tensor:
        return tf.zeros((), dtype or self.dtype, name)


class RowSlots:
    """The optimizer's state of an embedding's rows: a table from ids to all slots of a row."""

    def __init__(self, anchor: RowsAnchor) -> None:
        self.anchor = anchor
        self.pending: Pending | None = None
        self.table: HashTable | None = None
        self._initial: list[Any] = []
        self._slots: list[Rows] = []
        self._keys: tf.Tensor = None

    def add(self, initializer: Any) -> Rows:
        """One more slot, with the initial value of Keras' optimizer variable."""
        width = (int(self.anchor.shape[1]),)
        with tf.init_scope():
            initial = keras.initializers.get(initializer)(width, self.anchor.dtype)
            self._initial.append(keras.ops.convert_to_numpy(initial))
        slot = Rows(self.anchor, initial)
        self._slots.append(slot)
        return slot

    def accumulator(self) -> Pending:
        self.pending = Pending(self.anchor)
        return self.pending

    def create(self) -> None:
        """Makes the table, once all slots are known."""
        rows = self.anchor.table
        if self._slots:
            self.table = HashTable(rows.key_dtype, rows.value_dtype, np.stack(self._initial))

    def open(self, gradient: tf.Tensor, is_update_step: tf.Tensor | None) -> tf.Tensor:
        """Begins a step. Returns the gradients of the rows that step."""
        self._forget_dropped()
        keys = self.anchor.stage.keys(gradient)
        gradient = tf.cast(gradient, self.anchor.dtype)
        found = self.anchor.table._locate(keys) >= 0
        # A row with a gradient of zero does not step: it may belong to a step that was skipped.
        found &= tf.reduce_any(tf.not_equal(gradient, 0), axis=1)
        keys, gradient = tf.boolean_mask(keys, found), tf.boolean_mask(gradient, found)
        if self.pending is not None:
            self.pending.table.accumulate(keys, gradient, reduce="sum")
            keys, gradient = tf.cond(
                is_update_step, self.pending.table.export, lambda: (keys, gradient)
            )
        self._keys = keys
        return gradient

    def _forget_dropped(self) -> None:
        """An id that lost its row and came back starts with new state."""
        if self.anchor.dropped is None:
            return
        keys, _ = self.anchor.dropped.export()
        for table in self.tables().values():
            table.remove(keys)
        self.anchor.dropped.clear()

    def read(self) -> Rows:
        """The rows of this step. The slots get their values."""
        if self.table is not None:
            state = self.table.lookup(self._keys)
            for at, slot in enumerate(self._slots):
                slot.now = state[:, at]
        return Rows(self.anchor, self.anchor.table.lookup(self._keys))

    def write(self, rows: Rows) -> None:
        self.anchor.table.set(self._keys, rows.now)
        if self.table is not None:
            self.table.insert(self._keys, tf.stack([slot.now for slot in self._slots], axis=1))

    def close(self) -> None:
        self._keys = None
        self.anchor.stage.updated.assign(True)

    def tables(self) -> dict[str, HashTable]:
        pending = None if self.pending is None else self.pending.table
        both = {"state": self.table, "pending": pending}
        return {part: table for part, table in both.items() if table is not None}

    def save(self, store: Any, name: str) -> None:
        """Writes the state to a .keras file."""
        for part, table in self.tables().items():
            save_table(store, f"{name}_{part}", table)

    def load(self, store: Any, name: str) -> None:
        for part, table in self.tables().items():
            load_table(store, f"{name}_{part}", table)
