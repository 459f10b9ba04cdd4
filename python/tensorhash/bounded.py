"""BoundedHashMap: a hash table with a maximum number of keys, which returns what it evicts."""

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
_Rows = tuple[_core.Tensor, list[_core.Tensor], _core.Tensor]  # keys, values, scores
_Result = tuple[_core.Tensor, _core.Tensor, _Rows]  # indices, mask, evicted


class Evicted(NamedTuple):
    """Evicted entries with their last values, in the order of eviction.

    >>> cache = BoundedHashMap(1, "int64", (), "float32", ())
    >>> indices, inserted, evicted = cache.insert([7, 9], np.float32([0.5, 1.5]))
    >>> evicted.keys.tolist(), evicted.values.tolist()
    ([7], [0.5])
    """

    keys: Array
    #: One array, or a tuple with one array per value column.
    values: Array | tuple[Array, ...]
    #: int64: the caller's scores, or with eviction="lru" the clock at the last use.
    scores: Array


class BoundedHashMap(MapTable[ArrayT]):
    """A hash table of at most `max_capacity` keys, which returns the entries that it evicts.

    >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
    >>> _ = cache.insert([7, 8], [0.5, 1.5])
    >>> cache.get([7], touch=True)  # without touch=True, reading does not count as a use
    array([0.5], dtype=float32)
    >>> indices, inserted, evicted = cache.insert([9], [2.5])
    >>> evicted.keys, evicted.values
    (array([8]), array([1.5], dtype=float32))

    A batch acts as if its rows were applied one by one, in order. Each row uses its key, and adds
    it if it is new. If the table is full, a new key evicts one entry. With eviction="lru" that is
    the least recently used entry. With "score" it is the entry with the smallest score, which may
    be the new row itself; of equal scores, the least recently used. Scores are int64, one per key.
    The buffers are allocated once, for `max_capacity` keys.
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

    def _copy_to(self, device: str) -> Any:
        raise RuntimeError(f"device: bounded tables are on the CPU only, got {device!r}")

    @classmethod
    def _from_bytes(cls, payload: Any) -> Any:
        return _core.BoundedHashMap.from_bytes(payload)

    @classmethod
    def from_items(cls, keys: ArrayLike, values: ArrayLike | Sequence[ArrayLike] = ()) -> NoReturn:
        """Always raises: a bounded table needs a `max_capacity`. Use the constructor and insert.

        >>> BoundedHashMap.from_items([7], [0.5])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        TypeError: from_items: a bounded table needs a max_capacity and returns what it evicts; ...
        """
        raise TypeError(
            "from_items: a bounded table needs a max_capacity and returns what it evicts; "
            "construct it with its dtypes, then insert"
        )

    # Batches: HashMap's methods, with scores as an argument and evicted entries as a result.

    def insert(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        scores: ArrayLike = None,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[ArrayT, ArrayT, Evicted]:
        """Adds new keys with their values; other keys count as used.

        Returns (int32 [N] buffer index after the batch, -1 if evicted again; bool [N] whether the
        row added its key; the evicted entries). Pass `scores`, int64 [N], if and only if the table
        evicts by score.

        >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
        >>> indices, inserted, evicted = cache.insert([7, 8, 9], [0.5, 1.5, 2.5])
        >>> indices, evicted.keys
        (array([-1,  1,  0], dtype=int32), array([7]))
        """
        return self._add(self._table.insert, keys, values, list_values, scores)

    def insert_or_assign(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        scores: ArrayLike = None,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[ArrayT, ArrayT, Evicted]:
        """Adds new keys, overwrites others; the last of equal keys wins. Returns as `insert`.

        >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
        >>> _ = cache.insert_or_assign([7, 7], [0.5, 9.0])
        >>> cache.get([7])
        array([9.], dtype=float32)
        """
        return self._add(self._table.insert_or_assign, keys, values, list_values, scores)

    def accumulate(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        reduce: str | Sequence[str] = "sum",
        *,
        scores: ArrayLike = None,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[ArrayT, ArrayT, Evicted]:
        """Combines each row with the stored values, as HashMap.accumulate. Returns as `insert`.

        >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
        >>> _ = cache.accumulate([7, 7], [0.5, 9.0])
        >>> cache.get([7])
        array([9.5], dtype=float32)
        """
        how = words(reduce)
        return self._add(
            lambda rows, columns, scores: self._table.accumulate(rows, columns, how, scores),
            *(keys, values, list_values, scores),
        )

    def activate(
        self, keys: ArrayLike, *, scores: ArrayLike = None
    ) -> tuple[ArrayT, ArrayT, Evicted]:
        """Adds new keys with zeros as values; others count as used. Returns as `insert`.

        >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
        >>> indices, inserted, evicted = cache.activate([7, 8, 9])
        >>> evicted.keys
        array([7])
        """
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
        """The values of each key, as HashMap.get. With touch=True, found keys count as used.

        With touch=True it is a writer, and `scores`, if given, become the scores of the found keys.

        >>> cache = BoundedHashMap(2, "int64", (), "float32", (), eviction="score")
        >>> _ = cache.insert([7, 8], [0.5, 1.5], scores=[1, 2])
        >>> cache.get([7], touch=True, scores=[5])
        array([0.5], dtype=float32)
        >>> cache.scores()
        array([5, 2])
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

    def _add(
        self, verb: Callable[..., _Result], keys: Any, values: Any, list_values: Any, scores: Any
    ) -> tuple[ArrayT, ArrayT, Evicted]:
        rows, give = self._take(keys, self._key, "keys")
        columns = self._take_values(values, list_values, rows)
        return self._give_result(verb(rows, columns, self._take_scores(scores)), give)

    def _take_scores(self, scores: Any) -> Any:
        return None if scores is None else self._take(scores, _SCORES, "scores")[0]

    def _give_result(
        self,
        result: _Result,
        give: Callable[[_core.Tensor], Any],
    ) -> tuple[ArrayT, ArrayT, Evicted]:
        indices, mask, (keys, values, scores) = result
        evicted = Evicted(give(keys), one_or_tuple(values, give), give(scores))
        return give(indices), give(mask), evicted

    # Limits and eviction.
    @property
    def max_capacity(self) -> int:
        """The maximum number of keys; equal to `capacity()`."""
        return self._table.capacity()

    @property
    def eviction(self) -> str:
        """How entries are chosen for eviction: "lru" or "score"."""
        return self._table.eviction

    @property
    def clock(self) -> int:
        """The number of batches so far that may have changed the table: all but reads."""
        return self._table.clock()

    def scores(self) -> ArrayT:
        """int64 [size]: the score of each key, in the order of `keys()`. The lowest leaves first.

        With eviction="lru" a score is the clock at the last use.

        >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
        >>> _ = cache.insert([7], [0.5])
        >>> _ = cache.insert([8], [1.5])
        >>> cache.scores()
        array([1, 2])
        """
        return self._give(self._table.scores())

    # Storage.

    def reserve(self, capacity: int) -> None:
        """Does nothing: the buffers have a fixed size. ValueError for more than `max_capacity`.

        >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
        >>> cache.reserve(2)
        >>> cache.capacity()
        2
        """
        if not 0 <= integer(capacity, "capacity", None) <= self.max_capacity:
            raise ValueError(f"capacity: expected 0 to {self.max_capacity}, got {capacity}")

    def shrink_to_fit(self) -> None:
        """Does nothing: the buffers have a fixed size.

        >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
        >>> cache.shrink_to_fit()
        >>> cache.capacity()
        2
        """

    def save(self, file_name: str | os.PathLike[str]) -> str:
        """Writes the table with clock and scores to a ".thash" file, and returns its name.

        >>> import tempfile
        >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = cache.save(f"{folder}/cache")
        >>> name.endswith("/cache.thash")
        True
        """
        return _files.save_native(self._table, file_name, self._suffix)

    @classmethod
    def load(cls, file_name: str | os.PathLike[str], *, max_bytes: int | None = None) -> Self:
        """Reads a file of `save`. The loaded table evicts as the saved one would have.

        As HashMap.load, but a `max_capacity` that needs more than `max_bytes` is a ValueError.

        >>> import tempfile
        >>> cache = BoundedHashMap(2, "int64", (), "float32", ())
        >>> _ = cache.insert([7, 8], [0.5, 1.5])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     loaded = BoundedHashMap.load(cache.save(f"{folder}/cache"))
        >>> indices, inserted, evicted = loaded.insert([9], [2.5])
        >>> evicted.keys
        array([7])
        """
        path = _files.native_source(file_name, cls._suffix)
        table = _core.BoundedHashMap.load(os.fsencode(path), parse_max_bytes(max_bytes))
        return cls._of(table, framework(cls._default_framework))
