"""The common base of the tables of coordinates and vector keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorhash import _core
from tensorhash._frameworks import NUMPY, PLAIN, Framework, to_numpy
from tensorhash._places import HOST
from tensorhash._types import Array
from tensorhash.coords._rows import device_in

if TYPE_CHECKING:
    import torch


class RowTable:
    """A table of rows, numbered in order of insertion. A search finds a key's first row."""

    _table: _core.CoordTableBase | _core.TorchHashTable
    _framework: Framework

    def _give_held(self, held: _core.Tensor, name: str) -> Array:
        """A view of the table's memory; a copy for frameworks without read-only arrays.

        Of a table on a device, NumPy gets the core's tensor.
        """
        if held.device != HOST:
            return (self._framework if self._framework.on_devices else PLAIN).give(held)
        if self._framework is NUMPY:
            return NUMPY.give(held)
        return self._framework.give(_core.Tensor.wrap(np.array(to_numpy(held), order="C"), name))

    def _give_result(self, tensor: _core.Tensor) -> Array:
        """NumPy has no arrays on devices: it gets a copy on the CPU."""
        return self._framework.give(tensor if self._framework.on_devices else tensor.cpu())

    @property
    def vector_keys(self) -> Array:
        """int32 [num_entries, key_dim]: all inserted rows, including duplicates, in order.

        A read-only view in NumPy, a copy in other frameworks; on a device a tensor there.
        """
        return self._give_held(self._table.vector_keys(), "vector_keys")

    @property
    def unique_index(self) -> Array:
        """int32 [distinct]: the first row of each key, ascending."""
        return self._give_result(self._table.unique_index())

    @property
    def capacity(self) -> int:
        """The number of slots, a power of two."""
        return self._table.capacity()

    @property
    def num_entries(self) -> int:
        """The number of inserted rows, including duplicates."""
        return self._table.num_entries()

    @property
    def key_dim(self) -> int:
        """The number of columns of a key. Before the first batch 0, or -1 for TorchHashTable."""
        return self._table.key_dim()

    @property
    def device(self) -> str | torch.device:
        """The table's device: "cpu:0", or a torch.device if its results are torch tensors."""
        return device_in(self._framework, self._table.device)

    def __len__(self) -> int:
        return self.num_entries
