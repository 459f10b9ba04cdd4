"""What every table over rows of integers tells of itself."""

from __future__ import annotations

from typing import Any

from tensorhash._arrays import Framework
from tensorhash._table import Array


class RowTable:
    """Rows are numbered as they come; a key is found at the row where it first came."""

    _table: Any  # the C++ table
    _framework: Framework

    @property
    def vector_keys(self) -> Array:
        """int32 [num_entries, key_dim]: every row inserted, duplicates too, in order."""
        return self._framework.give(self._table.vector_keys())

    @property
    def unique_index(self) -> Array:
        """int32: the first row of each key, ascending."""
        return self._framework.give(self._table.unique_index())

    @property
    def capacity(self) -> int:
        """Slots, a power of two."""
        return self._table.capacity()

    @property
    def num_entries(self) -> int:
        """Rows inserted, duplicates too."""
        return self._table.num_entries()

    @property
    def key_dim(self) -> int:
        """Columns of a key; -1 as long as there are none."""
        return self._table.key_dim()

    @property
    def device(self) -> str:
        """Where the table lives, "cpu:0"."""
        return "cpu:0"

    def __len__(self) -> int:
        return self.num_entries
