"""Reads keys of group-by and joins: one array, a tuple of arrays, or a frame.

Each column keeps its own dtype. Columns of one numeric dtype are the rows of one array. Otherwise
each column is numbered, and the numbers are the rows. Strings are always numbered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._arrays import is_array, take_array
from tensorhash._dtypes import NAMES
from tensorhash._frameworks import NUMPY, Framework, as_numpy, framework_of
from tensorhash._lists import array_of, natural_array
from tensorhash._places import require_host
from tensorhash._types import Array, NumPyArray
from tensorhash.data._arrow import arrow_column, import_columns, number_column
from tensorhash.data._text import (
    Strings,
    has_arrow,
    holds_bytes,
    numbers_of_dates,
    refuse_listed_dates,
    strings_of,
)


@dataclass
class KeyColumn:
    """One column of keys: numbers for the core, or strings."""

    label: str  # in messages
    name: str | None  # the name of a frame's column
    rows: Any
    source: Framework  # of the results
    dates: np.dtype[Any] | None = None  # the dtype of dates, which are read as integers
    listed: Any = None  # the list of numbers that was given: it has no dtype of its own
    as_bytes: bool = False  # strings are given back as bytes, not as str

    @property
    def array(self) -> NumPyArray:
        """Numbers as a NumPy array."""
        return as_numpy(self.rows)

    @property
    def kind(self) -> str:
        """What both sides of a join must share: "strings", or a dtype."""
        if isinstance(self.rows, Strings):
            return "strings"
        return self.array.dtype.name if self.dates is None else self.dates.name

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return () if isinstance(self.rows, Strings) else self.array.shape[1:]

    def become(self, kind: str, shape: tuple[int, ...], exact: bool = True) -> None:
        """A list of numbers gets the kind of the other side; an empty one also the shape."""
        is_empty_list = self.listed is not None and len(self.listed) == 0
        if kind == self.kind and not is_empty_list:
            return
        if kind == "strings" and len(self) == 0:
            self.rows, self.dates = Strings([], "objects", 0), None
        elif self.listed is None:
            return
        elif kind in NAMES:
            self.rows = (
                np.empty((0, *shape), kind)
                if is_empty_list
                else array_of(self.listed, kind, self.label, exact)
            )
        elif is_empty_list:
            self.rows, self.dates = np.empty(0, np.int64), np.dtype(kind)

    def __len__(self) -> int:
        return self.rows.size if isinstance(self.rows, Strings) else len(self.array)

    def give(self, values: NumPyArray) -> Array:
        """Values of this column as a result: strings are an object array of NumPy."""
        plain: Any = values if self.dates is None else values.view(self.dates)
        if isinstance(self.rows, Strings) or self.dates is not None:
            given: Array = plain
            return given
        return self.source.give(_core.Tensor.wrap(np.ascontiguousarray(values)))


@dataclass
class Keys:
    """The columns of a keys argument. `is_single`: it was one array, of any shape."""

    argument: str
    columns: list[KeyColumn]
    is_single: bool

    @property
    def source(self) -> Framework:
        """The framework of the results: that of the first column."""
        return self.columns[0].source

    @property
    def kinds(self) -> list[str]:
        """The kind of each column."""
        return [column.kind for column in self.columns]

    def names(self) -> list[str]:
        """The names of the key columns in a result."""
        if self.is_single:
            return ["key"]
        return [column.name or f"key_{at}" for at, column in enumerate(self.columns)]

    def take_kinds_of(self, other: Keys) -> None:
        """Lists take the kind of an array on the other side; of two lists, floats decide."""
        if len(self.columns) != len(other.columns):
            return
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            has_floats = theirs.kind == "float64" and len(theirs) > 0
            if theirs.listed is None or len(mine) == 0 or has_floats:
                mine.become(theirs.kind, theirs.element_shape)

    def __len__(self) -> int:
        return len(self.columns[0])


def read_array(
    array: Any, argument: str, element: tuple[str, tuple[int, ...]] | None = None
) -> Any:
    """Numbers for the core from an array, a column or a list, which gets `element`'s dtype."""
    column = read_column(array, argument, None)
    if isinstance(column.rows, Strings):
        raise TypeError(f"{argument}: expected numbers, got strings")
    if element is not None:
        column.become(*element, exact=False)
    return column.rows


