"""HashSet: a batched, parallel hash set."""

from __future__ import annotations

from typing import Any

from tensorhash import _core
from tensorhash._table import Table
from tensorhash._types import ArrayLike, ArrayT, DeviceLike, DtypeLike, ShapeLike


class HashSet(Table[ArrayT]):
    """A batched, parallel hash set. Keys are rows of a dense array.

    >>> s = HashSet(10, "int32", (3,))
    >>> indices, inserted = s.insert([[0, 0, 1], [2, 0, 0], [0, 0, 1]])
    >>> inserted
    array([ True,  True, False])
    >>> s.size(), [2, 0, 0] in s
    (2, True)
    """

    def __init__(
        self,
        init_capacity: int,
        key_dtype: DtypeLike,
        key_element_shape: ShapeLike,
        device: DeviceLike = "cpu",
        *,
        seed: int | None = None,
    ) -> None:
        self._create(init_capacity, (key_dtype, key_element_shape), [], device, seed)

    def insert(self, keys: ArrayLike) -> tuple[ArrayT, ArrayT]:
        """Adds new keys.

        Returns (int32 [N] buffer indices, valid for every row; bool [N] newly inserted).

        >>> HashSet(0, "int64", ()).insert([7, 8, 7])
        (array([0, 1, 0], dtype=int32), array([ True,  True, False]))
        """
        rows, give = self._take(keys, self._key, "keys")
        indices, inserted = self._table.insert(rows, ())
        return give(indices), give(inserted)

    @classmethod
    def _require_kind(cls, table: _core.HashMap, file_name: Any) -> None:
        columns = len(table.value_elements)
        if columns:
            raise ValueError(
                f"{file_name}: holds a HashMap with {columns} value column(s), not a HashSet; "
                f"use HashMap.load"
            )
