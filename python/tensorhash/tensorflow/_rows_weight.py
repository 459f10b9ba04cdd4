"""The rows of an embedding as one of its Keras weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tensorhash._types import NumPyArray
from tensorhash.tensorflow.table import HashTable


class RowsShape(tuple[int, ...]):
    """(rows, width), equal to every shape.

    Keras compares shapes before it assigns. A table takes any number of rows, and `assign` says what it refuses.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class RowsWeight:
    """A table with the interface of a Keras weight. Its value is a record array with fields "key" and "row".

    As a plain array it is the rows alone, for histograms and counts.
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
        """Replaces all rows with these."""
        rows, wanted = np.asarray(value), self._record()
        if rows.dtype != wanted or rows.ndim != 1:
            raise ValueError(
                f"rows: expected a 1-D record array of {wanted}, as get_weights gives, got {rows.dtype} "
                f'of shape {rows.shape}; a row needs its key, so begin with get_weights and change its "row"'
            )
        keys = tf.convert_to_tensor(rows["key"], self._table.key_dtype)
        self._table._import(keys, tf.convert_to_tensor(rows["row"], self._table.value_dtype))
