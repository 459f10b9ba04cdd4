"""Joins by equal keys, and what they make easy: index_of, isin, factorize."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from tensorhash import _core
from tensorhash._arguments import one_of, require_one_of
from tensorhash._frameworks import Framework
from tensorhash._types import Array, ArrayLike
from tensorhash.data._keys import KeyCodes, Keys, give_keys, read_keys

HOW = ("inner", "left", "full", "semi", "anti")


class JoinedRows(NamedTuple):
    """Rows that belong together, int64; -1 stands for no row.

    >>> rows = join([7, 5], [5, 5])
    >>> rows.left, rows.right
    (array([1, 1]), array([0, 1]))
    """

    left: Array
    right: Array


class Matches(NamedTuple):
    """The matches of query i are `rows[offsets[i]:offsets[i + 1]]`, ascending; int64.

    >>> matches = index_of([5, 7, 5], [5, 8], all=True)
    >>> matches.offsets, matches.rows
    (array([0, 2, 2]), array([0, 2]))
    """

    offsets: Array
    rows: Array


class JoinIndex:
    """The right side of joins, built once.

    Keys are an array, a tuple of 1-D arrays, or a frame. Left keys must have the same dtypes; a
    list takes those of the index. Results use the framework of the left keys. The index keeps its
    own copy of the keys.

    >>> import numpy as np
    >>> index = JoinIndex(np.array([5, 7, 5]))
    >>> index.count(np.array([5, 6])).tolist()
    [2, 0]
    """

    def __init__(self, right: ArrayLike) -> None:
        self._build(read_keys(right, "right"))

    def _build(self, keys: Keys) -> None:
        self._codes = KeyCodes()
        self._core = _core.JoinIndex(self._codes.encode(keys))
        self._is_open = len(keys) == 0 and keys.is_single and keys.columns[0].listed is not None

    def _read(self, left: ArrayLike | Keys) -> tuple[_core.JoinIndex, Any, Framework]:
        """(the index, left rows for it, the framework of the results)."""
        keys = left if isinstance(left, Keys) else read_keys(left, "left")
        index = self
        if self._is_open:  # made of an empty list, which has no dtype
            index = _index_of(read_keys([], "right"), keys)
        return index._core, index._codes.encode(keys, insert=False), keys.source

    def count(self, left: ArrayLike) -> Array:
        """int64 [N]: how many right rows equal each left row.

        >>> JoinIndex([5, 7, 5]).count([7, 5, 6])
        array([1, 2, 0])
        """
        core, rows, source = self._read(left)
        return source.give(core.count(rows))

    def join(self, left: ArrayLike, how: str = "inner") -> JoinedRows:
        """The rows that belong together, as `join` gives them.

        >>> JoinIndex([5, 7, 5]).join([7, 5, 6], how="left")
        JoinedRows(left=array([0, 1, 1, 2]), right=array([ 1,  0,  2, -1]))
        """
        _require_how(how)
        return self._join(left, how)

    def _join(self, left: ArrayLike | Keys, how: str) -> JoinedRows:
        core, rows, source = self._read(left)
        joined = core.join(rows, how)
        return JoinedRows(*(source.give(one) for one in joined))

    def first(self, left: ArrayLike) -> Array:
        """int64 [N]: the first right row that equals each left row, or -1.

        >>> JoinIndex([5, 7, 5]).first([5, 6])
        array([ 0, -1])
        """
        return self._first(left)

    def _first(self, left: ArrayLike | Keys) -> Array:
        core, rows, source = self._read(left)
        return source.give(core.first(rows))

    def matches(self, left: ArrayLike) -> Matches:
        """All right rows that equal each left row, as compressed rows.

        >>> JoinIndex([5, 7, 5]).matches([5, 6, 7])
        Matches(offsets=array([0, 2, 2, 3]), rows=array([0, 2, 1]))
        """
        return self._matches(left)

    def _matches(self, left: ArrayLike | Keys) -> Matches:
        core, rows, source = self._read(left)
        found = core.matches(rows)
        return Matches(*(source.give(one) for one in found))

    def __len__(self) -> int:
        """The number of right rows."""
        return self._core.rows()

    def __repr__(self) -> str:
        return f"JoinIndex of {len(self)} rows, {self._core.distinct()} distinct"


#: Words of pandas and polars, and what to do instead.
_OTHER_HOW = {"outer": 'pass "full"', "right": 'swap the sides and pass "left"'}


def _require_how(how: Any) -> None:
    if isinstance(how, str) and how in _OTHER_HOW:
        raise ValueError(f"how: expected {one_of(HOW)}, got {how!r}; {_OTHER_HOW[how]}")
    require_one_of(how, "how", *HOW)


def _index_of(right: Keys, left: Keys) -> JoinIndex:
    """An index for one search. Lists on the right take the dtypes of the left."""
    right.take_kinds_of(left)
    index = JoinIndex.__new__(JoinIndex)
    index._build(right)
    return index


def join(left: ArrayLike, right: ArrayLike, how: str = "inner") -> JoinedRows:
    """Row numbers of `left` and `right` with equal keys, ordered by left row, then by right row.

    `how` is "inner", "left" (left rows without a partner too, with -1), "full" (and, at the end,
    the right rows without a partner, with -1), "semi" (left rows with a partner, once each, with
    the first one) or "anti" (left rows without a partner, with -1). Both sides must have the same
    dtypes; a list takes those of the other side.

    >>> import numpy as np
    >>> rows = join(np.array([7, 5, 6]), np.array([5, 7, 5]))
    >>> rows.left, rows.right
    (array([0, 1, 1]), array([1, 0, 2]))
    >>> join([7, 6], [7, 8], how="full")
    JoinedRows(left=array([ 0,  1, -1]), right=array([ 0, -1,  1]))
    """
    _require_how(how)
    left_keys, right_keys = read_keys(left, "left"), read_keys(right, "right")
    return _index_of(right_keys, left_keys)._join(left_keys, how)


@overload
def index_of(keys: ArrayLike, queries: ArrayLike, all: Literal[False] = False) -> Array: ...
@overload
def index_of(keys: ArrayLike, queries: ArrayLike, all: Literal[True]) -> Matches: ...


def index_of(keys: ArrayLike, queries: ArrayLike, all: bool = False) -> Array | Matches:
    """Where each query is in `keys`: the first row, or -1; with `all`, every row.

    >>> index_of([5, 7, 5], [7, 5, 6])
    array([ 1,  0, -1])
    >>> index_of([5, 7, 5], [5, 6], all=True)
    Matches(offsets=array([0, 2, 2]), rows=array([0, 2]))
    """
    wanted, known = read_keys(queries, "queries"), read_keys(keys, "keys")
    index = _index_of(known, wanted)
    return index._matches(wanted) if all else index._first(wanted)


def isin(elements: ArrayLike, test_elements: ArrayLike) -> Array:
    """bool [N]: which rows of `elements` are also rows of `test_elements`.

    Rows compare as keys do: unlike in NumPy, NaN equals NaN.

    >>> isin([7, 3, 9], [9, 7]).tolist()
    [True, False, True]
    """
    keys, test_keys = read_keys(elements, "elements"), read_keys(test_elements, "test_elements")
    test_keys.take_kinds_of(keys)
    codes = KeyCodes()
    test = codes.encode(test_keys)
    element = _core.Tensor.wrap(test, "test_elements")
    table = _core.HashMap(0, (element.dtype, element.shape[1:]), [], "cpu:0")
    table.insert(test, [])
    return keys.source.give(table.contains(codes.encode(keys, insert=False)))


class Factorized(NamedTuple):
    """`uniques[codes]` is the input. With several columns, `uniques` is a tuple of them.

    >>> codes, uniques = factorize([30, 10, 30])
    >>> uniques[codes]
    array([30, 10, 30])
    """

    codes: Array
    uniques: Array | tuple[Array, ...]


def factorize(keys: ArrayLike) -> Factorized:
    """Numbers the distinct rows of `keys` in order of first occurrence.

    The codes are int64. Unlike `pandas.factorize`, keys may be frames and tuples of columns, and
    NaN is a value.

    >>> factorize([30, 10, 30])
    Factorized(codes=array([0, 1, 0]), uniques=array([30, 10]))
    """
    read = read_keys(keys, "keys")
    codes = KeyCodes()
    rows, inverse = _core.unique(codes.encode(read), False, True, False)
    uniques = tuple(give_keys(read, codes, rows).values())
    return Factorized(read.source.give(inverse), uniques[0] if read.is_single else uniques)
