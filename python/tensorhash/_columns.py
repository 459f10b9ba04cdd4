"""Joins columns of equal length to rows, in a dtype that holds every column exactly.

NumPy joins int64 with float64 or uint64 as float64. That rounds integers beyond 2^53, and two keys
may become equal. This module refuses such columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def join_columns(columns: list[tuple[str, Any]], argument: str) -> Any:
    """[N, C] from C named 1-D NumPy arrays of length N; TypeError if no dtype holds them all."""
    dtype = _common_dtype(columns, argument)
    rows = np.empty((len(columns[0][1]), len(columns)), dtype)
    for at, (_, column) in enumerate(columns):
        rows[:, at] = column
    return rows


def no_column(label: str, column: Any) -> str:
    """The error of a tuple of columns with something else than an array in it."""
    return (
        f"{label}: expected an array, since a tuple that holds arrays has one per column, "
        f"got {type(column).__name__}; for rows pass a list"
    )


def no_vector(label: str, shape: Any) -> str:
    """The error of a tuple of columns with an array of another rank in it."""
    return (
        f"{label}: expected a 1-D array, since a tuple of arrays has one per column, "
        f"got shape {shape}; for rows pass a list"
    )


def _common_dtype(columns: list[tuple[str, Any]], argument: str) -> Any:
    dtypes = [column.dtype for _, column in columns]
    try:
        common = np.result_type(*dtypes)
    except TypeError:
        common = None  # for example bfloat16 and int64
    for at, dtype in enumerate(dtypes):
        if common is None or not _holds(common, dtype):
            other = next(i for i, one in enumerate(dtypes) if one != dtype)
            raise TypeError(
                f"{argument}: expected columns that one dtype holds exactly, got {dtype.name} in "
                f"{columns[at][0]} and {dtypes[other].name} in {columns[other][0]}; cast them to "
                f"one dtype first, such as float64 if no integer is beyond 2**53"
            )
    return common


def _holds(wide: Any, narrow: Any) -> bool:
    """Whether dtype `wide`, NumPy's promotion of `narrow`, holds all numbers of `narrow`."""
    if narrow.kind in "iu" and wide.kind == "f":
        bits = np.iinfo(narrow).bits - (narrow.kind == "i")
        return bool(bits <= np.finfo(wide).nmant + 1)
    return True
