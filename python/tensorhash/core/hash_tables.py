"""HashMap and HashSet of `tensorhash.core`: results are Tensors, files are .npz by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorhash import _core
from tensorhash._device import Device
from tensorhash._frameworks import Framework
from tensorhash._table import Table
from tensorhash._types import Element
from tensorhash.core.tensor import CORE, Tensor
from tensorhash.hash_map import HashMap as _HashMap
from tensorhash.hash_set import HashSet as _HashSet


class _CoreTable(Table[Tensor]):
    """The common base of HashMap and HashSet."""

    _suffix = ".npz"
    _default_framework = "core"

    def _hold(self, table: Any, home: Framework) -> None:
        super()._hold(table, CORE)  # whatever framework the dtypes belong to

    def _take(
        self, array: Any, element: Element, argument: str
    ) -> tuple[Any, Callable[[_core.Tensor], Tensor]]:
        """As Table._take, but results are always Tensors."""
        return super()._take(array, element, argument)[0], CORE.give

    @property
    def device(self) -> Device:  # type: ignore[override]
        """The table's device, such as ``Device("CPU:0")``."""
        return Device(self._table.device)


class HashMap(_CoreTable, _HashMap[Tensor]):
    """`tensorhash.HashMap` with `tensorhash.core.Tensor` results; `save("x")` writes x.npz.

    >>> import tensorhash.core as o3c
    >>> m = o3c.HashMap(10, o3c.int64, (1,), o3c.int64, (1,), o3c.Device("CPU:0"))
    >>> indices, masks = m.insert(o3c.Tensor([[100], [200]]), o3c.Tensor([[1], [2]]))
    """


class HashSet(_CoreTable, _HashSet[Tensor]):
    """`tensorhash.HashSet` with `tensorhash.core.Tensor` results; `save("x")` writes x.npz.

    >>> import tensorhash.core as o3c
    >>> s = o3c.HashSet(10, o3c.int64, (3,), o3c.Device("CPU:0"))
    >>> indices, masks = s.insert(o3c.Tensor([[0, 0, 1], [2, 0, 0]]))
    """
