"""PackedHashTable, PackedHashTable128 and CoordTable: tables from a coordinate to its first row."""

from __future__ import annotations

import enum
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensorhash import _core
from tensorhash._arguments import integer, optional_integer, parse_seed
from tensorhash._device import usable_device
from tensorhash._frameworks import Framework, copied_to_numpy
from tensorhash._places import device_of
from tensorhash._types import Array, ArrayLike, DeviceLike
from tensorhash.coords._names import also_named
from tensorhash.coords._row_table import RowTable
from tensorhash.coords._rows import home_of, take_rows

if TYPE_CHECKING:
    from typing_extensions import Self


class SearchMode(enum.IntEnum):
    """How `search` reads slots. It does not change the result.

    A search always probes the table the way it was filled. WARP_COOP reads 16 slots at a time.

    >>> table = PackedHashTable.from_coords([[0, 1, 2, 3]])
    >>> table.search([[0, 1, 2, 3]], SearchMode.WARP_COOP)
    array([0], dtype=int32)
    """

    LINEAR = 0
    DOUBLE_HASH = 1
    WARP_COOP = 2


class CoordTableMethods(RowTable):
    """The methods of the coordinate tables. Coordinates are int32 or int64 [N, key_dim]."""

    _table: _core.CoordTableBase

    @abstractmethod
    def _make(self, capacity: int | None, device: DeviceLike, *_: Any, **more: Any) -> None:
        """Makes the empty core table; without a capacity it grows."""

    def insert(self, coords: ArrayLike) -> None:
        """Appends rows. A key that is already there keeps its first row.

        RuntimeError if the table has a fixed capacity and the new keys do not fit. A call that
        raises changes nothing.

        >>> table = PackedHashTable.from_coords([[0, 1, 2, 3], [0, 4, 5, 6]])
        >>> table.insert([[0, 7, 8, 9]])
        >>> table.num_entries
        3
        """
        self._insert(*take_rows(coords, "coords", self._framework))

    def _insert(self, rows: Any, source: Framework) -> None:
        self._table.insert(rows)
        self._framework = source

    def clear(self) -> None:
        """Removes all rows; the next one is row 0. A given capacity and `key_dim` stay.

        WarpConvNet's `insert` corresponds to `table.clear()` followed by `table.insert(coords)`.

        >>> table = PackedHashTable.from_coords([[0, 1, 2, 3], [0, 4, 5, 6]])
        >>> table.clear()
        >>> table.num_entries
        0
        """
        self._table.clear()

    @also_named(query_coords="query", queries="query")
    def search(self, query: ArrayLike, mode: SearchMode | int = SearchMode.LINEAR) -> Array:
        """Finds coordinates: returns int32 [M], the first row of each one, or -1 if missing.

        A coordinate out of range is missing, not an error.

        >>> table = PackedHashTable.from_coords([[0, 1, 2, 3], [0, 4, 5, 6]])
        >>> table.search([[0, 4, 5, 6], [0, 0, 0, 0]])
        array([ 1, -1], dtype=int32)
        """
        rows, source = take_rows(query, "query", self._framework)
        return source.give(self._table.search(rows, _mode(mode)))

    def batched_search(self, queries: ArrayLike, offsets: ArrayLike) -> Array:
        """Finds `queries[m] + offsets[k]`: returns int32 [K, M], the first row or -1 if missing.

        `offsets` is [K, key_dim] and is added to all columns, including the first. A sum out of
        range is missing, not an error.

        >>> table = PackedHashTable.from_coords([[0, 1, 2, 3], [0, 4, 5, 6]])
        >>> table.batched_search([[0, 1, 2, 3]], [[0, 0, 0, 0], [0, 3, 3, 3], [0, 1, 0, 0]])
        array([[ 0],
               [ 1],
               [-1]], dtype=int32)
        """
        by, home = take_rows(offsets, "offsets", self._framework)
        rows, source = take_rows(queries, "queries", home)
        return source.give(self._table.batched_search(rows, by))

    @also_named(base_coords="base")
    def expand_with_offsets(self, base: ArrayLike, offsets: ArrayLike) -> None:
        """Appends each `base[n] + offsets[k]` that is new, offset by offset.

        >>> table = PackedHashTable.from_coords([[0, 1, 2, 3], [0, 4, 5, 6]])
        >>> table.expand_with_offsets([[0, 1, 2, 3]], [[0, 3, 3, 3], [0, 1, 0, 0]])
        >>> table.vector_keys[2:]  # 4, 5, 6 was there
        array([[0, 2, 2, 3]], dtype=int32)
        """
        by, home = take_rows(offsets, "offsets", self._framework)
        rows, source = take_rows(base, "base", home)
        self._table.expand_with_offsets(rows, by)
        self._framework = source

    @property
    def keys_tensor(self) -> Array:
        """int64 [capacity]: the key of each slot, 0 if empty.

        A strided read-only view in NumPy, a copy in other frameworks.
        """
        return self._give_held(self._table.keys_tensor(), "keys_tensor")

    @property
    def values_tensor(self) -> Array:
        """int32 [capacity]: the row of each slot, -1 if empty.

        A strided read-only view in NumPy, a copy in other frameworks.
        """
        return self._give_held(self._table.values_tensor(), "values_tensor")

    @property
    def use_double_hash(self) -> bool:
        """Whether the table uses double hashing: each key probes with its own stride."""
        return self._table.use_double_hash()

    def _more(self) -> dict[str, Any]:
        """The arguments of `_make` besides capacity and device."""
        return {"use_double_hash": self.use_double_hash}

    def __getstate__(self) -> dict[str, Any]:
        return {
            "vector_keys": np.array(copied_to_numpy(self._table.vector_keys())),
            "capacity": self.capacity,
            "grows": self._table.grows(),
            "framework": self._framework,
            **self._more(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        more = dict(state)
        rows, home = more.pop("vector_keys"), more.pop("framework")
        grows = more.pop("grows")
        # Pass the capacity even if the table grows, so that the copy has as many slots.
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
    """The base of tables that have `from_coords` and support double hashing."""

    @classmethod
    def from_coords(
        cls,
        coords: ArrayLike,
        device: DeviceLike = None,
        capacity: int | None = None,
        use_double_hash: bool = False,
    ) -> Self:
        """Makes a table of these rows, on their device unless `device` is given.

        With a torch.device, lists give torch tensors as results.

        >>> PackedHashTable.from_coords([[0, 1, 2, 3], [0, 4, 5, 6]]).num_entries
        2
        """
        self = cls.__new__(cls)
        rows, source = take_rows(coords, "coords", home_of(device))
        where = device_of(rows) if device is None else device
        self._make(optional_integer(capacity, "capacity"), where, use_double_hash=use_double_hash)
        self._insert(rows, source)
        return self


def _mode(mode: Any) -> int:
    number = integer(mode, "mode", None)
    if number not in tuple(SearchMode):
        raise ValueError(f"mode: expected LINEAR, DOUBLE_HASH or WARP_COOP (0, 1, 2), got {number}")
    return number


def _columns(key_dim: Any) -> int | None:
    columns = optional_integer(key_dim, "key_dim", None)
    if columns is not None and not 1 <= columns <= 7:
        raise ValueError(f"key_dim: expected 1 to 7, got {columns}")
    return columns


class PackedHashTable(_FromCoords):
    """A table of coordinates (b, x, y, z), packed into 64-bit keys.

    Its hash is published and has no seed. The limits are `BATCH_MAX`, `COORD_MIN` and `COORD_MAX`;
    a ValueError names the row, column and value of a number beyond them. A table made with a
    capacity holds that many distinct keys, rounded up to a power of two, and raises RuntimeError on
    the next. `from_coords` without one grows.

    >>> table = PackedHashTable.from_coords([[0, 1, 2, 3], [0, 4, 5, 6], [0, 1, 2, 3]])
    >>> table.search([[0, 4, 5, 6], [0, 1, 2, 3], [0, 9, 9, 9]])
    array([ 1,  0, -1], dtype=int32)
    >>> table.num_entries, table.unique_index
    (3, array([0, 1], dtype=int32))
    """

    BATCH_MAX: ClassVar[int] = 511
    COORD_MIN: ClassVar[int] = -131072
    COORD_MAX: ClassVar[int] = 131071

    def __init__(
        self, capacity: int, device: DeviceLike = "cpu", use_double_hash: bool = False
    ) -> None:
        self._make(integer(capacity, "capacity"), device, use_double_hash=use_double_hash)

    def _make(
        self, capacity: int | None, device: DeviceLike, use_double_hash: bool = False
    ) -> None:
        self._table = _core.PackedHashTable(capacity, usable_device(device), bool(use_double_hash))
        self._framework = home_of(device)


class CoordTable(_FromCoords):
    """A table of int32 coordinates with 1 to 7 columns; its keys are as wide as the data needs.

    Keys have 64 bits while all coordinates are within PackedHashTable's limits, else 128 bits for
    four columns, else they are wide keys. Without `key_dim` the first batch sets the number of
    columns. `seed`, random by default, decides which slots keys get; no result depends on it.

    >>> table = CoordTable.from_coords([[0, 10**9, -5], [0, 7, 7]])
    >>> table.search([[0, 7, 7], [0, 7, 8]])
    array([ 1, -1], dtype=int32)
    """

    def __init__(
        self,
        capacity: int | None = None,
        device: DeviceLike = "cpu",
        use_double_hash: bool = False,
        key_dim: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        columns = _columns(key_dim)
        self._make(
            optional_integer(capacity, "capacity"),
            device,
            use_double_hash=use_double_hash,
            key_dim=columns,
            seed=parse_seed(seed),
        )

    def _make(
        self,
        capacity: int | None,
        device: DeviceLike,
        use_double_hash: bool = False,
        key_dim: int | None = None,
        seed: int | None = None,
    ) -> None:
        where = usable_device(device)
        self._table = _core.CoordTable(capacity, where, bool(use_double_hash), key_dim, seed)
        self._framework = home_of(device)

    @property
    def key(self) -> str:
        """The key format: "packed64", "packed128" or "wide"."""
        return self._table.key()


class PackedHashTable128(CoordTableMethods):
    """A table of coordinates with 1 to 7 columns, each from `COORD_MIN` to `COORD_MAX`.

    A ValueError names the row, column and value of a number beyond these limits. Rows may repeat,
    as in the other tables. A capacity works as in `PackedHashTable`; `from_keys` without one grows.

    >>> table = PackedHashTable128.from_keys([[0, 1, 2, 3, 4], [0, 1, 2, 3, 5]])
    >>> table.batched_search([[0, 1, 2, 3, 4]], [[0, 0, 0, 0, 0], [0, 0, 0, 0, 1]])
    array([[0],
           [1]], dtype=int32)
    """

    DIM: ClassVar[int] = 7
    COORD_BITS: ClassVar[int] = 17
    COORD_MIN: ClassVar[int] = -65536
    COORD_MAX: ClassVar[int] = 65535

    def __init__(self, capacity: int, device: DeviceLike = "cpu", key_dim: int = DIM) -> None:
        self._make(integer(capacity, "capacity"), device, key_dim=_columns(key_dim))

    @classmethod
    def from_keys(
        cls,
        coords: ArrayLike,
        device: DeviceLike = None,
        capacity: int | None = None,
        key_dim: int | None = None,
    ) -> Self:
        """Makes a table of these rows; `key_dim` defaults to their number of columns.

        It is on the device of the rows unless `device` is given.

        >>> PackedHashTable128.from_keys([[1, 2, 3, 4, 5]]).search([[1, 2, 3, 4, 5]])
        array([0], dtype=int32)
        """
        self = cls.__new__(cls)
        rows, source = take_rows(coords, "coords", home_of(device))
        where = device_of(rows) if device is None else device
        self._make(optional_integer(capacity, "capacity"), where, key_dim=_columns(key_dim))
        self._insert(rows, source)
        return self

    def _make(self, capacity: int | None, device: DeviceLike, key_dim: int | None = None) -> None:
        self._table = _core.PackedHashTable128(capacity, usable_device(device), key_dim)
        self._framework = home_of(device)

    def _more(self) -> dict[str, Any]:
        return {}
