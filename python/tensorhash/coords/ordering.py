"""Sorts coordinates along a Morton curve."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np


class POINT_ORDERING(enum.Enum):
    """The order of rows inside a batch item. The first letter is the least significant axis.

    >>> POINT_ORDERING.MORTON_XYZ.name
    'MORTON_XYZ'
    """

    RANDOM = 0
    MORTON_XYZ = 1
    MORTON_XZY = 2
    MORTON_YXZ = 3
    MORTON_YZX = 4
    MORTON_ZXY = 5
    MORTON_ZYX = 6


_NAMES = {"morton": POINT_ORDERING.MORTON_XYZ} | {
    ordering.name.lower(): ordering for ordering in POINT_ORDERING
}


def parse_ordering(ordering: Any, argument: str) -> POINT_ORDERING:
    """The ordering, also from a name such as "morton_xyz"."""
    if isinstance(ordering, POINT_ORDERING):
        return ordering
    if isinstance(ordering, str) and ordering.lower() in _NAMES:
        return _NAMES[ordering.lower()]
    names = ", ".join(f'"{name}"' for name in _NAMES)
    raise ValueError(f"{argument}: expected a POINT_ORDERING or one of {names}; got {ordering!r}")


def morton_order(item: Any, coords: Any, ordering: POINT_ORDERING, argument: str) -> Any:
    """int64 [N]: the rows sorted by item, then along the curve; equal rows keep their order.

    RANDOM keeps the order of all rows. `coords` is int32 or int64 [N, D]; the curve starts at the
    minimum of each axis.
    """
    if ordering is POINT_ORDERING.RANDOM:
        return np.arange(len(coords))
    axes = _axes(ordering, coords.shape[1], argument)
    if len(coords) == 0:
        return np.arange(0)
    # The difference of any two int64 fits uint64, and the unsigned subtraction wraps to it.
    shifted = coords.astype(np.int64).view(np.uint64)[:, axes]
    shifted = shifted - coords.astype(np.int64).min(axis=0).view(np.uint64)[axes]
    return np.lexsort((*_codes(shifted), item))


def _axes(ordering: POINT_ORDERING, count: int, argument: str) -> list[int]:
    if ordering is POINT_ORDERING.MORTON_XYZ:
        return list(range(count))
    if count != 3:
        raise ValueError(
            f"{argument}: expected MORTON_XYZ for coordinates of {count} axes, got {ordering.name}"
        )
    return ["XYZ".index(letter) for letter in ordering.name.removeprefix("MORTON_")]


def _codes(columns: Any) -> list[Any]:
    """The interleaved bits of the columns as uint64 words, least significant first."""
    axes = columns.shape[1]
    bits = int(columns.max()).bit_length()
    step = max(64 // axes, 1)
    return [
        _interleaved(columns, low, min(low + step, bits)) for low in range(0, max(bits, 1), step)
    ]


def _interleaved(columns: Any, low: int, high: int) -> Any:
    """Interleaves the bits low to high - 1 of all columns; the first column is lowest."""
    word = np.zeros(len(columns), np.uint64)
    axes = columns.shape[1]
    for bit in range(low, high):
        for axis in range(axes):
            place = np.uint64((bit - low) * axes + axis)
            word |= ((columns[:, axis] >> np.uint64(bit)) & np.uint64(1)) << place
    return word
