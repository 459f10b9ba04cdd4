"""RowsWeight: presents the rows of an embedding as a Keras weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tensorhash._types import NumPyArray
from tensorhash.tensorflow.table import HashTable


class RowsShape(tuple[int, ...]):
    """The shape (rows, width), equal to every tuple.

    Keras compares shapes before it assigns, but a table takes any number of rows; `assign` checks.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class RowsWeight:
    """A table with the interface of a Keras weight.

    Its value is a record array with the fields "key" and "row". np.asarray() gives only the rows,
    for histograms and counts.
    """

    trainable = False

    def __init__(self, table: HashTable, path: str) -> None:
        self._table = table
        self.path = path
        self.name = "rows"
        self.dtype = table.value_dtype.name

    @property
    def shape(self) -> RowsShape:
        return RowsShape((int(self._table.size()), *self._table.value_shape))

    def _record(self) -> np.dtype[Any]:
        keys, values = self._table.key_dtype, self._table.value_dtype
        width = tuple(self._table.value_shape)
        return np.dtype([("key", keys.as_numpy_dtype), ("row", values.as_numpy_dtype, width)])

    def numpy(self) -> NumPyArray:
        keys, values = self._table.export()
        rows = np.empty(keys.shape[0], self._record())
        rows["key"], rows["row"] = keys.numpy(), values.numpy()
        return rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumPyArray:
        return self.numpy()["row"].astype(dtype or self.dtype)

    def assign(self, value: Any) -> None:
        """Replaces all rows with those of a record array."""
        rows, wanted = np.asarray(value), self._record()
        if rows.dtype != wanted or rows.ndim != 1:
            raise ValueError(
                f"rows: expected a 1-D record array of {wanted}, as get_weights returns, got "
                f"{rows.dtype} of shape {rows.shape}; a row needs its key, so start with "
                f'get_weights and change its "row"'
            )
        keys = tf.convert_to_tensor(rows["key"], self._table.key_dtype)
        values = tf.convert_to_tensor(rows["row"], self._table.value_dtype)
        limit = self._table.max_capacity
        if limit is not None and len(rows) > limit:
            raise ValueError(f"rows: expected at most max_capacity, {limit}, got {len(rows)}")
        if self._table.eviction == "score":  # an import has no scores
            self._table.clear()
            self._table.insert(keys, values, scores=tf.zeros(len(rows), tf.int64))
        else:
            self._table._import(keys, values)
