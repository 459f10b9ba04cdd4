"""ShardedHashMap: one table over several devices, each with a part of the keys."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorhash import _core, _files
from tensorhash._arrays import Framework, framework, to_numpy
from tensorhash._device import named_device
from tensorhash._disk import parse_max_bytes
from tensorhash._table import Array, ArrayLike, DtypeLike, Element, ShapeLike, integer
from tensorhash.hash_map import HashMap, value_columns

if TYPE_CHECKING:
    from typing_extensions import Self

#: "hash", "mod", or a function of (keys as NumPy array, number of shards) -> shard of each key.
Policy: TypeAlias = "str | Callable[[Any, int], ArrayLike]"


class StreamEventResource:
    """What one calling thread uses to talk to the devices; see `stream_event_resource_create`."""

    def __init__(self, device_id: int) -> None:
        #: The number of the device it was made for; -1 after it is destroyed.
        self.device_id = device_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}(device_id={self.device_id})"


class ShardedHashMap(HashMap):
    """A HashMap cut into shards, one per device, that act as one table.

    >>> m = ShardedHashMap(10, "int64", (), "float32", (), devices=["cpu:0", "cpu:1"], policy="mod")
    >>> indices, inserted = m.insert([7, 8, 7], [0.5, 1.5, 2.5])
    >>> indices, inserted  # shard << 32 | index in the shard
    (array([4294967296,          0, 4294967296]), array([ True,  True, False]))
    >>> m.get([8, 9], default=-1), m.get_size("cpu:1")
    (array([ 1.5, -1. ], dtype=float32), 1)

    HashMap's methods and its contract hold for the whole: a batch acts as its rows in order would,
    and a call that raises changed no shard. Buffer indices are int64. `policy` says which shard a
    key belongs to: "hash" spreads any keys evenly, "mod" is exact mod of integer keys, a function
    must give equal keys the same shard, always; float keys reach it without -0 and with one NaN.
    `ShardedBoundedHashMap` is the one with a `max_capacity`.
    """

    _table: Any
    _policy: Policy
    _bounded = False

    def __init__(
        self,
        init_capacity: int,
        key_dtype: DtypeLike,
        key_element_shape: ShapeLike,
        value_dtype: DtypeLike | Sequence[DtypeLike] | None = None,
        value_element_shape: ShapeLike | Sequence[ShapeLike] | None = None,
        *,
        value_dtypes: Sequence[DtypeLike] | None = None,
        value_element_shapes: Sequence[ShapeLike] | None = None,
        devices: Sequence[Any],
        policy: Policy = "hash",
        seed: int | None = None,
    ) -> None:
        one = (value_dtype, value_element_shape)
        columns = value_columns(one, (value_dtypes, value_element_shapes))
        self._policy = policy
        self._create(init_capacity, (key_dtype, key_element_shape), columns, devices, seed)

    def _make(
        self, rows: int, key: Element, values: list[Element], device: Any, seed: int | None
    ) -> Any:
        policy = _core_policy(self._policy)
        return _core.ShardedMap(rows, key, values, _device_names(device), policy, seed)

    @classmethod
    def _with_policy(cls, table: Any, home: Framework, policy: Policy | None) -> Self:
        self = cls._of(table, home)
        self._policy = table.policy if policy is None else policy
        return self

    @classmethod
    def from_items(
        cls,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = (),
        *,
        devices: Sequence[Any],
        policy: Policy = "hash",
    ) -> Self:
        """HashMap.from_items onto shards."""
        rows, columns, home = cls._free_items(keys, values)
        names = _device_names(devices)
        table = _core.ShardedMap.from_items(rows, columns, names, _core_policy(policy))
        return cls._with_policy(table, home, policy)

    # The verbs of a table on several devices.

    def set(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> Array:
        """Overwrites the values of keys that are there, the last of equal keys wins.

        bool [N]: which rows were there; the others do nothing.
        """
        rows, give = self._take(keys, self._key, "keys")
        return give(self._table.assign(rows, self._take_values(values, list_values, rows)))

    def remove(self, keys: ArrayLike) -> Array:
        """`erase` under the name that it has in tables of several devices."""
        return self.erase(keys)

    def get_size(self, device: Any = None) -> int:
        """How many keys there are on one device, or on all."""
        return self._table.size(self._shard(device))

    def insert_from_cpu(
        self,
        device: Any,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[Array, Array]:
        """`insert` of keys that all belong to one device; ValueError names a row that does not.

        With None as device, each key goes where it belongs.
        """
        shard = self._shard(device)
        if shard is None:
            return self.insert(keys, values, list_values=list_values)
        rows, give = self._take(keys, self._key, "keys")
        columns = self._take_values(values, list_values, rows)
        indices, inserted = self._table.insert_into(shard, rows, columns)
        return give(indices), give(inserted)

    def dump_to_cpu(self, device: Any = None) -> tuple[Array, Array | tuple[Array, ...]]:
        """(keys, values) of one device, or of all, as they are at one moment; by index."""
        return self._give_items(self._table.items(self._shard(device)))

    dump_to_device = dump_to_cpu
    dump_to_gpu = dump_to_cpu

    def shard_of(self, keys: ArrayLike) -> Array:
        """int32 [N]: the number of the shard each key belongs to, there or not."""
        rows, give = self._take(keys, self._key, "keys")
        return give(self._table.shard_of(rows))

    def stream_event_resource_create(self, device: Any) -> StreamEventResource:
        """A resource for one of the table's devices. CPU devices need none, and no verb asks."""
        if device is None:
            raise TypeError(f"device: expected one of {self.device}, got None")
        name = self.devices[self._shard(device) or 0]
        return StreamEventResource(int(name.partition(":")[2]))

    def stream_event_resource_destroy(self, s_e_resource: StreamEventResource) -> None:
        """Ends the use of a resource. Twice is no error."""
        if not isinstance(s_e_resource, StreamEventResource):
            raise TypeError(
                f"s_e_resource: expected one of stream_event_resource_create(), "
                f"got {type(s_e_resource).__name__}"
            )
        s_e_resource.device_id = -1

    # What HashMap has once and a sharded table once per device.

    def key_tensor(self, device: Any = None) -> Array:
        """One device's key buffer. With a single device it need not be named."""
        return self._framework.give(self._table.key_tensor(self._one_shard(device)))

    def value_tensor(self, value_buffer_id: int = 0, device: Any = None) -> Array:
        """One device's value buffer. With a single device it need not be named."""
        column = integer(value_buffer_id, "value_buffer_id", None)
        if not 0 <= column < len(self._values):
            raise IndexError(
                f"value_buffer_id: expected 0 <= value_buffer_id < {len(self._values)}, "
                f"got {column}"
            )
        return self._framework.give(self._table.value_tensor(self._one_shard(device), column))

    def value_tensors(self, device: Any = None) -> list[Array]:
        """One device's value buffers, one per column."""
        return [self.value_tensor(column, device) for column in range(len(self._values))]

    def compact(self) -> list[Array]:
        """HashMap.compact on each shard: a list of int32 [capacity of the shard]."""
        return [self._framework.give(moved) for moved in self._table.compact()]

    # Devices.

    @property
    def devices(self) -> tuple[str, ...]:
        """The shards' devices, in order."""
        return tuple(self._table.devices)

    @property
    def device(self) -> str:
        """The shards' devices, in one string."""
        return ", ".join(self.devices)

    @property
    def policy(self) -> Policy:
        """What says which shard a key belongs to."""
        return self._policy

    @property
    def is_cpu(self) -> bool:
        """Whether all shards live on the CPU."""
        return all(name.startswith("cpu") for name in self.devices)

    def to(self, device: Any, copy: bool = False) -> Self:
        """The table on other devices, one name or several; itself if it is there already."""
        several = device if isinstance(device, (list, tuple)) else [device]
        names = _device_names(several, "device")
        if not names:
            raise ValueError("device: expected at least one, such as 'cpu:0', got none")
        if tuple(names) == self.devices:
            return self.clone() if copy else self
        table = _core.ShardedMap.from_bytes(
            self._table.to_bytes(), names, _core_policy(self._policy)
        )
        return self._with_policy(table, self._framework, self._policy)

    def cpu(self) -> Self:
        """The table on the CPU: itself if it is there already."""
        return self

    def clone(self) -> Self:
        """An independent copy, buffer indices included."""
        return self._with_policy(self._table.clone(), self._framework, self._policy)

    __copy__ = clone

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        image: Any = np.asarray(self._table.to_bytes())
        payload = pickle.PickleBuffer(image) if int(protocol) >= 5 else image.tobytes()
        return _restore, (type(self), self._framework.name, payload, self.devices, self._policy)

    # Files.

    def save(self, file_name: str | os.PathLike[str]) -> str:
        """Writes one ".thash" file with all shards: the old one or the new one stands there.

        Returns the name of the file.
        """
        return _files.save_native(self._table, file_name, self._suffix)

    @classmethod
    def load(
        cls,
        file_name: str | os.PathLike[str],
        devices: Sequence[Any] | None = None,
        policy: Policy | None = None,
        *,
        max_bytes: int | None = None,
    ) -> Self:
        """Reads what `save`, or HashMap's, wrote, onto any devices.

        Without `devices` onto "cpu:0", … as many as were saved. Indices are the saved ones if
        devices and policy are as many and the same; otherwise each key goes where it belongs.
        `max_bytes` is HashMap's, for all shards together.
        """
        path = _files.native_source(file_name, cls._suffix)
        names = [] if devices is None else _device_names(devices)
        rule = None if policy is None else _core_policy(policy)
        most = parse_max_bytes(max_bytes)
        table = _core.ShardedMap.load(os.fsencode(path), names, rule, most)
        if (table.eviction is not None) != cls._bounded:
            reader = "ShardedHashMap" if cls._bounded else "ShardedBoundedHashMap"
            raise ValueError(f'file_name: "{path}" is a file that {reader}\'s load reads')
        return cls._with_policy(table, framework(cls._default_framework), policy)

    def _shard(self, device: Any) -> int | None:
        if device is None:
            return None
        name = device if not isinstance(device, (int, np.integer)) else f"cpu:{int(device)}"
        return self._table.shard_on(str(named_device(name)))

    def _one_shard(self, device: Any) -> int:
        shard = self._shard(device)
        if shard is None and len(self.devices) > 1:
            raise ValueError(
                f"device: expected one of {self.device}: each has buffers of its own; "
                f"get(keys) reads from all"
            )
        return shard or 0


