"""HashMap: a batched, parallel hash table from keys to values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorhash import _core
from tensorhash._arguments import words
from tensorhash._arrays import is_number, take_array
from tensorhash._frameworks import Framework, framework
from tensorhash._lists import natural_array
from tensorhash._map import MapTable, one_or_tuple
from tensorhash._places import Place
from tensorhash._types import ArrayLike, ArrayT, DeviceLike, DtypeLike, ShapeLike

if TYPE_CHECKING:
    from typing_extensions import Self


class HashMap(MapTable[ArrayT]):
    """A batched, parallel hash table. Keys and values are rows of dense arrays.

    >>> m = HashMap(10, "int64", (1,), "float32", (2,))
    >>> indices, inserted = m.insert([[100], [200], [100]], [[1, 2], [3, 4], [5, 6]])
    >>> indices, inserted
    (array([0, 1, 0], dtype=int32), array([ True,  True, False]))
    >>> m.get([[200], [7]], default=-1)
    array([[ 3.,  4.],
           [-1., -1.]], dtype=float32)

    Several value columns: ``value_dtypes=("uint8", "float32"), value_element_shapes=((3,), (1,))``.
    A batch acts as if its rows were applied one by one, in order, on any number of threads.

    Batch results use the framework of the keys, or the table's for lists. Views and listings use
    the framework of the table's dtypes: torch dtypes give torch tensors, strings and NumPy dtypes
    give NumPy arrays. In annotations, `HashMap[torch.Tensor]` names the class of the results.

    `seed` decides where keys lie inside the index; no result depends on it. By default it is
    random, so that an attacker cannot choose keys that collide.
    """

    _without_values = "use HashSet"

    def __init__(
        self,
        init_capacity: int,
        key_dtype: DtypeLike,
        key_element_shape: ShapeLike,
        value_dtype: DtypeLike | Sequence[DtypeLike] | None = None,
        value_element_shape: ShapeLike | Sequence[ShapeLike] | None = None,
        device: DeviceLike = "cpu",
        *,
        value_dtypes: Sequence[DtypeLike] | None = None,
        value_element_shapes: Sequence[ShapeLike] | None = None,
        seed: int | None = None,
    ) -> None:
        key = (key_dtype, key_element_shape)
        one = (value_dtype, value_element_shape)
        several = (value_dtypes, value_element_shapes)
        self._create_map(init_capacity, key, one, several, device, seed)

    @classmethod
    def from_items(
        cls,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = (),
        *,
        device: DeviceLike = None,
    ) -> Self:
        """A map of keys[i] -> values[i] with the arrays' dtypes; of equal keys the first row wins.

        `values` is one array, or a tuple or list of arrays, one per column. The map is where the
        arrays are, unless `device` is given.

        >>> HashMap.from_items(np.array([3, 5]), np.array([0.5, 0.25])).get([5])
        array([0.25])
        """
        rows, columns, home = cls._free_items(keys, values)
        place = Place(device, home, rows, *columns)
        rows = place.take(rows, "keys")
        names = ["values"] if len(columns) == 1 else [f"values[{i}]" for i in range(len(columns))]
        columns = [place.take(*column) for column in zip(columns, names, strict=True)]
        return cls._of(_core.HashMap.from_items(rows, columns), home)

    @classmethod
    def _free_items(cls, keys: ArrayLike, values: Any) -> tuple[Any, list[Any], Framework]:
        """(keys, columns, framework of the new table), with the dtypes of the given arrays."""
        if isinstance(keys, dict):
            raise TypeError(
                "keys: expected an array or a list, got dict; pass list(keys), list(keys.values())"
            )
        rows, source = _free_array(keys, "keys")
        if isinstance(values, (list, tuple)) and all(_is_column(v, values) for v in values):
            columns = [_free_array(v, f"values[{i}]")[0] for i, v in enumerate(values)]
        else:
            columns = [_free_array(values, "values")[0]]
        home = source if source in ("torch", "core") else cls._default_framework
        return rows, columns, framework(home)

    def insert(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[ArrayT, ArrayT]:
        """Adds new keys with their values; of equal keys the first row wins.

        Returns (int32 [N] buffer indices, valid for every row; bool [N] newly inserted).
        `values` is one array, or a list or tuple of arrays, one per column.

        >>> m = HashMap(0, "int64", (), "float32", ())
        >>> m.insert([7, 8, 7], [0.5, 1.5, 9.0])
        (array([0, 1, 0], dtype=int32), array([ True,  True, False]))
        >>> m.get([7])
        array([0.5], dtype=float32)
        """
        rows, give = self._take(keys, self._key, "keys")
        columns = self._take_values(values, list_values, rows)
        indices, inserted = self._table.insert(rows, columns)
        return give(indices), give(inserted)

    def insert_or_assign(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[ArrayT, ArrayT]:
        """Adds new keys, overwrites others; the last of equal keys wins. Returns as `insert`.

        >>> m = HashMap(0, "int64", (), "float32", ())
        >>> _ = m.insert_or_assign([7, 7], [0.5, 9.0])
        >>> m.get([7])
        array([9.], dtype=float32)
        """
        rows, give = self._take(keys, self._key, "keys")
        columns = self._take_values(values, list_values, rows)
        indices, inserted = self._table.insert_or_assign(rows, columns)
        return give(indices), give(inserted)

    def accumulate(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        reduce: str | Sequence[str] = "sum",
        *,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[ArrayT, ArrayT]:
        """Combines rows with stored values by "sum", "prod", "min", "max", "first" or "last".

        Bool columns also take "any" and "all", and integer columns "count", which adds 1 per row
        and ignores the values. `reduce` is one word for all columns, or one per column. New keys
        start with their first row; float sums add in row order. Returns as `insert`.

        >>> m = HashMap(10, "int64", (), "int64", ())
        >>> _ = m.accumulate([7, 8, 7], [1, 1, 1])
        >>> m.get([7, 8])
        array([2, 1])
        """
        rows, give = self._take(keys, self._key, "keys")
        columns = self._take_values(values, list_values, rows)
        indices, inserted = self._table.accumulate(rows, columns, words(reduce))
        return give(indices), give(inserted)

    def activate(self, keys: ArrayLike) -> tuple[ArrayT, ArrayT]:
        """Adds new keys with zeros as values, to be written later. Returns as `insert`.

        >>> m = HashMap(0, "int64", (), "float32", ())
        >>> indices, inserted = m.activate([7, 8])
        >>> m.value_tensor()[indices] = [0.5, 1.5]
        >>> m.get([8])
        array([1.5], dtype=float32)
        """
        rows, give = self._take(keys, self._key, "keys")
        indices, inserted = self._table.activate(rows)
        return give(indices), give(inserted)

    def get(self, keys: ArrayLike, default: Any = None) -> ArrayT | tuple[ArrayT, ...]:
        """The values of each key, [N, *value_element_shape]; a tuple for several columns.

        Missing keys give zeros, or `default`: a number, one row, or one row per key. For several
        columns `default` is a tuple of these.

        >>> m = HashMap(0, "int64", (), "float32", ())
        >>> _ = m.insert([7], [0.5])
        >>> m.get([7, 8]), m.get([7, 8], default=-1)
        (array([0.5, 0. ], dtype=float32), array([ 0.5, -1. ], dtype=float32))
        """
        rows, give = self._take(keys, self._key, "keys")
        return one_or_tuple(self._table.get(rows, self._take_defaults(default)), give)


def _is_column(value: Any, values: Any) -> bool:
    """Whether `value` is a column. A tuple of lists holds columns; a list of lists is one array."""
    if isinstance(value, (list, tuple, range)):
        return isinstance(values, tuple)
    return not is_number(value)


def _free_array(array: Any, argument: str) -> tuple[Any, str]:
    """(array for the core, name of its framework), in the array's own dtype."""
    taken = take_array(array, None, argument)
    if taken is None:
        return natural_array(array, argument), "list"
    return taken[0], taken[1].name
