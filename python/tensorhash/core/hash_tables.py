"""HashMap and HashSet as `tensorhash.core` has them: own tensors, .npz files, Device objects."""

from __future__ import annotations

from tensorhash._device import Device
from tensorhash._table import Table
from tensorhash.hash_map import HashMap as _HashMap
from tensorhash.hash_set import HashSet as _HashSet


class _CoreTable(Table):
    _suffix = ".npz"
    _default_framework = "core"

    @property
    def device(self) -> Device:
        """Where the table lives, ``Device("CPU:0")``."""
        return Device(self._table.device)


class HashMap(_CoreTable, _HashMap):
    """`tensorhash.HashMap` with tensors of `tensorhash.core` by default; `save("x")` writes x.npz.

    >>> import tensorhash.core as o3c
    >>> m = o3c.HashMap(10, o3c.int64, (1,), o3c.int64, (1,), o3c.Device("CPU:0"))
    >>> indices, masks = m.insert(o3c.Tensor([[100], [200]]), o3c.Tensor([[1], [2]]))
    """


class HashSet(_CoreTable, _HashSet):
    """`tensorhash.HashSet` with tensors of `tensorhash.core` by default; `save("x")` writes x.npz.

    >>> import tensorhash.core as o3c
    >>> s = o3c.HashSet(10, o3c.int64, (3,), o3c.Device("CPU:0"))
    >>> indices, masks = s.insert(o3c.Tensor([[0, 0, 1], [2, 0, 0]]))
    """
