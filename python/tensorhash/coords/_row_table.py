"""What every table over rows of integers tells of itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._arrays import NUMPY, Framework, to_numpy
from tensorhash._table import Array
from tensorhash.coords._rows import device_in


class RowTable:
    """Rows are numbered as they come; a key is found at the row where it first came."""

    _table: Any  # the C++ table
    _framework: Framework

    def _give_held(self, held: _core.Tensor, name: str) -> Array:
        """The table's own memory: what cannot be marked read-only is copied."""
        if self._framework is NUMPY:
            return NUMPY.give(held)
        return self._framework.give(_core.Tensor.wrap(np.array(to_numpy(held), order="C"), name))

    @property
    def vector_keys(self) -> Array:
        """int32 [num_entries, key_dim]: every row inserted, duplicates too, in order.

        NumPy gets a read-only view, other frameworks a copy.
        """
        return self._give_held(self._table.vector_keys(), "vector_keys")

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
        """Columns of a key; as long as no batch came 0, for TorchHashTable -1."""
        return self._table.key_dim()

    @property
    def device(self) -> Any:
        """Where the table lives: "cpu:0", or torch's device where its results are torch's."""
        return device_in(self._framework)

    def __len__(self) -> int:
        return self.num_entries
