"""Reads columns through the Arrow PyCapsule interface: any library that exports it, none imported.

Numeric columns of pandas, polars and Arrow are read by _frames.py, in the package itself. This
module reads strings, dates and dictionaries, and the columns of other libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._frameworks import as_numpy
from tensorhash._types import NumPyArray
from tensorhash.data._text import (
    Strings,
    date_dtype,
    has_arrow,
    refuse_nulls,
    strings_of,
)

#: Names of Arrow's types that are no keys, by the start of their format.
_OTHER = {
    "+s": "structs; pass a frame of their fields",
    "+r": "run-end encoded values; decode them first",
    "+m": "maps",
    "+w": "lists of one length; pass a NumPy array of two dimensions",
    "+": "lists",
    "d:": "decimals; cast them to integers or strings first",
    "ti": "calendar intervals",
    "_pl": "128-bit numbers of polars; cast them to strings first",
}


def is_plain(array: Any) -> bool:
    """Whether the package reads an array without Arrow: NumPy, lists, tensors."""
    return isinstance(array, (np.ndarray, list, tuple)) or not has_arrow(array)


def import_columns(array: Any, argument: str) -> list[tuple[str | None, Any]] | Any:
    """(name, column) of each column of an exporter that is a frame; else its one column.

    Some exporters are streams, which can be read only once.
    """
    is_frame, names, columns = _core.import_arrow(array, argument)
    return list(zip(names, columns, strict=True)) if is_frame else columns[0]


def arrow_column(array: Any, argument: str) -> _core.ArrowColumn | None:
    """The column of an exporter, without nulls; None for all other arrays."""
    if isinstance(array, _core.ArrowColumn):
        column = array
    elif is_plain(array):
        return None
    else:
        is_frame, _, columns = _core.import_arrow(array, argument)
        if is_frame and len(columns) != 1:
            raise TypeError(f"{argument}: expected one column, got {len(columns)}")
        column = columns[0]
    refuse_nulls(column, argument)
    return column


def text_column(array: Any, argument: str) -> Strings | None:
    """The strings of an array, a list or a column; None if it has none."""
    found = strings_of(array, argument)
    if found is not None:
        return found
    is_objects = isinstance(array, np.ndarray) and array.dtype == object and array.ndim == 1
    if (isinstance(array, (list, tuple)) or is_objects) and not len(array):
        return Strings([], "objects", 0)
    try:
        column = arrow_column(array, argument)
    except ImportError:  # pandas exports Arrow data only with pyarrow
        return strings_of(np.asarray(array, dtype=object), argument)
    if column is not None:
        return Strings(column, "arrow", column.rows()) if column.is_text() else None
    # Such as an Index of pandas.
    return strings_of(np.asarray(array), argument) if hasattr(array, "__array__") else None


def number_column(column: _core.ArrowColumn, argument: str) -> NumPyArray:
    """The numbers of a column; dates as datetime64, durations as timedelta64."""
    format = column.format()
    other = next((name for start, name in _OTHER.items() if format.startswith(start)), None)
    if other is not None:
        raise TypeError(
            f"{argument}: expected bool, integers, floats, dates, times or strings, got {other}"
        )
    numbers = as_numpy(column.numbers(argument))
    dtype = date_dtype(format)
    return numbers if dtype is None else numbers.astype(np.int64).view(dtype)
