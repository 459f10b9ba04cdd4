"""SizeVector: a shape as Open3D shows it."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any


class SizeVector(list[int]):
    """A list of extents; equal to a list or a tuple with the same numbers.

    >>> SizeVector((2, 3)), SizeVector(4) == (4,)
    (SizeVector[2, 3], True)
    """

    def __init__(self, extents: int | Iterable[int] = ()) -> None:
        one = hasattr(extents, "__index__") and not hasattr(extents, "__len__")
        several: Any = (extents,) if one else extents
        super().__init__(operator.index(extent) for extent in several)

    def num_elements(self) -> int:
        """The product of the extents."""
        product = 1
        for extent in self:
            product *= extent
        return product

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, tuple)):
            return NotImplemented
        return list(self) == list(other)

    __hash__ = None

    def __repr__(self) -> str:
        return f"SizeVector[{', '.join(map(str, self))}]"
