"""Recognises strings and dates in arrays and columns, and reads them without an object per row."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import numpy as np

from tensorhash import _core
from tensorhash._frameworks import NUMPY
from tensorhash._types import NumPyArray


class Strings(NamedTuple):
    """Strings for the core: "bytes" and "text" are fixed-width rows, "objects" str and bytes."""

    rows: Any
    kind: str
    size: int


def has_arrow(array: Any) -> bool:
    """Whether an object exports Arrow data."""
    return hasattr(array, "__arrow_c_stream__") or hasattr(array, "__arrow_c_array__")


def strings_of(array: Any, argument: str) -> Strings | None:
    """The strings of a list or a NumPy array; None if it has no strings."""
    if isinstance(array, (list, tuple)) and array and isinstance(array[0], (str, bytes)):
        return Strings(array, "objects", len(array))
    if not isinstance(array, np.ndarray):
        return None
    array = np.asarray(NUMPY.take(array, argument))  # refuses masked entries
    if array.dtype.kind in "SU" and array.ndim == 1:
        return _fixed_width(array)
    if array.ndim != 1:
        return None
    if array.dtype.kind == "T":
        return Strings(array.tolist(), "objects", len(array))
    if array.dtype.kind == "O" and _holds_strings(array):
        return Strings(array, "objects", len(array))
    return None


def holds_bytes(strings: Strings) -> bool:
    """Whether strings came as bytes, not as text. The first of several objects decides."""
    if strings.kind == "arrow":
        return bool(strings.rows.format().startswith(("z", "Z", "vz", "w")))
    if strings.kind == "objects":
        return strings.size > 0 and isinstance(strings.rows[0], bytes)
    return strings.kind == "bytes"


def refuse_listed_dates(array: Any, argument: str) -> None:
    """TypeError for a list of Python's dates, which says how to make an array of them."""
    if not isinstance(array, (list, tuple)) or not array:
        return
    if isinstance(array[0], (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)):
        is_span = isinstance(array[0], (datetime.timedelta, np.timedelta64))
        dtype = "timedelta64[us]" if is_span else "datetime64[us]"
        raise TypeError(
            f"{argument}: expected numbers, strings or an array, got a list with a "
            f'{type(array[0]).__name__} in row 0; pass np.array({argument}, "{dtype}")'
        )


def _holds_strings(array: NumPyArray) -> bool:
    return array.size > 0 and isinstance(array.flat[0], (str, bytes))


def _fixed_width(array: NumPyArray) -> Strings:
    kind, number = ("bytes", np.uint8) if array.dtype.kind == "S" else ("text", np.uint32)
    native = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="), copy=False)
    width = native.dtype.itemsize // np.dtype(number).itemsize
    if width == 0:
        return Strings(np.zeros((len(native), 0), number), kind, len(native))
    return Strings(native.view(number).reshape(len(native), width), kind, len(native))


#: NumPy's unit of Arrow's time formats: "tsn" has nanoseconds.
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


def date_dtype(format: str) -> np.dtype[Any] | None:
    """The NumPy dtype of Arrow's dates, timestamps and durations; None for all else."""
    if format == "tdD":
        return np.dtype("datetime64[D]")
    if format == "tdm":
        return np.dtype("datetime64[ms]")
    if format.startswith("ts"):
        return np.dtype(f"datetime64[{_UNITS[format[2]]}]")
    if format.startswith("tD"):
        return np.dtype(f"timedelta64[{_UNITS[format[2]]}]")
    return None


def refuse_nulls(column: _core.ArrowColumn, label: str) -> None:
    """ValueError that counts the nulls and names the first row, if there are any."""
    count, first = column.nulls()
    if count:
        raise ValueError(
            f"{label}: expected no nulls, got {count}, the first in row {first}; "
            f"drop or fill them first"
        )


def numbers_of_dates(array: NumPyArray, label: str) -> NumPyArray:
    """int64 from datetime64 or timedelta64; ValueError if there is a NaT."""
    missing = np.flatnonzero(np.isnat(array))
    if len(missing):
        raise ValueError(
            f"{label}: expected no nulls, got {len(missing)} NaT, the first in row {missing[0]}; "
            f"drop them with {label}[~np.isnat({label})]"
        )
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return native.view(np.int64)
