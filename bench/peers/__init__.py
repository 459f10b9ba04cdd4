"""One module per contender: each gives a name, `batch` (its own array of NumPy's) and a Table."""

from __future__ import annotations

from typing import Any


class MapTable:
    """The verbs that are timed, over a map with Open3D's method names; `map` is the subclass's to make."""

    map: Any

    def insert(self, keys: Any, values: Any) -> Any:
        return self.map.insert(keys, values)

    def find(self, keys: Any) -> Any:
        return self.map.find(keys)

    def erase(self, keys: Any) -> Any:
        return self.map.erase(keys)

    def active(self) -> Any:
        return self.map.active_buf_indices()

    def reserve(self, capacity: int) -> None:
        self.map.reserve(capacity)

    def size(self) -> int:
        return self.map.size()