def read_column(array: Any, label: str, name: str | None) -> KeyColumn:
    """One column of numbers, dates or strings."""
    require_host(array, label)
    strings = strings_of(array, label)
    if strings is not None:
        return KeyColumn(label, name, strings, NUMPY, as_bytes=holds_bytes(strings))
    refuse_listed_dates(array, label)
    if isinstance(array, np.ndarray) and array.dtype == object and array.shape == (0,):
        array = []  # without elements it has no dtype
    if isinstance(array, np.ndarray) and array.dtype.kind in "Mm":
        dates = array.dtype.newbyteorder("=")
        return KeyColumn(label, name, numbers_of_dates(array, label), NUMPY, dates)
    if isinstance(array, _core.ArrowColumn):
        return _read_arrow(array, label, name)
    try:
        taken = take_array(array, None, label)
    except TypeError as error:
        # Strings, dates, dictionaries, and columns of libraries that export Arrow data.
        return _read_exporter(array, label, name, error)
    if taken is not None:
        require_host(taken[0], label)
        return KeyColumn(label, name, *taken)
    listed = array if isinstance(array, (list, tuple, range)) else None
    return KeyColumn(label, name, natural_array(array, label), NUMPY, listed=listed)


def _read_exporter(array: Any, label: str, name: str | None, error: TypeError) -> KeyColumn:
    if has_arrow(array):
        try:
            return _read_arrow(array, label, name)
        except ImportError:
            pass  # pandas exports Arrow data only with pyarrow
    if framework_of(type(array)) in (None, NUMPY) or not hasattr(array, "__array__"):
        raise error
    plain = np.asarray(array)  # an Index of pandas, or pandas without pyarrow
    if plain.dtype.kind not in "Mm" and strings_of(plain, label) is None:
        raise error
    return read_column(plain, label, name)


def _read_arrow(array: Any, label: str, name: str | None) -> KeyColumn:
    column = arrow_column(array, label)
    if column is None:
        raise TypeError(f"{label}: expected a column, got {type(array).__name__}")
    if column.is_text():
        strings = Strings(column, "arrow", column.rows())
        return KeyColumn(label, name, strings, NUMPY, as_bytes=holds_bytes(strings))
    numbers = number_column(column, label)
    if numbers.dtype.kind in "Mm":
        return KeyColumn(label, name, numbers.view(np.int64), NUMPY, numbers.dtype)
    return KeyColumn(label, name, numbers, NUMPY)


def read_keys(keys: Any, argument: str) -> Keys:
    """The key columns of an array, a tuple of arrays or a frame."""
    named, one = _named_columns(keys, argument)
    if named is None:
        column = read_column(one, argument, None)
        if not isinstance(column.rows, Strings) and not column.array.ndim:
            raise ValueError(f"{argument}: expected at least one dimension, the rows, got a number")
        return Keys(argument, [column], is_single=True)
    if not named:
        raise ValueError(f"{argument}: expected columns, got a frame without any")
    columns = [read_column(one, label, name) for label, name, one in named]
    _require_columns(columns)
    read = Keys(argument, columns, is_single=False)
    names = read.names()
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{argument}: expected columns of different names, got {twice!r} twice")
    return read


def _named_columns(
    keys: Any, argument: str
) -> tuple[list[tuple[str, str | None, Any]] | None, Any]:
    """((label, name, column) of each column of a frame or a tuple, or None for one; the one)."""
    source = framework_of(type(keys))
    parts: list[tuple[Any, Any]] | None = None
    if hasattr(source, "columns"):
        frames: Any = source
        parts = frames.columns(keys, argument)
    elif source is None and not isinstance(keys, (list, tuple)) and has_arrow(keys):
        found = import_columns(keys, argument)
        parts, keys = (found, None) if isinstance(found, list) else (None, found)
    if parts is not None:
        return [(f"{argument}[{name!r}]", str(name), column) for name, column in parts], None
    if isinstance(keys, tuple) and any(map(is_array, keys)):
        return [(f"{argument}[{at}]", None, column) for at, column in enumerate(keys)], None
    return None, keys


def _require_columns(columns: list[KeyColumn]) -> None:
    first = columns[0]
    for column in columns:
        if not isinstance(column.rows, Strings):
            _core.Tensor.wrap(column.array, column.label)  # a dtype that is not numeric raises
            if column.array.ndim != 1:
                raise ValueError(
                    f"{column.label}: expected a 1-D array, got shape {column.array.shape}"
                )
        if len(column) != len(first):
            raise ValueError(
                f"{column.label}: expected {len(first)} rows as {first.label} has, "
                f"got {len(column)}"
            )


