"""The methods that ShardedHashMap and ShardedBoundedHashMap share: shards, devices, files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensorhash import _core, _files
from tensorhash._arguments import integer
from tensorhash._device import integer_device, named_device
from tensorhash._disk import parse_max_bytes
from tensorhash._frameworks import Framework, framework
from tensorhash._map import MapTable, one_or_tuple
from tensorhash._policies import Policy, core_policy
from tensorhash._types import ArrayLike, ArrayT, DeviceLike

if TYPE_CHECKING:
    from typing_extensions import Self


class StreamEventResource:
    """A calling thread's resource for the devices; see `stream_event_resource_create`."""

    def __init__(self, device_id: int) -> None:
        #: The id of its device; -1 after it is destroyed.
        self.device_id = device_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}(device_id={self.device_id})"


class ShardedTable(MapTable[ArrayT]):
    """Methods of a table with one shard per device: a mixin for HashMap and BoundedHashMap."""

    _table: _core.ShardedHashMap  # type: ignore[assignment]
    _policy: Policy
    _bounded: ClassVar[bool]
    _without_values = MapTable._without_values  # not HashMap's: a HashSet has no shards

    @classmethod
    def _with_policy(cls, table: Any, home: Framework, policy: Policy | None) -> Self:
        self = cls._of(table, home)
        self._policy = table.policy if policy is None else policy
        return self

    def remove(self, keys: ArrayLike) -> ArrayT:
        """Removes keys: another name of `erase`.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.remove([7, 5])
        array([ True, False])
        """
        return self.erase(keys)

    def get_size(self, device: DeviceLike = None) -> int:
        """The number of keys on one device, or on all if `device` is None.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.get_size(), m.get_size("cpu:1")
        (3, 2)
        """
        return self._table.size(self._shard(device))

    def dump_to_cpu(self, device: DeviceLike = None) -> tuple[ArrayT, ArrayT | tuple[ArrayT, ...]]:
        """Copies of (keys, values) of one device, or of all, ascending by buffer index.

        They are on the CPU, wherever the table is.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.dump_to_cpu("cpu:1")
        (array([7, 9]), array([0.5, 2.5], dtype=float32))
        """
        keys, values = self._table.items(self._shard(device))
        return self._give_items((keys.cpu(), [column.cpu() for column in values]))

    def dump_to_device(
        self, device: DeviceLike = None
    ) -> tuple[ArrayT, ArrayT | tuple[ArrayT, ...]]:
        """The same on `device`, or on the first device if all devices are copied.

        Frameworks without arrays on devices, such as NumPy, get tensors of tensorhash.core.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.dump_to_device("cpu:0")
        (array([8]), array([1.5], dtype=float32))
        """
        keys, values = self._table.items(self._shard(device))
        return self._give_view(keys), one_or_tuple(values, self._give_view)

    dump_to_gpu = dump_to_device

    def shard_of(self, keys: ArrayLike) -> ArrayT:
        """int32 [N]: the shard that each key belongs to, also for keys not in the table.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.shard_of([4, 5])
        array([0, 1], dtype=int32)
        """
        rows, give = self._take(keys, self._key, "keys")
        return give(self._table.shard_of(rows))

    def stream_event_resource_create(self, device: DeviceLike) -> StreamEventResource:
        """A resource for one of the table's devices. They need none; no method takes one.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.stream_event_resource_create("cpu:1")
        StreamEventResource(device_id=1)
        """
        if device is None:
            raise TypeError(f"device: expected one of {self.device}, got None")
        name = self.devices[self._shard(device) or 0]
        return StreamEventResource(int(name.partition(":")[2]))

    def stream_event_resource_destroy(self, s_e_resource: StreamEventResource) -> None:
        """Destroys a resource. A second call does nothing.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> resource = m.stream_event_resource_create("cpu:1")
        >>> m.stream_event_resource_destroy(resource)
        >>> resource.device_id
        -1
        """
        if not isinstance(s_e_resource, StreamEventResource):
            raise TypeError(
                f"s_e_resource: expected a result of stream_event_resource_create(), "
                f"got {type(s_e_resource).__name__}"
            )
        s_e_resource.device_id = -1

    # Each device has its own buffers.

    def key_tensor(self, device: DeviceLike = None) -> ArrayT:
        """A view of one device's key buffer. `device` is optional if there is only one.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.key_tensor("cpu:1")[:2]
        array([7, 9])
        """
        return self._give_view(self._table.key_tensor(self._one_shard(device)))

    def value_tensor(self, value_buffer_id: int = 0, device: DeviceLike = None) -> ArrayT:
        """A view of one device's value buffer. `device` is optional if there is only one.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.value_tensor(0, "cpu:1")[:2]
        array([0.5, 2.5], dtype=float32)
        """
        column = integer(value_buffer_id, "value_buffer_id", None)
        if not 0 <= column < len(self._values):
            raise IndexError(
                f"value_buffer_id: expected 0 <= value_buffer_id < {len(self._values)}, "
                f"got {column}"
            )
        return self._give_view(self._table.value_tensor(self._one_shard(device), column))

    def value_tensors(self, device: DeviceLike = None) -> list[ArrayT]:
        """Views of one device's value buffers, one per column.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> len(m.value_tensors("cpu:1"))
        1
        """
        return [self.value_tensor(column, device) for column in range(len(self._values))]

    def compact(self) -> list[ArrayT]:  # type: ignore[override]
        """HashMap.compact on each shard. Returns a list of int32 [capacity of the shard].

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> _ = m.erase([7])
        >>> [moved.max() for moved in m.compact()]  # the last index of each shard
        [np.int32(0), np.int32(0)]
        """
        return [self._give(moved) for moved in self._table.compact()]

    # Devices.

    @property
    def devices(self) -> tuple[str, ...]:
        """The shards' devices, in order."""
        return tuple(self._table.devices)

    @property
    def device(self) -> str:
        """The shards' devices as one string, separated by commas."""
        return ", ".join(self.devices)

    @property
    def policy(self) -> Policy:
        """The rule that decides which shard a key belongs to."""
        return self._policy

    @property
    def is_cpu(self) -> bool:
        """Whether all shards live on the CPU."""
        return all(name.startswith("cpu") for name in self.devices)

    def to(self, device: DeviceLike, copy: bool = False) -> Self:
        """The table on one device or on several; itself if they do not change, unless `copy`.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.to("cpu:0").devices
        ('cpu:0',)
        """
        several = device if isinstance(device, (list, tuple)) else [device]
        names = device_names(several, "device")
        if not names:
            raise ValueError("device: expected at least one, such as 'cpu:0', got none")
        if tuple(names) == self.devices:
            return self.clone() if copy else self
        table = _core.ShardedHashMap.from_bytes(
            self._table.to_bytes(), names, core_policy(self._policy)
        )
        return self._with_policy(table, self._framework, self._policy)

    def cpu(self) -> Self:
        """The table on "cpu:0", "cpu:1", ..., with as many shards; itself if it is on the CPU.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.cpu() is m
        True
        """
        if self.is_cpu:
            return self
        return self.to([f"cpu:{shard}" for shard in range(len(self.devices))])

    def clone(self) -> Self:
        """An independent copy with the same buffer indices.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> m.clone().get([8])
        array([1.5], dtype=float32)
        """
        return self._with_policy(self._table.clone(), self._framework, self._policy)

    __copy__ = clone

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        how = self.devices, self._policy
        return _restore, (type(self), self._framework.name, self._payload(protocol), *how)

    # Files.

    def save(self, file_name: str | os.PathLike[str]) -> str:
        """Writes one ".thash" file with all shards and returns its name.

        If that fails, an existing file does not change.

        >>> import tempfile
        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = m.save(f"{folder}/map")
        >>> name.endswith("/map.thash")
        True
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
        """Reads a file of `save`, or of HashMap's `save`, onto any devices.

        Without `devices` the shards go to "cpu:0", "cpu:1", ..., as many as were saved. If the
        number of devices and the policy are the same, buffer indices stay the same; otherwise each
        key moves to the shard where it belongs. `max_bytes` is as in HashMap.load, for all shards
        together.

        >>> import tempfile
        >>> two = ["cpu:0", "cpu:1"]
        >>> m = tensorhash.ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     loaded = tensorhash.ShardedHashMap.load(m.save(f"{folder}/map"), ["cpu:0"])
        >>> loaded.devices, len(loaded)
        (('cpu:0',), 3)
        """
        path = _files.native_source(file_name, cls._suffix)
        names = [] if devices is None else device_names(devices)
        rule = None if policy is None else core_policy(policy)
        most = parse_max_bytes(max_bytes)
        table = _core.ShardedHashMap.load(os.fsencode(path), names, rule, most)
        if (table.eviction is not None) != cls._bounded:
            reader = "ShardedHashMap" if cls._bounded else "ShardedBoundedHashMap"
            raise ValueError(f'file_name: "{path}" is a file that {reader}\'s load reads')
        return cls._with_policy(table, framework(cls._default_framework), policy)

    def _shard(self, device: DeviceLike) -> int | None:
        if device is None:
            return None
        if isinstance(device, (int, np.integer)):
            device = f"{self.devices[0].partition(':')[0]}:{int(device)}"
        return self._table.shard_on(str(named_device(device)))

    def _one_shard(self, device: DeviceLike) -> int:
        shard = self._shard(device)
        if shard is None and len(self.devices) > 1:
            raise ValueError(
                f"device: expected one of {self.device}, got None: each has its own buffers; "
                f"get(keys) reads from all"
            )
        return shard or 0


def device_names(devices: Any, argument: str = "devices") -> list[str]:
    if isinstance(devices, (str, bytes)) or not isinstance(devices, Iterable):
        raise TypeError(f"{argument}: expected a list such as ['cpu:0', 'cpu:1'], got {devices!r}")
    return [_device_name(device, argument) for device in devices]


def _device_name(device: Any, argument: str) -> str:
    if isinstance(device, (int, np.integer)) and not isinstance(device, bool):
        device = f"{integer_device()}:{int(device)}"
    return str(named_device(device, argument)).lower()


def _restore(
    cls: type[ShardedTable[Any]], home: str, payload: Any, devices: Sequence[str], policy: Policy
) -> ShardedTable[Any]:
    table = _core.ShardedHashMap.from_bytes(payload, list(devices), core_policy(policy))
    return cls._with_policy(table, framework(home), policy)
