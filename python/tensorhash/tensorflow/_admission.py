"""Which ids of an embedding have a row: admission after some sightings, eviction if it is full."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tensorhash.tensorflow._stage import ScratchTable
from tensorhash.tensorflow.bounded import Evicted
from tensorhash.tensorflow.table import HashTable

EVICTIONS = ("lru", "lfu")


class Admission(tf.Module):
    """The table of an embedding's rows, and the rules by which training adds and drops rows."""

    def __init__(
        self,
        key_dtype: str,
        dtype: str,
        width: int,
        *,
        capacity: int,
        max_capacity: int | None,
        eviction: str,
        admit_after: int,
    ) -> None:
        super().__init__()
        if eviction not in EVICTIONS:
            raise ValueError(f"eviction: expected one of {', '.join(EVICTIONS)}, got {eviction!r}")
        if admit_after < 1:
            raise ValueError(f"admit_after: expected at least 1, got {admit_after}")
        self.max_capacity, self.eviction, self.admit_after = max_capacity, eviction, admit_after
        self.width = width
        limits: dict[str, Any] = {"capacity": capacity}
        if max_capacity is not None:
            by = "score" if eviction == "lfu" else "lru"
            limits = {"max_capacity": max_capacity, "eviction": by}
        self.table = HashTable(key_dtype, dtype, np.zeros(width, dtype), **limits)
        # The optimizer forgets its state of these ids at its next step.
        self.dropped = None if max_capacity is None else ScratchTable(key_dtype, tf.bool, False)
        self.sightings: HashTable | None = None
        if admit_after > 1 or (max_capacity is not None and eviction == "lfu"):
            # Counts of ids without a row must not grow without a limit if rows do not.
            some: dict[str, Any] = {}
            if max_capacity is not None:
                some = {"max_capacity": 4 * max_capacity, "eviction": "lru"}
            self.sightings = HashTable(key_dtype, tf.int64, 0, **some)

    def see(self, ids: tf.Tensor, draw: Any) -> None:
        """Training sees these ids, one axis: counts them, and gives new ones their row."""
        if self.sightings is not None:
            self.sightings.accumulate(ids, tf.ones(tf.shape(ids), tf.int64))
        if self.max_capacity is not None:
            self._use(ids)
        new = tf.boolean_mask(ids, self.table._locate(ids) < 0)
        if self.admit_after > 1 and self.sightings is not None:
            often = self.sightings.lookup(new) >= self.admit_after
            new = tf.boolean_mask(new, often)
        tf.cond(tf.size(new) > 0, lambda: self._add(new, draw), lambda: False)

    def _use(self, ids: tf.Tensor) -> None:
        """The ids in the table count as used."""
        self.table.touch(ids, self._scores(ids))

    def _scores(self, ids: tf.Tensor) -> tf.Tensor | None:
        if self.eviction != "lfu" or self.sightings is None:
            return None
        return self.sightings.lookup(ids)

    def _add(self, new: tf.Tensor, draw: Any) -> bool:
        rows = draw(tf.stack([tf.size(new), self.width]), dtype=self.table.value_dtype.name)
        rows = tf.ensure_shape(rows, [None, self.width])
        if self.max_capacity is None:
            self.table.accumulate(new, rows, reduce="first")
            return True
        scores = self._scores(new)
        evicted = self.table.accumulate(new, rows, reduce="first", scores=scores)
        if self.dropped is not None:
            assert isinstance(evicted, Evicted)  # the table is bounded
            gone = evicted.keys
            self.dropped.accumulate(gone, tf.zeros(tf.shape(gone), tf.bool), reduce="first")
        return True

    def tables(self) -> dict[str, HashTable]:
        """The tables that files hold."""
        sightings = {} if self.sightings is None else {"sightings": self.sightings}
        return {"table": self.table, **sightings}

    def config(self) -> dict[str, object]:
        return {
            "max_capacity": self.max_capacity,
            "eviction": self.eviction,
            "admit_after": self.admit_after,
        }