@dataclass
class KeyCodes:
    """Turns key columns into one array for the core, the same way for every batch."""

    kinds: list[str] | None = None  # of the first keys
    shapes: list[tuple[int, ...]] = field(default_factory=list)  # of one row of each column
    names: list[str | None] = field(default_factory=list)  # of a frame's columns
    sets: list[Any] = field(default_factory=list)  # numbers a column; empty: rows are the keys

    def encode(self, keys: Keys, insert: bool = True) -> Any:
        """Rows for the core. Without `insert`, a key that is new gets the number -1."""
        if self.kinds is None:
            self._start(keys)
        self._require_same(keys)
        if not self.sets:
            if keys.is_single:
                return keys.columns[0].rows
            return np.stack([column.array for column in keys.columns], axis=1)
        pairs = zip(self.sets, keys.columns, strict=True)
        numbers = [_numbers(one, column, insert) for one, column in pairs]
        return numbers[0] if keys.is_single else np.stack(numbers, axis=1)

    def _start(self, keys: Keys) -> None:
        self.kinds = keys.kinds
        self.shapes = [column.element_shape for column in keys.columns]
        self.names = [column.name for column in keys.columns]
        if "strings" in self.kinds or len({_dtype(column) for column in keys.columns}) > 1:
            self.sets = [
                _core.StringIndex(None)
                if isinstance(column.rows, Strings)
                else _core.HashMap(0, (_dtype(column), ()), [], "cpu:0")
                for column in keys.columns
            ]

    def _require_same(self, keys: Keys) -> None:
        expected = self.kinds or []
        if len(expected) != len(keys.columns):
            raise ValueError(
                f"{keys.argument}: expected {len(expected)} key columns, got {len(keys.columns)}"
            )
        names = [column.name for column in keys.columns]
        if names != self.names and set(names) == set(self.names):
            raise ValueError(
                f"{keys.argument}: expected the columns in the order "
                f"{', '.join(map(str, self.names))}, got {', '.join(map(str, names))}"
            )
        for column, want, shape in zip(keys.columns, expected, self.shapes, strict=True):
            column.become(want, shape)
            got = column.kind
            if want != got:
                way = (
                    f"; cast with {NUMPY.way_to(want, column.rows, column.label)}"
                    if "strings" not in (want, got)
                    else ""
                )
                raise TypeError(f"{column.label}: expected {want}, got {got}{way}")
            if math.prod(column.element_shape) != math.prod(shape):
                raise ValueError(
                    f"{column.label}: expected shape (N, {', '.join(map(str, shape))}), got {column.array.shape}"
                )

    def decode(self, rows: _core.Tensor, keys: Keys, at: int) -> NumPyArray:
        """Column `at` of keys such as `keys` that `encode` gave `rows` for."""
        codes = as_numpy(rows) if keys.is_single else as_numpy(rows)[:, at]
        if not self.sets:
            return np.ascontiguousarray(codes)
        if isinstance(self.sets[at], _core.StringIndex):
            return decode_strings(self.sets[at], codes, keys.columns[at].as_bytes)
        return as_numpy(self.sets[at].keys())[codes]


def _dtype(column: KeyColumn) -> str:
    return "strings" if isinstance(column.rows, Strings) else column.array.dtype.name


def _numbers(table: Any, column: KeyColumn, insert: bool) -> NumPyArray:
    if isinstance(table, _core.StringIndex):
        call = table.insert if insert else table.find
        return as_numpy(call(column.rows.rows, column.rows.kind, column.label))
    found = table.insert(column.array, []) if insert else table.find(column.array)
    return as_numpy(found[0])


def decode_strings(index: _core.StringIndex, numbers: Any, as_bytes: bool = False) -> NumPyArray:
    """An object array of str or bytes. Equal numbers share one object."""
    rows = np.asarray(numbers)
    if rows.size == 0:
        return np.empty(rows.shape, object)
    if rows.dtype.kind not in "iu":
        raise TypeError(f"numbers: expected integers, got {rows.dtype}")
    distinct, inverse = np.unique(rows, return_inverse=True)
    found = np.empty(len(distinct), object)
    found[:] = index.decode(distinct.astype(np.int64), as_bytes)
    decoded: NumPyArray = found[inverse.reshape(rows.shape)]
    return decoded


def give_keys(keys: Keys, codes: KeyCodes, rows: _core.Tensor) -> dict[str, Array]:
    """The key columns of a result, by name."""
    return {
        name: column.give(codes.decode(rows, keys, at))
        for at, (name, column) in enumerate(zip(keys.names(), keys.columns, strict=True))
    }
