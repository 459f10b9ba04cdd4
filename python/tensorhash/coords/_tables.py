"""PackedHashTable and CoordTable: from a coordinate to the row where it first came."""

from __future__ import annotations

import enum
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from tensorhash import _core
from tensorhash._arrays import NUMPY
from tensorhash._device import usable_device
from tensorhash._table import Array, ArrayLike, integer, seed_of
from tensorhash.coords._row_table import RowTable
from tensorhash.coords._rows import take_rows

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


class _CoordTable(RowTable):
    """What both tables do. Coordinates are int32 or int64 [N, key_dim], of any framework."""

    _table: _core.CoordTableBase

    @abstractmethod
    def _make(self, capacity: int | None, device: Any, use_double_hash: bool) -> None:
        """An empty table; without a capacity it grows."""

    @classmethod
    def from_coords(
        cls,
        coords: ArrayLike,
        device: Any = None,
        capacity: int | None = None,
        use_double_hash: bool = False,
    ) -> Self:
        """A table of these rows."""
        self = cls.__new__(cls)
        self._make(_capacity(capacity), "cpu" if device is None else device, use_double_hash)
        self.insert(coords)
        return self

    def insert(self, coords: ArrayLike) -> None:
        """Appends the rows; a key that is there already keeps its first row.

        RuntimeError if the table has a fixed capacity and the new keys do not fit. A call that
        raises changes nothing.
        """
        rows, source = take_rows(coords, "coords", self._framework)
        self._table.insert(rows)
        if self._table.num_entries():
            self._framework = source

    def search(self, query: ArrayLike, mode: SearchMode | int = SearchMode.LINEAR) -> Array:
        """int32 [M]: the row where each coordinate first came, -1 where it never did.

        A coordinate out of range is simply not there.
        """
        rows, source = take_rows(query, "query", self._framework)
        return source.give(self._table.search(rows, _mode(mode)))

    def expand_with_offsets(self, base: ArrayLike, offsets: ArrayLike) -> None:
        """Appends `base[n] + offsets[k]` where that is new, offset by offset."""
        rows, source = take_rows(base, "base", self._framework)
        by, _ = take_rows(offsets, "offsets", self._framework)
        self._table.expand_with_offsets(rows, by)
        if self._table.num_entries():
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

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_entries={self.num_entries}, capacity={self.capacity}, "
            f"key_dim={self.key_dim}, use_double_hash={self.use_double_hash})"
        )


def _mode(mode: Any) -> int:
    number = integer(mode, "mode", None)
    if number not in tuple(SearchMode):
        raise ValueError(f"mode: expected LINEAR, DOUBLE_HASH or WARP_COOP (0, 1, 2), got {number}")
    return number


def _capacity(capacity: Any) -> int | None:
    return None if capacity is None else integer(capacity, "capacity")


class PackedHashTable(_CoordTable):
    """Coordinates (b, x, y, z), each a 64-bit key. Its hash is published and has no seed.

    `BATCH_MAX`, `COORD_MIN` and `COORD_MAX` are the limits; ValueError names the row, column and
    value that is beyond. A table made with a capacity takes that many distinct keys, rounded up to
    a power of two, and raises RuntimeError on the next; `from_coords` without one grows.
    """

    BATCH_MAX: ClassVar[int] = 511
    COORD_MIN: ClassVar[int] = -131072
    COORD_MAX: ClassVar[int] = 131071

    def __init__(self, capacity: int, device: Any = "cpu", use_double_hash: bool = False) -> None:
        self._make(integer(capacity, "capacity"), device, use_double_hash)

    def _make(self, capacity: int | None, device: Any, use_double_hash: bool) -> None:
        self._table = _core.PackedHashTable(capacity, usable_device(device), bool(use_double_hash))
        self._framework = NUMPY


class CoordTable(_CoordTable):
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
        columns = None if key_dim is None else integer(key_dim, "key_dim", None)
        if columns is not None and not 1 <= columns <= 7:
            raise ValueError(f"key_dim: expected 1 to 7, got {columns}")
        self._make(_capacity(capacity), device, use_double_hash, columns, seed_of(seed))

    def _make(
        self,
        capacity: int | None,
        device: Any,
        use_double_hash: bool,
        key_dim: int | None = None,
        seed: int | None = None,
    ) -> None:
        self._table = _core.CoordTable(
            capacity, usable_device(device), bool(use_double_hash), key_dim, seed
        )
        self._framework = NUMPY

    @property
    def key(self) -> str:
        """What stands for a coordinate: "packed64", "packed128" or "wide"."""
        return self._table.key()
