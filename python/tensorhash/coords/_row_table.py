"""Properties that all tables of coordinates and vector keys have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorhash import _core
from tensorhash._frameworks import NUMPY, Framework, to_numpy
from tensorhash._types import Array
from tensorhash.coords._rows import device_in

if TYPE_CHECKING:
    import torch


class RowTable:
    """Rows are numbered in order of insertion; a key is found at its first row."""

    _table: _core.CoordTableBase | _core.TorchHashTable
    _framework: Framework

    def _give_held(self, held: _core.Tensor, name: str) -> Array:
        """The table's own memory; a copy for frameworks that cannot mark an array read-only."""
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
        """Columns of a key. Before the first batch 0, for TorchHashTable -1."""
        return self._table.key_dim()

    @property
    def device(self) -> str | torch.device:
        """Where the table lives: "cpu:0", or torch's device if its results are torch tensors."""
        return device_in(self._framework)

    def __len__(self) -> int:
        return self.num_entries
