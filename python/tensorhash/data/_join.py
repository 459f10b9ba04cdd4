"""Joins by equal keys, and what they make easy: index_of, isin, factorize."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from tensorhash import _core
from tensorhash._arguments import require_one_of
from tensorhash._frameworks import Framework, as_numpy
from tensorhash._types import Array, ArrayLike
from tensorhash.data._keys import KeyCodes, Keys, read_keys

HOW = ("inner", "left", "full", "semi", "anti")


class JoinedRows(NamedTuple):
    """Rows that belong together, int64; -1 stands for no row."""

    left: Array
    right: Array


class Matches(NamedTuple):
    """The matches of query i are `rows[offsets[i]:offsets[i + 1]]`, ascending; int64."""

    offsets: Array
    rows: Array


class JoinIndex:
    """The right side of joins, built once.

    Keys are an array, a tuple of 1-D arrays, or a frame. Left keys must have the same dtypes.
    Results use the framework of the left keys. The index keeps its own copy of the keys.

    >>> import numpy as np
    >>> index = JoinIndex(np.array([5, 7, 5]))
    >>> index.count(np.array([5, 6])).tolist()
    [2, 0]
    """

    def __init__(self, right: ArrayLike) -> None:
        keys = read_keys(right, "right")
        self._codes = KeyCodes()
        self._core = _core.JoinIndex(self._codes.encode(keys))

    def _read(self, left: ArrayLike) -> tuple[Any, Framework]:
        keys = read_keys(left, "left")
        return self._codes.encode(keys, insert=False), keys.source

    def count(self, left: ArrayLike) -> Array:
        """int64 [N]: how many right rows equal each left row.

        >>> JoinIndex([5, 7, 5]).count([7, 5, 6])
        array([1, 2, 0])
        """
        rows, source = self._read(left)
        return source.give(self._core.count(rows))

    def join(self, left: ArrayLike, how: str = "inner") -> JoinedRows:
        """The rows that belong together, as `join` gives them.

        >>> JoinIndex([5, 7, 5]).join([7, 5, 6], how="left")
        JoinedRows(left=array([0, 1, 1, 2]), right=array([ 1,  0,  2, -1]))
        """
        require_one_of(how, "how", *HOW)
        rows, source = self._read(left)
        joined = self._core.join(rows, how)
        return JoinedRows(*(source.give(one) for one in joined))

    def first(self, left: ArrayLike) -> Array:
        """int64 [N]: the first right row that equals each left row, or -1.

        >>> JoinIndex([5, 7, 5]).first([5, 6])
        array([ 0, -1])
        """
        rows, source = self._read(left)
        return source.give(self._core.first(rows))

    def matches(self, left: ArrayLike) -> Matches:
        """All right rows that equal each left row, as compressed rows.

        >>> JoinIndex([5, 7, 5]).matches([5, 6, 7])
        Matches(offsets=array([0, 2, 2, 3]), rows=array([0, 2, 1]))
        """
        rows, source = self._read(left)
        found = self._core.matches(rows)
        return Matches(*(source.give(one) for one in found))

    def __len__(self) -> int:
        """The number of right rows."""
        return self._core.rows()

    def __repr__(self) -> str:
        return f"JoinIndex of {len(self)} rows, {self._core.distinct()} distinct"


def join(left: ArrayLike, right: ArrayLike, how: str = "inner") -> JoinedRows:
    """Row numbers of `left` and `right` with equal keys, ordered by left row, then by right row.

    `how` is "inner", "left" (left rows without a partner too, with -1), "full" (and, at the end,
    the right rows without a partner, with -1), "semi" (left rows with a partner, once each, with
    the first one) or "anti" (left rows without a partner, with -1).

    >>> import numpy as np
    >>> rows = join(np.array([7, 5, 6]), np.array([5, 7, 5]))
    >>> rows.left, rows.right
    (array([0, 1, 1]), array([1, 0, 2]))
    >>> join([7, 6], [7, 8], how="full")
    JoinedRows(left=array([ 0,  1, -1]), right=array([ 0, -1,  1]))
    """
    require_one_of(how, "how", *HOW)
    return JoinIndex(right).join(left, how)


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
    index = JoinIndex(keys)
    return index.matches(queries) if all else index.first(queries)


def isin(elements: ArrayLike, test_elements: ArrayLike) -> Array:
    """bool [N]: which rows of `elements` are also rows of `test_elements`.

    Rows compare as keys do: unlike in NumPy, NaN equals NaN.

    >>> isin([7, 3, 9], [9, 7]).tolist()
    [True, False, True]
    """
    codes = KeyCodes()
    test = codes.encode(read_keys(test_elements, "test_elements"))
    keys = read_keys(elements, "elements")
    element = _core.Tensor.wrap(test, "test_elements")
    table = _core.HashMap(0, (element.dtype, element.shape[1:]), [], "cpu:0")
    table.insert(test, [])
    return keys.source.give(table.contains(codes.encode(keys, insert=False)))


class Factorized(NamedTuple):
    """`uniques[codes]` is the input. With several columns, `uniques` is a tuple of them."""

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
    rows, index, inverse = _core.unique(KeyCodes().encode(read), True, True, False)
    return Factorized(read.source.give(inverse), _uniques(read, rows, index))


def _uniques(keys: Keys, rows: _core.Tensor, index: _core.Tensor) -> Array | tuple[Array, ...]:
    if keys.is_single:
        return keys.source.give(rows)
    first = as_numpy(index)
    return tuple(
        column.source.give(_core.Tensor.wrap(column.array[first])) for column in keys.columns
    )
