"""Reads columns and frames of pandas, polars and Arrow exactly, or refuses them.

Their own conversion to NumPy gives float64 for columns with nulls or mixed dtypes, and so rounds
integers beyond 2^53. Here a null is an error, and `join_columns` refuses columns that no dtype
holds exactly. This module imports none of the libraries.
"""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._columns import join_columns
from tensorhash._frameworks import NUMPY, Framework
from tensorhash._types import Array


class _Label:
    """The name of a column in messages: keys, or keys['x'] if keys is a frame."""

    def __init__(self, whole: str, column: Any = None, in_frame: bool = False) -> None:
        self.whole = whole
        self.column = f"{whole}[{column!r}]" if in_frame else whole


class Frames(Framework):
    """The base of the three libraries. Results are NumPy arrays; nulls and other dtypes raise."""

    # Expressions for messages; {0} is the argument.
    drop: str  # drops rows with nulls
    fill: str  # replaces nulls
    listed: str  # makes a list of a column's elements
    dates: str  # makes integers of dates and times

    @property
    def results(self) -> Framework:
        """NumPy, because results have neither column names nor nulls."""
        return NUMPY

    def give(self, tensor: _core.Tensor) -> Array:
        """A NumPy array."""
        return NUMPY.give(tensor)

    def take(self, array: Any, argument: str) -> Any:
        """[N] from a column, [N, C] from a frame."""
        columns = self.columns(array, argument)
        if columns is None:
            return self.read(array, _Label(argument))
        labels = [_Label(argument, name, in_frame=True) for name, _ in columns]
        parts = [self.read(one, label) for label, (_, one) in zip(labels, columns, strict=True)]
        if not parts:
            raise ValueError(f"{argument}: expected columns, got a frame without any")
        for label, part in zip(labels, parts, strict=True):
            if part.ndim != 1:
                raise TypeError(
                    f"{label.column}: expected one number per row, got shape {part.shape[1:]}; "
                    f"pass this column on its own"
                )
        named = zip(labels, parts, strict=True)
        return join_columns([(label.column, part) for label, part in named], argument)

    @abc.abstractmethod
    def columns(self, array: Any, argument: str) -> list[tuple[Any, Any]] | None:
        """(name, column) for each column of a frame; None if `array` is one column."""

    @abc.abstractmethod
    def read(self, column: Any, label: _Label) -> Any:
        """A NumPy array from a column; an error if it has nulls."""

    def refuse_nulls(self, count: int, first: int, label: _Label) -> None:
        """ValueError if there are nulls; the message says how to drop or fill them."""
        if count:
            raise ValueError(
                f"{label.column}: expected no nulls, got {count}, the first in row {first}; drop "
                f"them with {self.drop.format(label.whole)} or fill them with "
                f"{self.fill.format(label.whole)}"
            )

    def refuse_nulls_inside(self, count: int, first: int, label: _Label) -> None:
        """The same for nulls inside the rows of a column of arrays, which `drop` would keep."""
        if count:
            kept = f"[row for row in {self.listed.format(label.column)} if None not in row]"
            raise ValueError(
                f"{label.column}: expected no nulls, got {count} inside rows, the first in row "
                f"{first}; drop such rows with {kept}"
            )

    def not_numeric(self, dtype: Any, kind: str, label: _Label) -> TypeError:
        """The error for elements that are not numbers.

        `kind` is "text", "date", "object" or "other".
        """
        name = label.column
        hint = "; cast it to an integer or float dtype first"
        if kind == "text":
            hint = (
                f"; tensorhash.factorize and StringIndex number strings; for rows of code points, pass "
                f'np.array({self.listed.format(name)}, "U").view("uint32").reshape(len({name}), -1)'
            )
        elif kind == "date":
            hint = f"; pass {self.dates.format(name)}"
        elif kind == "object":
            hint = f"; pass {self.listed.format(name)}: each number of a list is checked"
        return TypeError(f"{name}: expected bool, integers or floats, got {dtype}{hint}")


class _Pandas(Frames):
    name = "pandas"
    cast = '{0}.astype("{1}")'
    drop = "{0}.dropna()"
    fill = "{0}.fillna(...)"
    listed = "{0}.tolist()"
    dates = '{0}.astype("int64")'

    def take(self, array: Any, argument: str) -> Any:
        dtypes = set(array.dtypes) if hasattr(array, "columns") else set()
        if len(dtypes) == 1 and _is_numeric(next(iter(dtypes))):
            return np.asarray(array)  # one dtype: convert all columns at once
        return super().take(array, argument)

    def columns(self, array: Any, argument: str) -> list[tuple[Any, Any]] | None:
        return list(array.items()) if hasattr(array, "columns") else None

    def read(self, column: Any, label: _Label) -> Any:
        dtype = column.dtype
        if _is_numeric(dtype):
            return np.asarray(column)  # a NaN is a float here, not a null
        if _is_numpy(dtype, "O"):
            raise self.not_numeric(dtype, "object", label)
        if hasattr(dtype, "fill_value"):  # a sparse column
            return self.read(column.astype(dtype.subtype), label)
        missing = np.flatnonzero(np.asarray(column.isna()))
        self.refuse_nulls(len(missing), int(missing[0]) if len(missing) else 0, label)
        if hasattr(dtype, "categories"):
            return self.read(column.astype(dtype.categories.dtype), label)
        plain = getattr(dtype, "numpy_dtype", None)
        if plain is not None and _is_numeric(plain):
            return column.to_numpy(dtype=plain)
        raise self.not_numeric(dtype, _pandas_kind(dtype), label)


