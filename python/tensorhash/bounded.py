"""BoundedHashMap: a HashMap that never holds more than so many keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tensorhash import _core, _files
from tensorhash._arrays import framework
from tensorhash._device import usable_device
from tensorhash._disk import parse_max_bytes
from tensorhash._table import Array, ArrayLike, DtypeLike, Element, ShapeLike, integer
from tensorhash.hash_map import HashMap, _one_or_tuple, _words, value_columns
from tensorhash.optim import word

if TYPE_CHECKING:
    from typing_extensions import Self

_SCORES: Element = ("int64", ())


class Evicted(NamedTuple):
    """Entries that left a table, in the order in which they did, as they were then."""

    keys: Array
    #: One array, or a tuple of one per value column.
    values: Array | tuple[Array, ...]
    #: int64: the caller's; with eviction="lru" the clock of the last use.
    scores: Array


class BoundedHashMap(HashMap):
    """A HashMap of at most `max_capacity` keys; what has to leave is returned.

    >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
    >>> _ = cache.insert([7, 8], [0.5, 1.5])
    >>> cache.get([7], touch=True)  # without touch=True, reading is no use
    array([0.5], dtype=float32)
    >>> indices, inserted, evicted = cache.insert([9], [2.5])
    >>> evicted.keys, evicted.values
    (array([8]), array([1.5], dtype=float32))

    A batch acts as its rows in order would: a row uses its key, adding it if need be; if that makes
    one too many, one leaves. eviction="lru": the one whose last use is longest ago. "score": the
    one with the smallest of the int64 `scores` that come with the keys, which may be the row
    itself; of equal ones the one whose last use is longest ago. Buffers are made once, at
    `max_capacity`.
    """

    _table: Any
    _how: str

    def __init__(
        self,
        max_capacity: int,
        key_dtype: DtypeLike,
        key_element_shape: ShapeLike,
        value_dtype: DtypeLike | Sequence[DtypeLike] | None = None,
        value_element_shape: ShapeLike | Sequence[ShapeLike] | None = None,
        device: Any = "cpu",
        *,
        value_dtypes: Sequence[DtypeLike] | None = None,
        value_element_shapes: Sequence[ShapeLike] | None = None,
        eviction: str = "lru",
        seed: int | None = None,
    ) -> None:
        one = (value_dtype, value_element_shape)
        columns = value_columns(one, (value_dtypes, value_element_shapes))
        self._how = word(eviction, "eviction")
        rows = integer(max_capacity, "max_capacity")
        self._create(rows, (key_dtype, key_element_shape), columns, device, seed)

    def _make(
        self, rows: int, key: Element, values: list[Element], device: Any, seed: int | None
    ) -> Any:
        return _core.BoundedHashMap(rows, key, values, self._how, usable_device(device), seed)

    @classmethod
    def _from_bytes(cls, payload: Any) -> Any:
        return _core.BoundedHashMap.from_bytes(payload)

    @classmethod
    def from_items(cls, keys: ArrayLike, values: Any = ()) -> NoReturn:
        """Not for bounded tables: make one with its dtypes, then insert."""
        raise TypeError(
            "from_items: a bounded table has a max_capacity and returns what it evicts; "
            "make it with its dtypes, then insert"
        )

    # Batches: as HashMap's, with scores in and evicted rows out.

    def insert(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        scores: ArrayLike = None,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[Array, Array, Evicted]:
        """Adds the keys that are new and uses the others.

        Returns (int32 [N] where each key is now, -1 if it has left again; bool [N] the row added
        it; what left). `scores`, int64 [N], if and only if the table evicts by score.
        """
        return self._join(keys, values, list_values, ["first"], scores)

    def insert_or_assign(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        scores: ArrayLike = None,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[Array, Array, Evicted]:
        """Adds new keys, overwrites others; the last of equal keys wins. Returns as `insert`."""
        return self._join(keys, values, list_values, ["last"], scores)

    def accumulate(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        reduce: str | Sequence[str] = "sum",
        *,
        scores: ArrayLike = None,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[Array, Array, Evicted]:
        """Joins each row with what is stored, as HashMap's. Returns as `insert`."""
        return self._join(keys, values, list_values, _words(reduce), scores)

    def activate(
        self, keys: ArrayLike, *, scores: ArrayLike = None
    ) -> tuple[Array, Array, Evicted]:
        """Adds the keys that are new, values zero, and uses the others. Returns as `insert`."""
        rows, give = self._take(keys, self._key, "keys")
        return self._give_result(self._table.activate(rows, self._take_scores(scores)), give)

    def get(
        self,
        keys: ArrayLike,
        default: Any = None,
        *,
        touch: bool = False,
        scores: ArrayLike = None,
    ) -> Array | tuple[Array, ...]:
        """As HashMap's. With touch=True it is a use of the keys that are there, and a writer.

        Then `scores`, if given, become theirs.
        """
        rows, give = self._take(keys, self._key, "keys")
        defaults = self._take_defaults(default)
        if touch:
            values = self._table.get_and_touch(rows, defaults, self._take_scores(scores))
        elif scores is not None:
            raise ValueError("scores: a get without touch=True changes nothing; pass touch=True")
        else:
            values = self._table.get(rows, defaults)
        return _one_or_tuple([give(value) for value in values])

    def _join(
        self, keys: Any, values: Any, list_values: Any, reduce: list[str], scores: Any
    ) -> tuple[Array, Array, Evicted]:
        rows, give = self._take(keys, self._key, "keys")
        columns = self._take_values(values, list_values, rows)
        result = self._table.accumulate(rows, columns, reduce, self._take_scores(scores))
        return self._give_result(result, give)

    def _take_scores(self, scores: Any) -> Any:
        return None if scores is None else self._take(scores, _SCORES, "scores")[0]

    def _give_result(self, result: Any, give: Callable[[Any], Array]) -> Any:
        indices, mask, (keys, values, scores) = result
        columns = _one_or_tuple([give(value) for value in values])
        return give(indices), give(mask), Evicted(give(keys), columns, give(scores))

    # What a bounded table has beyond a HashMap.

    @property
    def max_capacity(self) -> int:
        """The most keys it holds; also its `capacity()`."""
        return self._table.capacity()

    @property
    def eviction(self) -> str:
        """ "lru" or "score"."""
        return self._table.eviction

    @property
    def clock(self) -> int:
        """The batches so far that could change the table: all but reads."""
        return self._table.clock()

    def scores(self) -> Array:
        """int64 [size]: what the entries rank by, in the order of `keys()`."""
        return self._framework.give(self._table.scores())

    # Storage.

    def reserve(self, capacity: int) -> None:
        """The room is there already; ValueError for more than `max_capacity`."""
        if not 0 <= integer(capacity, "capacity", None) <= self.max_capacity:
            raise ValueError(f"capacity: expected 0 to {self.max_capacity}, got {capacity}")

    def save(self, file_name: str | os.PathLike[str]) -> str:
        """Writes a ".thash" file with clock and scores, as HashMap's `save` does."""
        return _files.save_native(self._table, file_name, self._suffix)

    @classmethod
    def load(cls, file_name: str | os.PathLike[str], *, max_bytes: int | None = None) -> Self:
        """Reads what `save` wrote; the next eviction is the one that would have been.

        As HashMap's, but a `max_capacity` that takes more than `max_bytes` is a ValueError.
        """
        path = _files.native_source(file_name, cls._suffix)
        table = _core.BoundedHashMap.load(os.fsencode(path), parse_max_bytes(max_bytes))
        return cls._of(table, framework(cls._default_framework))
