"""Reads keys of group-by and joins: one array, a tuple of arrays, or a frame.

Each column keeps its own dtype. Columns of one dtype are the rows of one array. Otherwise each
column is numbered, and the numbers are the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._arrays import is_array, take_array
from tensorhash._frameworks import NUMPY, Framework, as_numpy, framework_of
from tensorhash._lists import natural_array
from tensorhash._types import Array, NumPyArray


@dataclass
class KeyColumn:
    """One column of keys: what the core reads, the framework of the results, a name."""

    label: str  # in messages
    name: str | None  # the name of a frame's column
    rows: Any
    source: Framework

    @property
    def array(self) -> NumPyArray:
        """The column as a NumPy array."""
        return as_numpy(self.rows)


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
    def signature(self) -> list[str]:
        """The dtype of each column."""
        return [column.array.dtype.name for column in self.columns]

    def names(self) -> list[str]:
        """The names of the key columns in a result."""
        if self.is_single:
            return ["key"]
        return [column.name or f"key_{at}" for at, column in enumerate(self.columns)]

    def __len__(self) -> int:
        return int(self.columns[0].array.shape[0])


def read_array(array: Any, argument: str) -> tuple[Any, Framework]:
    """(array for the core, framework of the results) of an array or a list."""
    taken = take_array(array, None, argument)
    return (natural_array(array, argument), NUMPY) if taken is None else taken


def read_keys(keys: Any, argument: str) -> Keys:
    """The key columns of an array, a tuple of arrays or a frame."""
    source = framework_of(type(keys))
    frame = getattr(source, "columns", None)
    parts = frame(keys, argument) if frame is not None else None
    named: list[tuple[str, str | None, Any]]
    if parts is not None:
        named = [(f"{argument}[{name!r}]", str(name), column) for name, column in parts]
        if not named:
            raise ValueError(f"{argument}: expected columns, got a frame without any")
    elif isinstance(keys, tuple) and any(map(is_array, keys)):
        named = [(f"{argument}[{at}]", None, column) for at, column in enumerate(keys)]
    else:
        rows, source = read_array(keys, argument)
        if not _core.Tensor.wrap(rows, argument).shape:
            raise ValueError(f"{argument}: expected at least one dimension, the rows, got a number")
        return Keys(argument, [KeyColumn(argument, None, rows, source)], is_single=True)
    columns = [KeyColumn(label, name, *read_array(one, label)) for label, name, one in named]
    _require_columns(columns)
    return Keys(argument, columns, is_single=False)


def _require_columns(columns: list[KeyColumn]) -> None:
    first = columns[0]
    for column in columns:
        _core.Tensor.wrap(column.array, column.label)  # a dtype that is not numeric raises
        shape = column.array.shape
        if len(shape) != 1:
            raise ValueError(f"{column.label}: expected a 1-D array, got shape {shape}")
        if len(column.array) != len(first.array):
            raise ValueError(
                f"{column.label}: expected {len(first.array)} rows as {first.label} has, "
                f"got {len(column.array)}"
            )


@dataclass
class KeyCodes:
    """Turns key columns into one array for the core, the same way for every batch."""

    sets: list[_core.HashMap] = field(default_factory=list)  # one per column that is numbered
    signature: list[str] | None = None

    def encode(self, keys: Keys, insert: bool = True) -> Any:
        """Rows for the core. Without `insert`, a key that is new gets the number -1."""
        if self.signature is None:
            self.signature = keys.signature
            if len(set(self.signature)) > 1:
                self.sets = [_core.HashMap(0, (one, ()), [], "cpu:0") for one in self.signature]
        self._require_same(keys)
        if keys.is_single:
            return keys.columns[0].rows
        if not self.sets:
            return np.stack([column.array for column in keys.columns], axis=1)
        return np.stack(
            [
                _numbers(one, column.array, insert)
                for one, column in zip(self.sets, keys.columns, strict=True)
            ],
            axis=1,
        )

    def _require_same(self, keys: Keys) -> None:
        expected = self.signature or []
        if len(expected) != len(keys.columns):
            raise ValueError(
                f"{keys.argument}: expected {len(expected)} key columns, got {len(keys.columns)}"
            )
        for column, want, got in zip(keys.columns, expected, keys.signature, strict=True):
            if want != got:
                raise TypeError(
                    f"{column.label}: expected {want}, got {got}; "
                    f"cast with {NUMPY.way_to(want, column.rows, column.label)}"
                )

    def decode(self, rows: _core.Tensor, at: int) -> NumPyArray:
        """Column `at` of the keys that `encode` gave `rows` for."""
        codes = as_numpy(rows)[:, at]
        if not self.sets:
            return np.ascontiguousarray(codes)
        return as_numpy(self.sets[at].keys())[codes]


def _numbers(table: _core.HashMap, column: NumPyArray, insert: bool) -> NumPyArray:
    found = table.insert(column, []) if insert else table.find(column)
    return as_numpy(found[0])


def give_columns(keys: Keys, arrays: list[NumPyArray]) -> dict[str, Array]:
    """The key columns of a result, by name, each in the framework of its column."""
    return {
        name: column.source.give(_core.Tensor.wrap(array))
        for name, column, array in zip(keys.names(), keys.columns, arrays, strict=True)
    }