def _is_numpy(dtype: Any, kinds: str) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in kinds


def _is_numeric(dtype: Any) -> bool:
    return _is_numpy(dtype, "biuf")


def _pandas_kind(dtype: Any) -> str:
    text = str(dtype)
    if text.startswith(("str", "large_string")):
        return "text"
    dates = ("datetime64", "timedelta64", "period", "timestamp", "duration", "date", "time")
    return "date" if text.startswith(dates) else "other"


class _Polars(Frames):
    name = "polars"
    drop = "{0}.drop_nulls()"
    fill = "{0}.fill_null(...)"
    listed = "{0}.to_list()"
    dates = "{0}.to_physical()"

    def way_to(self, dtype: str, array: Any, argument: str) -> str:
        """The cast with polars' dtype names: Int64 for int64, Boolean for bool."""
        name = {"bool": "Boolean"}.get(dtype, dtype.title().replace("Uint", "UInt"))
        return f"{argument}.cast(pl.{name})"

    def columns(self, array: Any, argument: str) -> list[tuple[Any, Any]] | None:
        if hasattr(array, "collect"):
            raise TypeError(
                f"{argument}: expected data, got a LazyFrame; pass {argument}.collect()"
            )
        if not hasattr(array, "get_columns"):
            return None
        return [(column.name, column) for column in array.get_columns()]

    def read(self, column: Any, label: _Label) -> Any:
        dtype = column.dtype
        nulls = column.null_count()
        self.refuse_nulls(nulls, int(column.is_null().arg_max()) if nulls else 0, label)
        kind = dtype.base_type().__name__
        if kind in _POLARS_NUMBERS:
            return column.to_numpy()
        if kind == "Array":
            shape = tuple(dtype.shape)
            width = math.prod(shape)
            flat = column.reshape((-1,)) if width else column.head(0)
            inside = flat.null_count() if width else 0
            first = int(flat.is_null().arg_max()) // width if inside else 0
            self.refuse_nulls_inside(inside, first, label)
            return self.read(flat, label).reshape(len(column), *shape)
        words = {"String": "text", "Categorical": "text", "Enum": "text", "Object": "object"}
        dates = ("Date", "Datetime", "Duration", "Time")
        raise self.not_numeric(dtype, "date" if kind in dates else words.get(kind, "other"), label)


_POLARS_NUMBERS = {
    "Boolean",
    *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
    *(f"Float{bits}" for bits in (16, 32, 64)),
}


class _Arrow(Frames):
    name = "pyarrow"
    drop = "{0}.drop_null()"
    fill = "{0}.fill_null(...)"
    listed = "{0}.to_pylist()"
    dates = '{0}.cast("int64")'

    def way_to(self, dtype: str, array: Any, argument: str) -> str:
        """The cast: a table to a schema, a column to a type."""
        if not hasattr(array, "column_names"):
            return f'{argument}.cast("{dtype}")'
        fields = f'[(name, "{dtype}") for name in {argument}.column_names]'
        return f"{argument}.cast(pa.schema({fields}))"

    def columns(self, array: Any, argument: str) -> list[tuple[Any, Any]] | None:
        if not hasattr(array, "column_names"):
            return None
        return list(zip(array.column_names, array.columns, strict=True))

    def read(self, column: Any, label: _Label) -> Any:
        nulls = column.null_count
        first = column.is_null().to_pylist().index(True) if nulls else 0
        self.refuse_nulls(nulls, first, label)
        kind = str(column.type)
        if kind in _ARROW_NUMBERS:
            array = column.to_numpy(zero_copy_only=False)
            return array if len(array) else array.astype(_ARROW_NUMBERS[kind])
        if kind.startswith("dictionary<"):
            return self.read(column.cast(column.type.value_type), label)
        if kind.startswith("fixed_size_list<"):
            joined = column.combine_chunks() if hasattr(column, "combine_chunks") else column
            width = column.type.list_size
            rows = joined.flatten()
            inside = rows.null_count
            first = rows.is_null().to_pylist().index(True) // width if inside else 0
            self.refuse_nulls_inside(inside, first, label)
            flat = self.read(rows, label)
            return flat.reshape(len(column), width, *flat.shape[1:])
        dates = ("timestamp", "duration", "date", "time")
        what = "date" if kind.startswith(dates) else "other"
        raise self.not_numeric(
            column.type, "text" if "string" in kind.partition("<")[0] else what, label
        )

    def not_numeric(self, dtype: Any, kind: str, label: _Label) -> TypeError:
        """Arrow casts a date or time only to integers of the same width."""
        if kind == "date" and dtype.bit_width == 32:
            return TypeError(
                f"{label.column}: expected bool, integers or floats, got {dtype}; "
                f'pass {label.column}.cast("int32")'
            )
        return super().not_numeric(dtype, kind, label)


_ARROW_NUMBERS = {
    "bool": "bool",
    **{f"{sign}int{n}": f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)},
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
}

FRAMES: dict[str, Framework] = {one.name: one for one in (_Pandas(), _Polars(), _Arrow())}
