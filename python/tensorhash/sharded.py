"""ShardedHashMap: one table over several devices. Each device holds a part of the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorhash import _core
from tensorhash._policies import Policy, core_policy
from tensorhash._sharded import ShardedTable, StreamEventResource, device_names
from tensorhash._types import ArrayLike, ArrayT, DeviceLike, DtypeLike, Element, ShapeLike
from tensorhash.hash_map import HashMap

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Policy", "ShardedHashMap", "StreamEventResource"]


class ShardedHashMap(ShardedTable[ArrayT], HashMap[ArrayT]):
    """A HashMap split into shards, one per device, that act as one table.

    >>> m = ShardedHashMap(10, "int64", (), "float32", (), devices=["cpu:0", "cpu:1"], policy="mod")
    >>> indices, inserted = m.insert([7, 8, 7], [0.5, 1.5, 2.5])
    >>> indices, inserted  # shard << 32 | index in the shard
    (array([4294967296,          0, 4294967296]), array([ True,  True, False]))
    >>> m.get([8, 9], default=-1), m.get_size("cpu:1")
    (array([ 1.5, -1. ], dtype=float32), 1)

    It has HashMap's methods and contract: a batch acts as if its rows were applied in order, and a
    call that raises changes no shard. Buffer indices are int64: shard << 32 | index in the shard.
    `policy` decides which shard a key belongs to. "hash" spreads any keys evenly. "mod" takes
    integer keys modulo the number of shards. A function must always give equal keys the same shard;
    in float keys it sees 0 for -0, and only one kind of NaN. Shards on GPUs, such as
    devices=["cuda:0", "cuda:1"], take "hash" and "mod". An integer in `devices` means a GPU if
    there is one, else a shard on the CPU. For a table with a `max_capacity`, see
    `ShardedBoundedHashMap`.
    """

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
        devices: Sequence[DeviceLike],
        policy: Policy = "hash",
        seed: int | None = None,
    ) -> None:
        key = (key_dtype, key_element_shape)
        one = (value_dtype, value_element_shape)
        several = (value_dtypes, value_element_shapes)
        self._policy = policy
        self._create_map(init_capacity, key, one, several, devices, seed)

    def _make(
        self, rows: int, key: Element, values: list[Element], device: Any, seed: int | None
    ) -> _core.ShardedHashMap:
        policy = core_policy(self._policy)
        return _core.ShardedHashMap(rows, key, values, device_names(device), policy, seed)

    @classmethod
    def from_items(  # type: ignore[override]
        cls,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = (),
        *,
        devices: Sequence[DeviceLike],
        policy: Policy = "hash",
    ) -> Self:
        """A map of keys[i] -> values[i] on these devices, as HashMap.from_items.

        >>> m = ShardedHashMap.from_items(np.array([7, 8]), np.array([0.5, 1.5]), devices=["cpu:0", "cpu:1"])
        >>> m.get([8])
        array([1.5])
        """
        rows, columns, home = cls._free_items(keys, values)
        names = device_names(devices)
        table = _core.ShardedHashMap.from_items(rows, columns, names, core_policy(policy))
        return cls._with_policy(table, home, policy)

    def set(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> ArrayT:
        """Overwrites the values of existing keys; of equal keys the last row wins.

        Returns bool [N]: which keys were in the table. Rows with other keys change nothing.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> _ = m.insert([7], [0.5])
        >>> m.set([7, 8], [2.5, 3.5])
        array([ True, False])
        >>> m.items()
        (array([7]), array([2.5], dtype=float32))
        """
        rows, give = self._take(keys, self._key, "keys")
        return give(self._table.assign(rows, self._take_values(values, list_values, rows)))

    def insert_from_cpu(
        self,
        device: DeviceLike,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[ArrayT, ArrayT]:
        """`insert` for keys that all belong to `device`; ValueError names a row that does not.

        If `device` is None, each key goes to the device that it belongs to.

        >>> two = ["cpu:0", "cpu:1"]
        >>> m = ShardedHashMap(0, "int64", (), "float32", (), devices=two, policy="mod")
        >>> m.insert_from_cpu("cpu:1", [7, 9], [0.5, 1.5])
        (array([4294967296, 4294967297]), array([ True,  True]))
        """
        shard = self._shard(device)
        if shard is None:
            return self.insert(keys, values, list_values=list_values)
        rows, give = self._take(keys, self._key, "keys")
        columns = self._take_values(values, list_values, rows)
        indices, inserted = self._table.insert_into(shard, rows, columns)
        return give(indices), give(inserted)
