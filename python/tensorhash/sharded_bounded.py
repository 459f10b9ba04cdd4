"""ShardedBoundedHashMap: a bounded table over several devices, each with its share of the bound."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tensorhash import _core
from tensorhash._table import DtypeLike, Element, ShapeLike, integer
from tensorhash.bounded import BoundedHashMap
from tensorhash.hash_map import value_columns
from tensorhash.optim import word
from tensorhash.sharded import Policy, ShardedHashMap, _core_policy, _device_names

if TYPE_CHECKING:
    from typing_extensions import Self


class ShardedBoundedHashMap(BoundedHashMap, ShardedHashMap):
    """A ShardedHashMap of at most `max_capacity` keys in all; what has to leave is returned.

    >>> cache = ShardedBoundedHashMap(
    ...     4, "int64", (), "float32", (), devices=["cpu:0", "cpu:1"], policy="mod"
    ... )
    >>> _ = cache.insert([0, 2, 1], [0.0, 2.0, 1.0])
    >>> indices, inserted, evicted = cache.insert([4], [4.0])  # the even shard has its two
    >>> evicted.keys, len(cache)
    (array([0]), 3)

    Each shard holds an equal share of `max_capacity`, the first ones one more if it does not divide.
    A key that its shard has no room for makes one of that shard leave, by BoundedHashMap's rules,
    even while other shards have room. Those that leave come in the order of the rows for which they
    did. The rest is BoundedHashMap's and ShardedHashMap's; a file goes back onto as many devices.
    """

    _bounded = True

    def __init__(
        self,
        max_capacity: int,
        key_dtype: DtypeLike,
        key_element_shape: ShapeLike,
        value_dtype: DtypeLike | Sequence[DtypeLike] | None = None,
        value_element_shape: ShapeLike | Sequence[ShapeLike] | None = None,
        *,
        value_dtypes: Sequence[DtypeLike] | None = None,
        value_element_shapes: Sequence[ShapeLike] | None = None,
        devices: Sequence[Any],
        policy: Policy = "hash",
        eviction: str = "lru",
        seed: int | None = None,
    ) -> None:
        one = (value_dtype, value_element_shape)
        columns = value_columns(one, (value_dtypes, value_element_shapes))
        self._policy = policy
        self._how = word(eviction, "eviction")
        rows = integer(max_capacity, "max_capacity")
        self._create(rows, (key_dtype, key_element_shape), columns, devices, seed)

    def _make(
        self, rows: int, key: Element, values: list[Element], device: Any, seed: int | None
    ) -> Any:
        names = _device_names(device)
        policy = _core_policy(self._policy)
        return _core.ShardedMap.bounded(rows, key, values, self._how, names, policy, seed)

    # Verbs of several devices that have no place for what is evicted.

    def set(self, keys: Any, values: Any = None, *, list_values: Any = None) -> NoReturn:
        """Not for bounded tables: `insert_or_assign` overwrites, and returns what it evicts."""
        raise ValueError("set: not for a bounded table; insert_or_assign returns what it evicts")

    def insert_from_cpu(
        self, device: Any, keys: Any, values: Any = None, *, list_values: Any = None
    ) -> NoReturn:
        """Not for bounded tables: `insert` sends each key where it belongs."""
        raise ValueError("insert_from_cpu: not for a bounded table; insert returns what it evicts")

    @classmethod
    def load(
        cls,
        file_name: str | os.PathLike[str],
        devices: Sequence[Any] | None = None,
        policy: Policy | None = None,
        *,
        max_bytes: int | None = None,
    ) -> Self:
        """Reads what `save` wrote, onto as many devices; the next eviction would have been the same."""
        return super(BoundedHashMap, cls).load(file_name, devices, policy, max_bytes=max_bytes)
