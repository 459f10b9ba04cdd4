"""Saves and restores a table in chunks, as a TensorFlow checkpoint of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tensorhash.tensorflow._errors import refuse

#: The names of chunk number i in the checkpoint.
NAMES = ("keys-{:06d}", "values-{:06d}")


class ChunkedFiles:
    """A mixin of HashTable: files of tables that are too large to be copied in memory."""

    _bounded: bool

    def save(self: Any, path: str | os.PathLike[str], *, chunk_bytes: int = 1 << 28) -> str:
        """Writes all entries to a checkpoint, `chunk_bytes` at a time. Eager mode only.

        The checkpoint appears under its name only when it is complete. It has one data file per
        chunk, and tensors named keys-000000, values-000000 and so on. Do not change the table
        meanwhile. Returns the path.

        >>> import tempfile, tensorhash.tensorflow as thtf
        >>> table = thtf.HashTable(tf.int64, tf.float32, 0.0)
        >>> _ = table.insert([7, 9], [1.0, 2.0])
        >>> path = table.save(tempfile.mkdtemp() + "/table", chunk_bytes=12)
        >>> table.clear()
        >>> table.restore(path)
        >>> table.lookup([9]).numpy().tolist()
        [2.0]
        """
        self._require_chunks("save")
        prefix = os.fspath(path)
        parts: list[str] = []
        for number, tensors in enumerate(self._chunks(self._rows_of(chunk_bytes))):
            parts.append(f"{prefix}.part-{number:06d}")
            tf.raw_ops.SaveV2(
                prefix=parts[-1],
                tensor_names=[name.format(number) for name in NAMES],
                shape_and_slices=["", ""],
                tensors=list(tensors),
            )
        tf.raw_ops.MergeV2Checkpoints(
            checkpoint_prefixes=parts, destination_prefix=prefix, delete_old_dirs=False
        )
        return prefix

    def restore(self: Any, path: str | os.PathLike[str]) -> None:
        """Replaces all entries by those of save(), one chunk at a time. Eager mode only."""
        self._require_chunks("restore")
        prefix = os.fspath(path)
        count = self._check_chunks(prefix)
        self.clear()
        for number in range(count):
            keys, values = tf.raw_ops.RestoreV2(
                prefix=prefix,
                tensor_names=[name.format(number) for name in NAMES],
                shape_and_slices=["", ""],
                dtypes=[self._key_dtype, self._value_dtype],
            )
            self.insert(keys, values)

    def _check_chunks(self: Any, prefix: str) -> int:
        """The number of chunks; an error unless this table can hold all of them."""
        reader = tf.train.load_checkpoint(prefix)
        shapes = reader.get_variable_to_shape_map()
        dtypes = reader.get_variable_to_dtype_map()
        count = len(shapes) // 2
        wanted = zip(
            NAMES,
            (self._key_dtype, self._value_dtype),
            (self._key_shape.as_list(), self._value_shape.as_list()),
            strict=True,
        )
        for name, dtype, shape in wanted:
            for number in range(count):
                one = name.format(number)
                if one not in shapes or dtypes[one] != dtype or shapes[one][1:] != shape:
                    raise refuse(
                        f"path: expected a checkpoint of HashTable.save with {one} of "
                        f"{dtype.name}{shape}, got {dtypes.get(one)} {shapes.get(one)} in {prefix}"
                    )
        return count

    def _chunks(self: Any, rows: int) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
        """All entries; an empty table has one empty chunk."""
        empty = True
        for chunk in self.export_batches(rows):
            empty = False
            yield chunk
        if empty:
            yield self.export()

    def _rows_of(self: Any, chunk_bytes: int) -> int:
        if chunk_bytes < 1:
            raise refuse(f"chunk_bytes: expected at least 1, got {chunk_bytes}")
        key = self._key_dtype.size * self._key_shape.num_elements()
        value = self._value_dtype.size * self._value_shape.num_elements()
        return int(max(1, chunk_bytes // max(1, key + value)))

    def _require_chunks(self, call: str) -> None:
        if not tf.executing_eagerly():
            raise RuntimeError(f"{call}: expected an eager call, got one inside a graph")
        if self._bounded:
            raise refuse(
                f"{call}: expected a table without max_capacity; tf.train.Checkpoint saves the "
                "order in which a bounded table evicts"
            )
