"""HashTable: a parallel MutableHashTable with more dtypes, shapes and methods.

Over 400 lines: one class, and half of the lines are docstrings with examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, overload

import tensorflow as tf

from tensorhash.tensorflow._arguments import as_tensor
from tensorhash.tensorflow._composite import Composite, flat, rebuild
from tensorhash.tensorflow._errors import refuse
from tensorhash.tensorflow._ops import ops
from tensorhash.tensorflow._saver import CHECKPOINT_NAME, add_to_saver
from tensorhash.tensorflow.bounded import BoundedVerbs, Evicted, check_limits
from tensorhash.tensorflow.chunks import ChunkedFiles
from tensorhash.tensorflow.device_verbs import (
    EVERYTHING,
    DeviceVerbs,
    check_placement,
    tensorflow_device,
)


class LookupTable(tf.saved_model.experimental.TrackableResource):
    """The common base of HashTable and StaticHashTable: the resource and the read methods."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        key_shape: Sequence[int],
        creation: dict[str, Any],
        name: str,
    ) -> None:
        super().__init__()
        self._key_dtype = tf.as_dtype(key_dtype)
        self._value_dtype = tf.as_dtype(value_dtype)
        self._key_shape = tf.TensorShape(key_shape)
        self._creation = creation
        self._name = name
        with tf.init_scope():
            self._default_value = as_tensor("default_value", default_value, self._value_dtype)
            # In a TensorFlow 1 graph every session.run runs the table's node, which must find the
            # same table again.
            self._in_session = not tf.executing_eagerly()
        self._value_shape = self._default_value.shape

    @classmethod
    def _resource_type(cls) -> str:
        return f"Tensorhash{cls.__name__}"

    @property
    def key_dtype(self) -> tf.DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> tf.DType:
        return self._value_dtype

    @property
    def key_shape(self) -> tf.TensorShape:
        """The shape of one key; () for scalars."""
        return self._key_shape

    @property
    def value_shape(self) -> tf.TensorShape:
        """The shape of one value, that of default_value."""
        return self._value_shape

    @property
    def default_value(self) -> tf.Tensor:
        return self._default_value

    @property
    def name(self) -> str:
        return self._name

    @overload
    def lookup(
        self,
        keys: Any,
        dynamic_default_values: Any = None,
        name: str | None = None,
        *,
        return_exists: Literal[False] = False,
    ) -> Composite: ...

    @overload
    def lookup(
        self,
        keys: Any,
        dynamic_default_values: Any = None,
        name: str | None = None,
        *,
        return_exists: bool,
    ) -> Composite | tuple[Composite, Composite]: ...

    def lookup(
        self,
        keys: Any,
        dynamic_default_values: Any = None,
        name: str | None = None,
        *,
        return_exists: bool = False,
    ) -> Composite | tuple[Composite, Composite]:
        """The values of `keys`, [..., *value_shape] for keys [..., *key_shape].

        Ragged keys give ragged values, sparse keys sparse values. Missing keys get the table's
        default, or `dynamic_default_values`: one value, or one per key. With `return_exists`,
        returns (values, bool tensor: which keys are there).
        """
        default = self._default_value
        if dynamic_default_values is not None:
            given = flat(dynamic_default_values)
            default = self._value_rows("dynamic_default_values", given)
        rebuilt = rebuild(keys, self._value_shape)
        with tf.name_scope(name or f"{self._name}_lookup"):
            values, exists = ops.tensorhash_find(
                table=self.resource_handle,
                keys=self._key_rows(flat(keys)),
                default_value=default,
                key_shape=self._key_shape,
                value_shape=self._value_shape,
            )
        return (rebuilt(values), rebuilt(exists)) if return_exists else rebuilt(values)

    def _locate(self, keys: tf.Tensor) -> tf.Tensor:
        """The engine's index of each key, -1 for missing keys: int64."""
        return ops.tensorhash_locate(
            table=self.resource_handle,
            keys=keys,
            Tout=self._value_dtype,
            key_shape=self._key_shape,
            value_shape=self._value_shape,
        )

    def _key_rows(self, keys: Any) -> tf.Tensor:
        return as_tensor("keys", keys, self._key_dtype, self._key_shape, exact=True)

    def _value_rows(self, argument: str, values: Any) -> tf.Tensor:
        return as_tensor(argument, values, self._value_dtype, self._value_shape)

    def __getitem__(self, keys: Any) -> Composite:
        return self.lookup(keys)

    def size(self, name: str | None = None) -> tf.Tensor:
        """The number of entries: a scalar int64."""
        return tf.raw_ops.LookupTableSizeV2(table_handle=self.resource_handle, name=name)

    def export(self, name: str | None = None) -> tuple[tf.Tensor, tf.Tensor]:
        """All (keys, values), in the same order."""
        keys, values, _ = self._export(0, EVERYTHING, name)
        return keys, values

    def export_batches(self, batch_size: int) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
        """Yields (keys, values), `batch_size` entries at a time. Eager mode only.

        For tables that are too large for one tensor. Each entry that stays in the table comes once;
        entries that are added or removed during the export may be missing.
        """
        if tf.convert_to_tensor(batch_size).shape.rank != 0:
            raise refuse(f"batch_size: expected one number, got {batch_size}")
        if not tf.executing_eagerly():
            raise RuntimeError(
                "export_batches: expected an eager call, got one inside a tf.function or a graph, "
                "where the number of batches is not known; use export there"
            )
        return self._batches(batch_size)

    def _batches(self, batch_size: int) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
        at = 0
        while at >= 0:
            keys, values, following = self._export(at, batch_size, None)
            if keys.shape[0] == 0:
                return
            yield keys, values
            at = int(following)

    def _export(self, begin: int, limit: int, name: str | None, *, end: int = EVERYTHING) -> Any:
        return ops.tensorhash_export(
            table=self.resource_handle,
            begin=tf.constant(begin, tf.int64),
            end=tf.constant(end, tf.int64),
            limit=tf.constant(limit, tf.int64),
            name=name,
            **self._types(),
        )

    def _types(self) -> dict[str, Any]:
        return {
            "Tin": self._key_dtype,
            "Tout": self._value_dtype,
            "key_shape": self._key_shape,
            "value_shape": self._value_shape,
        }

    def _export_to_saved_model_graph(self, *arguments: Any, **kwargs: Any) -> Any:
        """Exports the table to the graph of a SavedModel.

        Servers run that graph in sessions, where an anonymous table would be new and empty in every
        run.
        """
        before, self._in_session = self._in_session, True
        try:
            return super()._export_to_saved_model_graph(*arguments, **kwargs)
        finally:
            self._in_session = before

    def _attributes(self) -> dict[str, Any]:
        """The attributes of the op that makes the table."""
        return {
            "key_dtype": self._key_dtype,
            "value_dtype": self._value_dtype,
            "key_shape": self._key_shape,
            "value_shape": self._value_shape,
            **self._creation,
        }