def _device_names(devices: Any, argument: str = "devices") -> list[str]:
    if isinstance(devices, (str, bytes)) or not isinstance(devices, Iterable):
        raise TypeError(f"{argument}: expected a list such as ['cpu:0', 'cpu:1'], got {devices!r}")
    return [str(named_device(device, argument)).lower() for device in devices]


def _core_policy(policy: Policy) -> Any:
    """What the core takes: a name, or a name and a function of a core tensor."""
    if isinstance(policy, str):
        return policy
    if not callable(policy):
        raise TypeError(
            f'policy: expected "hash", "mod" or a function of (keys, shards), got {policy!r}'
        )
    function = policy

    def route(keys: _core.Tensor, shards: int) -> Any:
        rows = to_numpy(keys)
        answer = np.asarray(function(rows, shards))
        if answer.shape != rows.shape[:1] or answer.dtype.kind not in "iu":
            raise ValueError(
                f"policy: expected {len(rows)} integers, one per key, "
                f"got {answer.dtype} of shape {answer.shape}"
            )
        wrong = np.flatnonzero((answer < 0) | (answer >= shards))
        if wrong.size:  # here, where a number too large for int32 is still itself
            raise ValueError(
                f"policy: expected a shard of 0 to {shards - 1}, got {answer[wrong[0]]} "
                f"for row {wrong[0]}"
            )
        return np.ascontiguousarray(answer, dtype=np.int32)

    # The brackets keep it apart from our own names.
    return f"{_policy_name(policy)}()", route


def _policy_name(policy: Callable[..., Any]) -> str:
    """What a file can keep: a string that UTF-8 can say."""
    name = getattr(policy, "__name__", None)
    if not isinstance(name, str):
        name = type(policy).__name__
    return name.encode(errors="backslashreplace").decode()


def _restore(
    cls: type[ShardedHashMap], home: str, payload: Any, devices: Sequence[str], policy: Policy
) -> ShardedHashMap:
    table = _core.ShardedMap.from_bytes(payload, list(devices), _core_policy(policy))
    return cls._with_policy(table, framework(home), policy)
