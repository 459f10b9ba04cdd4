"""The methods of a table with max_capacity, as in tensorhash.BoundedHashMap."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tensorhash.tensorflow._arguments import as_tensor
from tensorhash.tensorflow._errors import refuse
from tensorhash.tensorflow._ops import ops

EVICTIONS = ("lru", "score")


class Evicted(NamedTuple):
    """What a bounded table evicted, in this order, and which rows added their key."""

    keys: tf.Tensor
    values: tf.Tensor
    scores: tf.Tensor
    #: bool, one per row of the batch: whether it added its key.
    added: tf.Tensor


def check_limits(
    max_capacity: Any, eviction: str, key_dtype: Any, default_value: Any
) -> dict[str, Any]:
    """The attributes of a bounded table, checked."""
    if not isinstance(max_capacity, int) or isinstance(max_capacity, bool) or max_capacity < 1:
        raise refuse(f"max_capacity: expected an integer of at least 1, got {max_capacity!r}")
    if eviction not in EVICTIONS:
        raise refuse(f'eviction: expected "lru" or "score", got {eviction!r}')
    if tf.as_dtype(key_dtype) == tf.string:
        raise refuse("max_capacity: expected none for a table with string keys; hash them first")
    return {"max_capacity": max_capacity, "eviction": eviction}


class BoundedVerbs:
    """A mixin of HashTable. Its methods need a table with max_capacity."""

    _bounded: bool
    _creation: dict[str, Any]

    @property
    def max_capacity(self) -> int | None:
        """The number of keys that fit; None for a table that grows."""
        return self._creation.get("max_capacity")

    @property
    def eviction(self) -> str | None:
        """ "lru" or "score"; None for a table that grows."""
        return self._creation.get("eviction")

    def touch(
        self: Any, keys: Any, scores: Any = None, name: str | None = None
    ) -> tf.Operation | None:
        """Uses the keys that are in the table: they leave later. Other keys are ignored.

        With `scores`, int64, these are their new scores, in a table that evicts by "score".

        >>> import tensorhash.tensorflow as thtf
        >>> table = thtf.HashTable(tf.int64, tf.float32, 0.0, max_capacity=2)
        >>> _ = table.insert([1, 2], [1.0, 2.0])
        >>> _ = table.touch([1])
        >>> table.insert([3], [3.0]).keys.numpy().tolist()
        [2]
        """
        self._require_bounded("touch")
        return ops.tensorhash_touch(
            table=self.resource_handle,
            keys=self._key_rows(keys),
            scores=_score_rows(scores),
            Tout=self._value_dtype,
            key_shape=self._key_shape,
            value_shape=self._value_shape,
            name=name,
        )

    def export_scores(self: Any, name: str | None = None) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """All (keys, values, scores). With "lru" a score is the number of the last batch that used
        the key.

        >>> import tensorhash.tensorflow as thtf
        >>> table = thtf.HashTable(
        ...     tf.int64, tf.float32, 0.0, max_capacity=2, eviction="score"
        ... )
        >>> _ = table.insert([1, 2, 3], [1.0, 2.0, 3.0], scores=[30, 10, 20])
        >>> keys, values, scores = table.export_scores()
        >>> dict(zip(keys.numpy().tolist(), scores.numpy().tolist()))
        {1: 30, 3: 20}
        """
        self._require_bounded("export_scores")
        keys, values, scores = ops.tensorhash_export_scores(
            table=self.resource_handle, name=name, **self._types()
        )
        return keys, values, scores

    def _admit(
        self: Any, keys: Any, values: Any, reduce: str, scores: Any, name: str | None
    ) -> Evicted:
        if scores is None and self.eviction == "score":
            raise refuse('scores: expected one per key for a table that evicts by "score"')
        added, gone_keys, gone_values, gone_scores = ops.tensorhash_admit(
            table=self.resource_handle,
            keys=self._key_rows(keys),
            values=self._value_rows("values", values),
            scores=_score_rows(scores),
            reduce=reduce,
            key_shape=self._key_shape,
            value_shape=self._value_shape,
            name=name,
        )
        return Evicted(gone_keys, gone_values, gone_scores, added)

    def _save_state(self: Any) -> tf.Tensor:
        return ops.tensorhash_save_state(table=self.resource_handle)

    def _restore_state(self: Any, state: tf.Tensor) -> Any:
        return ops.tensorhash_restore_state(table=self.resource_handle, state=state)

    def _require_bounded(self, call: str) -> None:
        if not self._bounded:
            raise refuse(f"{call}: expected a table with max_capacity, got one without")


def _score_rows(scores: Any) -> tf.Tensor:
    if scores is None:
        return tf.zeros([0], tf.int64)
    return as_tensor("scores", scores, tf.int64)