class HashTable(BoundedVerbs, ChunkedFiles, DeviceVerbs, LookupTable):
    """A mutable table from keys to values, both of any fixed shape.

    `name`, `checkpoint` and `experimental_is_anonymous` are as in
    tf.lookup.experimental.MutableHashTable. The shape of a value is that of `default_value`;
    `key_shape` is the shape of a key, for example (3,). Keys are strings, booleans, integers,
    float32 or float64; values have any numeric dtype. Without a `shared_name` the table is
    anonymous and is deleted with its last reference. Tables with the same `shared_name` are the
    same table until the process ends. `capacity` entries fit before the table grows. Each of
    `devices`, such as ["cpu:0", "cpu:1"], holds a shard; `policy`, "hash" or "mod", decides which
    shard a key belongs to. tf.train.Checkpoint and SavedModels save and restore the table.

    With `max_capacity` the table holds at most that many keys: insert and accumulate return the
    entries that they evict. `eviction` is "lru" (the least recently used leave) or "score" (those
    with the lowest score, which comes with each insert).

    >>> table = HashTable(tf.int64, tf.float32, default_value=[0.0, 0.0])
    >>> table.insert([7, 9], [[1.0, 2.0], [3.0, 4.0]])
    >>> table.lookup([9, 8]).numpy().tolist(), table.size().numpy().item()
    ([[3.0, 4.0], [0.0, 0.0]], 2)
    """

    # The name of TensorFlow's tables in a checkpoint, so that each kind can restore the other.
    _LEGACY_SAVEABLE_NAME = CHECKPOINT_NAME

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "HashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
        *,
        key_shape: Sequence[int] = (),
        shared_name: str | None = None,
        container: str = "",
        capacity: int = 0,
        devices: Sequence[str] | None = None,
        policy: str = "hash",
        max_capacity: int | None = None,
        eviction: str = "lru",
    ) -> None:
        if experimental_is_anonymous and shared_name is not None:
            raise refuse(f"shared_name: expected none for an anonymous table, got {shared_name!r}")
        self._devices, policy = check_placement(["cpu:0"] if devices is None else devices, policy)
        creation: dict[str, Any] = {
            "capacity": capacity, "devices": self._devices, "policy": policy
        }  # fmt: skip
        self._bounded = max_capacity is not None
        if max_capacity is not None:
            creation.update(check_limits(max_capacity, eviction, key_dtype, default_value))
        if shared_name is not None:
            creation.update(shared_name=shared_name, container=container)
        super().__init__(key_dtype, value_dtype, default_value, key_shape, creation, name)
        self._checkpoint = checkpoint
        self._anonymous = experimental_is_anonymous
        with tf.init_scope():
            self.resource_handle  # noqa: B018  make it now, not inside the first tf.function
            if checkpoint and self._in_session:
                add_to_saver(self, name)

    def _create_resource(self) -> tf.Tensor:
        named, anonymous = ops.tensorhash_table, ops.tensorhash_anonymous_table
        if self._bounded:
            named = ops.tensorhash_bounded_table
            anonymous = ops.tensorhash_anonymous_bounded_table
        attributes = self._attributes()
        with tf.device(tensorflow_device(self._devices)):
            if "shared_name" in self._creation:
                return named(**attributes)
            if self._in_session and not self._anonymous:
                return named(**attributes, use_node_name_sharing=True, name=self._name)
            return anonymous(**attributes)

    def size(self, name: str | None = None) -> tf.Tensor:
        """The number of entries: a scalar int64."""
        if tensorflow_device(self._devices) is None:
            return super().size(name)
        # TensorFlow's own op has no kernel for GPUs.
        return tf.add_n([self.get_size(device) for device in self._devices], name=name)

    def insert(
        self, keys: Any, values: Any, name: str | None = None, *, scores: Any = None
    ) -> tf.Operation | Evicted | None:
        """Adds keys or overwrites their values; of equal keys the last row wins.

        A bounded table returns what it evicts. One that evicts by "score" needs `scores`, int64,
        one per key.
        """
        return self.accumulate(keys, values, reduce="last", name=name, scores=scores)

    def accumulate(
        self,
        keys: Any,
        values: Any,
        reduce: str = "sum",
        name: str | None = None,
        *,
        scores: Any = None,
    ) -> tf.Operation | Evicted | None:
        """Adds new keys and combines other rows with the stored values, in row order.

        `reduce` is "sum", "min", "max", "first" (keeps the old value) or "last" (replaces it). A
        bounded table returns what it evicts, as insert() does.
        """
        if self._bounded:
            return self._admit(keys, values, reduce, scores, name)
        if scores is not None:
            raise refuse("scores: expected none for a table without max_capacity")
        return self._accumulate(keys, values, reduce, -1, name)

    def _accumulate(self, keys: Any, values: Any, reduce: str, shard: int, name: str | None) -> Any:
        return ops.tensorhash_accumulate(
            table=self.resource_handle,
            keys=self._key_rows(keys),
            values=self._value_rows("values", values),
            reduce=reduce,
            shard=shard,
            key_shape=self._key_shape,
            value_shape=self._value_shape,
            name=name,
        )

    def remove(self, keys: Any, name: str | None = None) -> tf.Operation | None:
        """Removes `keys`; ignores missing keys."""
        return ops.tensorhash_remove(
            table=self.resource_handle,
            keys=self._key_rows(keys),
            Tout=self._value_dtype,
            key_shape=self._key_shape,
            value_shape=self._value_shape,
            name=name,
        )

    def clear(self, name: str | None = None) -> tf.Operation | None:
        """Removes all entries; keeps the memory."""
        return ops.tensorhash_clear(table=self.resource_handle, name=name)

    def reserve(self, capacity: int, name: str | None = None) -> tf.Operation | None:
        """Makes room for `capacity` entries; never shrinks the table."""
        return ops.tensorhash_reserve(
            table=self.resource_handle, capacity=tf.cast(capacity, tf.int64), name=name
        )

    def _import(self, keys: tf.Tensor, values: tf.Tensor) -> Any:
        return ops.tensorhash_import(
            table=self.resource_handle,
            keys=keys,
            values=values,
            key_shape=self._key_shape,
            value_shape=self._value_shape,
        )

    # TensorFlow calls these to save and restore a trackable object.
    def _serialize_to_tensors(self) -> dict[str, tf.Tensor]:
        if self._bounded:
            return {"-state": self._save_state()}
        keys, values = self.export()
        return {"-keys": keys, "-values": values}

    def _restore_from_tensors(self, restored_tensors: dict[str, tf.Tensor]) -> Any:
        if self._bounded:
            return self._restore_state(restored_tensors["-state"])
        return self._import(restored_tensors["-keys"], restored_tensors["-values"])

    def _copy_trackable_to_cpu(self, object_map: Any) -> None:
        if self not in object_map:
            object_map[self] = HashTable(
                self._key_dtype,
                self._value_dtype,
                self._default_value,
                self._name,
                self._checkpoint,
                key_shape=self._key_shape,
                devices=self._devices,
                policy=self._creation["policy"],
                max_capacity=self._creation.get("max_capacity"),
                eviction=self._creation.get("eviction", "lru"),
            )
        object_map[self]._restore_from_tensors(self._serialize_to_tensors())
