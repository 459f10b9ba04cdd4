"""SizeVector: Open3D's class for shapes."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any


class SizeVector(list[int]):
    """A shape: a list of ints, equal to a list or tuple of the same ints.

    >>> SizeVector((2, 3)), SizeVector(4) == (4,)
    (SizeVector[2, 3], True)
    """

    def __init__(self, extents: int | Iterable[int] = ()) -> None:
        one = hasattr(extents, "__index__") and not hasattr(extents, "__len__")
        several: Any = (extents,) if one else extents
        super().__init__(operator.index(extent) for extent in several)

    def num_elements(self) -> int:
        """The number of elements: the product of all dimensions."""
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
