"""TorchHashTable: a table of integer rows of any width, hashed with Murmur."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash import _core
from tensorhash._arguments import integer, optional_integer
from tensorhash._device import usable_device
from tensorhash._frameworks import NUMPY, Framework, copied_to_numpy, framework
from tensorhash._places import device_of
from tensorhash._types import Array, ArrayLike, DeviceLike
from tensorhash.coords._row_table import RowTable
from tensorhash.coords._rows import home_of, take_rows

if TYPE_CHECKING:
    from typing_extensions import Self

_COUNTS = ("capacity", "key_dim", "num_entries")
_FIELDS = ("table_kvs", "vec_keys", *_COUNTS)


class TorchHashTable(RowTable):
    """A table from an integer vector to its first row in the table.

    Vectors are int32 with any number of columns. For coordinates, `PackedHashTable` and
    `CoordTable` are faster. A capacity works as in `PackedHashTable`; `from_keys` without one
    grows.

    >>> table = TorchHashTable.from_keys([[3, 4], [5, 6], [3, 4]])
    >>> table.search([[5, 6], [3, 4], [0, 0]])
    array([ 1,  0, -1], dtype=int32)
    """

    _table: _core.TorchHashTable

    def __init__(self, capacity: int, device: DeviceLike = "cpu") -> None:
        rows = integer(capacity, "capacity")
        self._table = _core.TorchHashTable(rows, usable_device(device))
        self._framework = home_of(device)

    @classmethod
    def from_keys(
        cls, vec_keys: ArrayLike, device: DeviceLike = None, capacity: int | None = None
    ) -> Self:
        """Makes a table of these rows, on their device unless `device` is given.

        >>> table = TorchHashTable.from_keys([[3, 4], [5, 6]])
        >>> table.num_entries
        2
        """
        self = cls.__new__(cls)
        rows, self._framework = take_rows(vec_keys, "vec_keys", home_of(device))
        where = device_of(rows) if device is None else usable_device(device)
        wanted = optional_integer(capacity, "capacity")
        self._table = _core.TorchHashTable.from_keys(rows, wanted, where)
        return self

    def insert(self, vec_keys: ArrayLike) -> None:
        """Appends rows. A key that is already there keeps its first row.

        >>> table = TorchHashTable.from_keys([[3, 4], [5, 6]])
        >>> table.insert([[7, 8]])
        >>> table.num_entries
        3
        """
        rows, source = take_rows(vec_keys, "vec_keys", self._framework)
        self._table.insert(rows)
        self._framework = source

    def search(self, search_keys: ArrayLike) -> Array:
        """Finds keys: returns int32 [M], the first row of each key, or -1 if missing.

        >>> table = TorchHashTable.from_keys([[3, 4], [5, 6]])
        >>> table.search([[5, 6], [0, 0]])
        array([ 1, -1], dtype=int32)
        """
        rows, source = take_rows(search_keys, "search_keys", self._framework)
        return source.give(self._table.search(rows))

    @property
    def unique_vector_keys(self) -> Array:
        """int32 [distinct, key_dim]: the rows of `vector_keys` at `unique_index`."""
        taken = _core.take_rows(self._table.vector_keys(), self._table.unique_index())
        return self._give_result(taken)

    def to_dict(self) -> dict[str, object]:
        """The whole table as a dict of numbers, strings and NumPy arrays, for `from_dict`.

        It describes a table on the CPU, also if this one is on a device.

        >>> table = TorchHashTable.from_keys([[3, 4], [5, 6]])
        >>> table.to_dict()["num_entries"]
        2
        """
        keys = copied_to_numpy(self._table.vector_keys())
        return {
            "table_kvs": copied_to_numpy(self._table.table_kvs()),
            "vec_keys": keys.copy() if self.key_dim > 0 else None,
            "hash_method": "murmur",
            "capacity": self.capacity,
            "key_dim": self.key_dim,
            "device": "cpu:0",
            "num_entries": self.num_entries,
            "grows": self._table.grows(),
            "framework": self._framework.name,
        }

    def from_dict(self, data: Mapping[str, Any]) -> Self:
        """Replaces this table with the one that `to_dict` described, and returns itself.

        Results use the framework of that table, which is imported if necessary.

        >>> table = TorchHashTable.from_keys([[3, 4], [5, 6]])
        >>> TorchHashTable(16).from_dict(table.to_dict()).search([[5, 6]])
        array([1], dtype=int32)
        """
        missing = [name for name in _FIELDS if name not in data]
        if missing:
            raise ValueError(f"data: expected a result of to_dict, got no {', '.join(missing)}")
        keys = data["vec_keys"]
        rows = np.empty(0, np.int32) if keys is None else np.asarray(keys)
        given = [integer(data[name], f"data[{name!r}]") for name in _COUNTS]
        capacity = given[0]
        home = _framework_named(data.get("framework", self._framework.name))
        restored = _core.TorchHashTable.restore(rows, capacity, bool(data.get("grows", False)))
        made = [restored.capacity(), restored.key_dim(), restored.num_entries()]
        first = copied_to_numpy(restored.unique_index())
        if given != made or not _are_slots(np.asarray(data["table_kvs"]), capacity, first):
            raise ValueError(
                "data: capacity, key_dim, num_entries and table_kvs do not belong to vec_keys"
            )
        self._table = restored
        self._framework = home
        return self

    def __getstate__(self) -> dict[str, object]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._framework = NUMPY
        self.from_dict(state)

    def __repr__(self) -> str:
        return (
            f"TorchHashTable(num_entries={self.num_entries}, capacity={self.capacity}, "
            f"key_dim={self.key_dim})"
        )


def _framework_named(name: Any) -> Framework:
    try:
        return framework(name)
    except (KeyError, TypeError):
        raise ValueError(
            f"data['framework']: expected the name of a framework, got {name!r}"
        ) from None


def _are_slots(kvs: Any, capacity: int, first: Any) -> bool:
    """Whether the slots hold each row of `first`, which ascends, exactly once."""
    if kvs.shape != (capacity, 2) or kvs.dtype.kind not in "iu":
        return False
    slots, rows = kvs[:, 0], kvs[:, 1]
    used = rows != -1
    return np.array_equal(used, slots != -1) and np.array_equal(np.sort(rows[used]), first)
