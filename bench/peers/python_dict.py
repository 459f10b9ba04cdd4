"""Python's dict as a contender, with lists of numbers or bytes. Their conversion is not timed. It cannot reserve."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from harness.keys import KeyKind

NAME = "dict"


def batch(array: np.ndarray) -> list[Any]:
    """A list of numbers, or of bytes for rows of more than one element."""
    if array.shape[1:] in ((), (1,)):
        return array.ravel().tolist()
    width = array.itemsize * array[0].size if len(array) else 1
    return np.ascontiguousarray(array).view(np.dtype((np.void, width))).ravel().tolist()


class Table:
    def __init__(self, capacity: int, kind: KeyKind) -> None:
        self.map: dict[Any, Any] = {}

    def insert(self, keys: list[Any], values: list[Any]) -> list[bool]:
        self.map.update(zip(keys, values, strict=True))
        return [True] * len(self.map)

    def find(self, keys: list[Any]) -> list[bool]:
        get = self.map.get
        return [get(key) is not None for key in keys]

    def erase(self, keys: list[Any]) -> None:
        pop = self.map.pop
        deque((pop(key, None) for key in keys), maxlen=0)

    def active(self) -> list[Any]:
        return list(self.map.values())

    def size(self) -> int:
        return len(self.map)
