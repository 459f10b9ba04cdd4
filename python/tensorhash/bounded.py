"""BoundedHashMap: a hash table with a maximum number of keys. It returns what it evicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tensorhash import _core, _files
from tensorhash._arguments import integer, word, words
from tensorhash._device import usable_device
from tensorhash._disk import parse_max_bytes
from tensorhash._frameworks import framework
from tensorhash._map import MapTable, one_or_tuple
from tensorhash._types import Array, ArrayLike, ArrayT, DeviceLike, DtypeLike, Element, ShapeLike

if TYPE_CHECKING:
    from typing_extensions import Self

_SCORES: Element = ("int64", ())


class Evicted(NamedTuple):
    """Entries that left a table, in the order in which they left, with their last values."""

    keys: Array
    #: One array, or a tuple of one per value column.
    values: Array | tuple[Array, ...]
    #: int64: the caller's scores; with eviction="lru" the clock of the last use.
    scores: Array


class BoundedHashMap(MapTable[ArrayT]):
    """A hash table of at most `max_capacity` keys; it returns the entries that it evicts.

    >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
    >>> _ = cache.insert([7, 8], [0.5, 1.5])
    >>> cache.get([7], touch=True)  # without touch=True, reading does not count as a use
    array([0.5], dtype=float32)
    >>> indices, inserted, evicted = cache.insert([9], [2.5])
    >>> evicted.keys, evicted.values
    (array([8]), array([1.5], dtype=float32))

    A batch acts as if its rows were applied one by one, in order. A row uses its key, and adds it
    if it is new; if the table is full, one entry leaves. With eviction="lru" the entry with the
    oldest last use leaves. With "score" the one with the smallest score leaves, which may be the
    new row itself; of equal scores the one with the oldest last use. Scores are int64 and come
    with the keys. Buffers are made once, for `max_capacity` keys.
    """

    _table: _core.BoundedHashMap  # type: ignore[assignment]
    _how: str

    def __init__(
        self,
        max_capacity: int,
        key_dtype: DtypeLike,
        key_element_shape: ShapeLike,
        value_dtype: DtypeLike | Sequence[DtypeLike] | None = None,
        value_element_shape: ShapeLike | Sequence[ShapeLike] | None = None,
        device: DeviceLike = "cpu",
        *,
        value_dtypes: Sequence[DtypeLike] | None = None,
        value_element_shapes: Sequence[ShapeLike] | None = None,
        eviction: str = "lru",
        seed: int | None = None,
    ) -> None:
        key = (key_dtype, key_element_shape)
        one = (value_dtype, value_element_shape)
        several = (value_dtypes, value_element_shapes)
        self._how = word(eviction, "eviction")
        rows = integer(max_capacity, "max_capacity")
        self._create_map(rows, key, one, several, device, seed)

    def _make(
        self, rows: int, key: Element, values: list[Element], device: Any, seed: int | None
    ) -> Any:
        return _core.BoundedHashMap(rows, key, values, self._how, usable_device(device), seed)

    @classmethod
    def _from_bytes(cls, payload: Any) -> Any:
        return _core.BoundedHashMap.from_bytes(payload)

    @classmethod
    def from_items(cls, keys: ArrayLike, values: ArrayLike | Sequence[ArrayLike] = ()) -> NoReturn:
        """Refused: a bounded table needs a `max_capacity`. Make one with its dtypes, then insert."""
        raise TypeError(
            "from_items: a bounded table has a max_capacity and returns what it evicts; "
            "make it with its dtypes, then insert"
        )

    # Batches: HashMap's verbs, with scores as an argument and evicted rows as a result.

    def insert(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        scores: ArrayLike = None,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[ArrayT, ArrayT, Evicted]:
        """Adds the keys that are new and uses the others.

        Returns (int32 [N] where each key is now, -1 if it has left again; bool [N] the row added
        it; the evicted entries). Pass `scores`, int64 [N], if and only if the table evicts by score.
        """
        return self._join(keys, values, list_values, ["first"], scores)

    def insert_or_assign(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        scores: ArrayLike = None,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[ArrayT, ArrayT, Evicted]:
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
    ) -> tuple[ArrayT, ArrayT, Evicted]:
        """HashMap's `accumulate`: joins each row with what is stored. Returns as `insert`."""
        return self._join(keys, values, list_values, words(reduce), scores)

    def activate(
        self, keys: ArrayLike, *, scores: ArrayLike = None
    ) -> tuple[ArrayT, ArrayT, Evicted]:
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
    ) -> ArrayT | tuple[ArrayT, ...]:
        """HashMap's `get`. With touch=True it is a writer: it uses the keys that are there.

        Then `scores`, if given, become their scores.
        """
        rows, give = self._take(keys, self._key, "keys")
        defaults = self._take_defaults(default)
        if touch:
            values = self._table.get_and_touch(rows, defaults, self._take_scores(scores))
        elif scores is not None:
            raise ValueError("scores: a get without touch=True changes nothing; pass touch=True")
        else:
            values = self._table.get(rows, defaults)
        return one_or_tuple(values, give)

    def _join(
        self, keys: Any, values: Any, list_values: Any, reduce: list[str], scores: Any
    ) -> tuple[ArrayT, ArrayT, Evicted]:
        rows, give = self._take(keys, self._key, "keys")
        columns = self._take_values(values, list_values, rows)
        result = self._table.accumulate(rows, columns, reduce, self._take_scores(scores))
        return self._give_result(result, give)

    def _take_scores(self, scores: Any) -> Any:
        return None if scores is None else self._take(scores, _SCORES, "scores")[0]

    def _give_result(
        self,
        result: tuple[
            _core.Tensor, _core.Tensor, tuple[_core.Tensor, list[_core.Tensor], _core.Tensor]
        ],
        give: Callable[[_core.Tensor], Any],
    ) -> tuple[ArrayT, ArrayT, Evicted]:
        indices, mask, (keys, values, scores) = result
        left = Evicted(give(keys), one_or_tuple(values, give), give(scores))
        return give(indices), give(mask), left

    # The bound.

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
        """How many batches so far could change the table: all but reads."""
        return self._table.clock()

    def scores(self) -> ArrayT:
        """int64 [size]: what decides on the next eviction, in the order of `keys()`."""
        return self._give(self._table.scores())

    # Storage.

    def reserve(self, capacity: int) -> None:
        """Does nothing: the buffers have room. ValueError for more than `max_capacity`."""
        if not 0 <= integer(capacity, "capacity", None) <= self.max_capacity:
            raise ValueError(f"capacity: expected 0 to {self.max_capacity}, got {capacity}")

    def save(self, file_name: str | os.PathLike[str]) -> str:
        """HashMap's `save`, with clock and scores; ".thash" files only."""
        return _files.save_native(self._table, file_name, self._suffix)

    @classmethod
    def load(cls, file_name: str | os.PathLike[str], *, max_bytes: int | None = None) -> Self:
        """Reads what `save` wrote; the loaded table evicts as the saved one would have.

        HashMap's `load`, but a `max_capacity` that takes more than `max_bytes` is a ValueError.
        """
        path = _files.native_source(file_name, cls._suffix)
        table = _core.BoundedHashMap.load(os.fsencode(path), parse_max_bytes(max_bytes))
        return cls._of(table, framework(cls._default_framework))
