"""ShardedBoundedHashMap: a bounded table over several devices, each with a share of the limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tensorhash import _core
from tensorhash._arguments import integer, word
from tensorhash._policies import Policy, core_policy
from tensorhash._sharded import ShardedTable, device_names
from tensorhash._types import ArrayT, DeviceLike, DtypeLike, Element, ShapeLike
from tensorhash.bounded import BoundedHashMap


class ShardedBoundedHashMap(ShardedTable[ArrayT], BoundedHashMap[ArrayT]):
    """A table of at most `max_capacity` keys over several devices, which returns what it evicts.

    >>> cache = ShardedBoundedHashMap(
    ...     4, "int64", (), "float32", (), devices=["cpu:0", "cpu:1"], policy="mod"
    ... )
    >>> _ = cache.insert([0, 2, 1], [0.0, 2.0, 1.0])
    >>> indices, inserted, evicted = cache.insert([4], [4.0])  # the shard of even keys is full
    >>> evicted.keys, len(cache)
    (array([0]), 3)

    Each shard holds an equal share of `max_capacity`; the first shards hold one more if it does not
    divide evenly. A full shard evicts one of its own entries for a new key, by BoundedHashMap's
    rules, even if other shards have room. Evicted entries are in the order of the rows that evicted
    them. The rest is as in BoundedHashMap and ShardedHashMap. `load` needs as many devices as were
    saved.
    """

    _table: _core.ShardedHashMap  # type: ignore[assignment]
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
        devices: Sequence[DeviceLike],
        policy: Policy = "hash",
        eviction: str = "lru",
        seed: int | None = None,
    ) -> None:
        key = (key_dtype, key_element_shape)
        one = (value_dtype, value_element_shape)
        several = (value_dtypes, value_element_shapes)
        self._policy = policy
        self._how = word(eviction, "eviction")
        rows = integer(max_capacity, "max_capacity")
        self._create_map(rows, key, one, several, devices, seed)

    def _make(
        self, rows: int, key: Element, values: list[Element], device: Any, seed: int | None
    ) -> _core.ShardedHashMap:
        names = device_names(device)
        policy = core_policy(self._policy)
        return _core.ShardedHashMap.bounded(rows, key, values, self._how, names, policy, seed)

    # In ShardedHashMap these return no evicted entries.

    def set(self, keys: Any, values: Any = None, *, list_values: Any = None) -> NoReturn:
        """Always raises: use `insert_or_assign`, which overwrites and returns what it evicts.

        >>> cache = ShardedBoundedHashMap(2, "int64", (), "float32", (), devices=["cpu:0"])
        >>> cache.set([7], [0.5])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: set: not supported by a bounded table; use insert_or_assign, ...
        """
        raise ValueError(
            "set: not supported by a bounded table; "
            "use insert_or_assign, which returns what it evicts"
        )

    def insert_from_cpu(
        self, device: Any, keys: Any, values: Any = None, *, list_values: Any = None
    ) -> NoReturn:
        """Always raises: use `insert`, which routes each key and returns what it evicts.

        >>> cache = ShardedBoundedHashMap(2, "int64", (), "float32", (), devices=["cpu:0"])
        >>> cache.insert_from_cpu("cpu:0", [7], [0.5])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: insert_from_cpu: not supported by a bounded table; use insert, ...
        """
        raise ValueError(
            "insert_from_cpu: not supported by a bounded table; "
            "use insert, which returns what it evicts"
        )
