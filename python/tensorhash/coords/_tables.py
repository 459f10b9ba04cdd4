"""PackedHashTable, PackedHashTable128, CoordTable: from a coordinate to the row where it first came."""

from __future__ import annotations

import enum
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensorhash import _core
from tensorhash._arrays import to_numpy
from tensorhash._device import usable_device
from tensorhash._table import Array, ArrayLike, integer, seed_of
from tensorhash.coords._names import also_named
from tensorhash.coords._row_table import RowTable
from tensorhash.coords._rows import home_of, take_rows

if TYPE_CHECKING:
    from typing_extensions import Self


class SearchMode(enum.IntEnum):
    """How `search` reads slots; the answer is the same on every table.

    A table is always probed the way it was filled, whatever the mode. WARP_COOP looks at sixteen
    slots at a time.
    """

    LINEAR = 0
    DOUBLE_HASH = 1
    WARP_COOP = 2


class CoordTableMethods(RowTable):
    """What the tables of coordinates do. Coordinates are int32 or int64 [N, key_dim], any framework."""

    _table: _core.CoordTableBase

    @abstractmethod
    def _make(self, capacity: int | None, device: Any, **more: Any) -> None:
        """An empty table; without a capacity it grows."""

    def insert(self, coords: ArrayLike) -> None:
        """Appends the rows; a key that is there already keeps its first row.

        RuntimeError if the table has a fixed capacity and the new keys do not fit. A call that
        raises changes nothing.
        """
        rows, source = take_rows(coords, "coords", self._framework)
        self._table.insert(rows)
        self._framework = source

    def clear(self) -> None:
        """Drops all rows: the next one is row 0. A capacity that was given stays, and so does `key_dim`.

        `table.clear()` and then `table.insert(coords)` is what WarpConvNet's `insert` does.
        """
        self._table.clear()

    @also_named(query_coords="query", queries="query")
    def search(self, query: ArrayLike, mode: SearchMode | int = SearchMode.LINEAR) -> Array:
        """int32 [M]: the row where each coordinate first came, -1 where it never did.

        A coordinate out of range is simply not there.
        """
        rows, source = take_rows(query, "query", self._framework)
        return source.give(self._table.search(rows, _mode(mode)))

    def batched_search(self, queries: ArrayLike, offsets: ArrayLike) -> Array:
        """int32 [K, M]: the row of `queries[m] + offsets[k]`, -1 where there is none.

        Any number of offsets, [K, key_dim]; they are added to every column, the first too. A sum
        out of range is simply not there.
        """
        by, home = take_rows(offsets, "offsets", self._framework)
        rows, source = take_rows(queries, "queries", home)
        return source.give(self._table.batched_search(rows, by))

    @also_named(base_coords="base")
    def expand_with_offsets(self, base: ArrayLike, offsets: ArrayLike) -> None:
        """Appends `base[n] + offsets[k]` where that is new, offset by offset."""
        by, home = take_rows(offsets, "offsets", self._framework)
        rows, source = take_rows(base, "base", home)
        self._table.expand_with_offsets(rows, by)
        self._framework = source

    @property
    def keys_tensor(self) -> Array:
        """int64 [capacity]: the key of each slot, 0 where empty.

        NumPy gets a read-only view with strides, other frameworks a copy.
        """
        return self._give_held(self._table.keys_tensor(), "keys_tensor")

    @property
    def values_tensor(self) -> Array:
        """int32 [capacity]: the row of each slot, -1 where empty.

        NumPy gets a read-only view with strides, other frameworks a copy.
        """
        return self._give_held(self._table.values_tensor(), "values_tensor")

    @property
    def use_double_hash(self) -> bool:
        """Whether keys step by a stride of their own."""
        return self._table.use_double_hash()

    def _more(self) -> dict[str, Any]:
        """What `_make` takes besides capacity and device."""
        return {"use_double_hash": self.use_double_hash}

    def __getstate__(self) -> dict[str, Any]:
        return {
            "vector_keys": np.array(to_numpy(self._table.vector_keys())),
            "capacity": self.capacity,
            "grows": self._table.grows(),
            "framework": self._framework,
            **self._more(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        more = dict(state)
        rows, home = more.pop("vector_keys"), more.pop("framework")
        grows = more.pop("grows")
        # With the old number of slots, so that the copy has as many.
        self._make(more.pop("capacity"), "cpu", **more)
        if rows.shape[1] > 0:
            self._table.insert(rows)
        if grows:
            self._table.grow_on_demand()
        self._framework = home

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_entries={self.num_entries}, capacity={self.capacity}, "
            f"key_dim={self.key_dim}, use_double_hash={self.use_double_hash})"
        )


class _FromCoords(CoordTableMethods):
    """A table that is made from coordinates, and may probe by double hashing."""

    @classmethod
    def from_coords(
        cls,
        coords: ArrayLike,
        device: Any = None,
        capacity: int | None = None,
        use_double_hash: bool = False,
    ) -> Self:
        """A table of these rows. With a torch device the results of lists are torch's."""
        self = cls.__new__(cls)
        where = "cpu" if device is None else device
        self._make(_capacity(capacity), where, use_double_hash=use_double_hash)
        self.insert(coords)
        return self


def _mode(mode: Any) -> int:
    number = integer(mode, "mode", None)
    if number not in tuple(SearchMode):
        raise ValueError(f"mode: expected LINEAR, DOUBLE_HASH or WARP_COOP (0, 1, 2), got {number}")
    return number


def _capacity(capacity: Any) -> int | None:
    return None if capacity is None else integer(capacity, "capacity")


def _columns(key_dim: Any) -> int | None:
    columns = None if key_dim is None else integer(key_dim, "key_dim", None)
    if columns is not None and not 1 <= columns <= 7:
        raise ValueError(f"key_dim: expected 1 to 7, got {columns}")
    return columns


class PackedHashTable(_FromCoords):
    """Coordinates (b, x, y, z), each a 64-bit key. Its hash is published and has no seed.

    `BATCH_MAX`, `COORD_MIN` and `COORD_MAX` are the limits; ValueError names the row, column and
    value that is beyond. A table made with a capacity takes that many distinct keys, rounded up to
    a power of two, and raises RuntimeError on the next; `from_coords` without one grows.
    """

    BATCH_MAX: ClassVar[int] = 511
    COORD_MIN: ClassVar[int] = -131072
    COORD_MAX: ClassVar[int] = 131071

    def __init__(self, capacity: int, device: Any = "cpu", use_double_hash: bool = False) -> None:
        self._make(integer(capacity, "capacity"), device, use_double_hash=use_double_hash)

    def _make(self, capacity: int | None, device: Any, use_double_hash: bool = False) -> None:
        self._table = _core.PackedHashTable(capacity, usable_device(device), bool(use_double_hash))
        self._framework = home_of(device)


class CoordTable(_FromCoords):
    """Coordinates of 1 to 7 columns over all of int32: the key is as wide as the data asks for.

    64 bits while everything fits PackedHashTable's limits, else 128 bits for four columns, else
    the engine's wide keys. Without `key_dim` the first batch says how many columns there are.
    Which slots keys get follows from `seed`, a random one unless it is given; no answer does.
    """

    def __init__(
        self,
        capacity: int | None = None,
        device: Any = "cpu",
        use_double_hash: bool = False,
        key_dim: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        columns = _columns(key_dim)
        self._make(
            _capacity(capacity),
            device,
            use_double_hash=use_double_hash,
            key_dim=columns,
            seed=seed_of(seed),
        )

    def _make(
        self,
        capacity: int | None,
        device: Any,
        use_double_hash: bool = False,
        key_dim: int | None = None,
        seed: int | None = None,
    ) -> None:
        where = usable_device(device)
        self._table = _core.CoordTable(capacity, where, bool(use_double_hash), key_dim, seed)
        self._framework = home_of(device)

    @property
    def key(self) -> str:
        """What stands for a coordinate: "packed64", "packed128" or "wide"."""
        return self._table.key()


class PackedHashTable128(CoordTableMethods):
    """Coordinates of 1 to 7 columns, each from `COORD_MIN` to `COORD_MAX`.

    ValueError names the row, column and value that is beyond. Repeated rows may come, as in the
    other tables. A capacity is honoured as by `PackedHashTable`; `from_keys` without one grows.
    """

    DIM: ClassVar[int] = 7
    COORD_BITS: ClassVar[int] = 17
    COORD_MIN: ClassVar[int] = -65536
    COORD_MAX: ClassVar[int] = 65535

    def __init__(self, capacity: int, device: Any = "cpu", key_dim: int = DIM) -> None:
        self._make(integer(capacity, "capacity"), device, key_dim=_columns(key_dim))

    @classmethod
    def from_keys(
        cls,
        coords: ArrayLike,
        device: Any = None,
        capacity: int | None = None,
        key_dim: int | None = None,
    ) -> Self:
        """A table of these rows; `key_dim` is their columns unless it says otherwise."""
        self = cls.__new__(cls)
        where = "cpu" if device is None else device
        self._make(_capacity(capacity), where, key_dim=_columns(key_dim))
        self.insert(coords)
        return self

    def _make(self, capacity: int | None, device: Any, key_dim: int | None = None) -> None:
        self._table = _core.PackedHashTable128(capacity, usable_device(device), key_dim)
        self._framework = home_of(device)

    def _more(self) -> dict[str, Any]:
        return {}
