"""One module per contender. The module of a table has NAME, `batch` (converts a NumPy array) and Table."""

from __future__ import annotations

from typing import Any

import numpy as np


class MapTable:
    """The timed verbs of a map with Open3D's method names. The subclass sets `map`."""

    map: Any

    def insert(self, keys: Any, values: Any) -> Any:
        return self.map.insert(keys, values)[1]

    def find(self, keys: Any) -> Any:
        return self.map.find(keys)[1]

    def erase(self, keys: Any) -> Any:
        return self.map.erase(keys)

    def active(self) -> Any:
        return self.map.active_buf_indices()

    def reserve(self, capacity: int) -> None:
        self.map.reserve(capacity)

    def size(self) -> int:
        return self.map.size()


def count(mask: Any) -> int:
    """The number of True rows in a contender's mask."""
    return int(np.count_nonzero(mask if isinstance(mask, np.ndarray | list) else mask.numpy()))
