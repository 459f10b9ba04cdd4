"""HashMap: a batch of keys and values in, a batch of buffer indices out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash import _core
from tensorhash._arrays import Framework, framework, is_number, take_array
from tensorhash._lists import array_of, natural_array, rows_of
from tensorhash._table import (
    Array,
    ArrayLike,
    DtypeLike,
    Element,
    ShapeLike,
    Table,
    integer,
)
from tensorhash.optim import Optimizer, require_optimizer, word

if TYPE_CHECKING:
    from typing_extensions import Self


class HashMap(Table):
    """A parallel hash table whose keys and values are rows of dense arrays.

    >>> m = HashMap(10, "int64", (1,), "float32", (2,))
    >>> indices, inserted = m.insert([[100], [200], [100]], [[1, 2], [3, 4], [5, 6]])
    >>> indices, inserted
    (array([0, 1, 0], dtype=int32), array([ True,  True, False]))
    >>> m.get([[200], [7]], default=-1)
    array([[ 3.,  4.],
           [-1., -1.]], dtype=float32)

    Several value columns: ``value_dtypes=("uint8", "float32"), value_element_shapes=((3,), (1,))``.
    A batch acts as if its rows were applied one by one, in order, on any number of threads.
    Batch results come in the framework of the keys given (lists: the table's); views and listings
    in the framework of the dtypes: torch's give torch tensors, strings and NumPy's NumPy arrays.
    No result depends on `seed`, which says where keys lie inside the index: without one each table
    draws its own, so that no sender of keys can choose ones that collide.
    """

    _values: list[Element]

    def __init__(
        self,
        init_capacity: int,
        key_dtype: DtypeLike,
        key_element_shape: ShapeLike,
        value_dtype: DtypeLike | Sequence[DtypeLike] | None = None,
        value_element_shape: ShapeLike | Sequence[ShapeLike] | None = None,
        device: Any = "cpu",
        *,
        value_dtypes: Sequence[DtypeLike] | None = None,
        value_element_shapes: Sequence[ShapeLike] | None = None,
        seed: int | None = None,
    ) -> None:
        one = (value_dtype, value_element_shape)
        columns = value_columns(one, (value_dtypes, value_element_shapes))
        self._create(init_capacity, (key_dtype, key_element_shape), columns, device, seed)

    def _hold(self, table: Any, home: Framework) -> None:
        super()._hold(table, home)
        self._values = [(dtype, tuple(shape)) for dtype, shape in table.value_elements]

    @classmethod
    def from_items(cls, keys: ArrayLike, values: ArrayLike | Sequence[ArrayLike] = ()) -> Self:
        """A map of keys[i] -> values[i] with the arrays' dtypes; the first of equal keys wins.

        `values` is one array, or a tuple or list of arrays, one per column.

        >>> HashMap.from_items(np.array([3, 5]), np.array([0.5, 0.25])).get([5])
        array([0.25])
        """
        rows, columns, home = cls._free_items(keys, values)
        return cls._of(_core.HashMap.from_items(rows, columns), home)

    @classmethod
    def _free_items(cls, keys: ArrayLike, values: Any) -> tuple[Any, list[Any], Framework]:
        """(keys, columns, framework of the table to be) of arrays that set the dtypes."""
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
    ) -> tuple[Array, Array]:
        """Adds the keys that are new, with their values; of equal keys the first row wins.

        Returns (int32 [N] buffer indices, right for every row; bool [N] newly inserted).
        `values` is one array, or a list or tuple of arrays, one per column.
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
    ) -> tuple[Array, Array]:
        """Adds new keys, overwrites others; the last of equal keys wins. Returns as `insert`."""
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
    ) -> tuple[Array, Array]:
        """Joins each row with what is stored: "sum", "min", "max", "first" or "last".

        `reduce` is one for all columns or one each. New keys start from their first row; float sums
        add in row order. Returns as `insert`.

        >>> m = HashMap(10, "int64", (), "int64", ())
        >>> _ = m.accumulate([7, 8, 7], [1, 1, 1])
        >>> m.get([7, 8])
        array([2, 1])
        """
        rows, give = self._take(keys, self._key, "keys")
        columns = self._take_values(values, list_values, rows)
        indices, inserted = self._table.accumulate(rows, columns, _words(reduce))
        return give(indices), give(inserted)

    def update(
        self,
        keys: ArrayLike,
        gradients: ArrayLike,
        optimizer: Optimizer,
        *,
        missing: str = "skip",
        duplicates: str = "in_order",
        initial: Any = None,
    ) -> tuple[Array, Array]:
        """An optimizer step of tensorhash.optim for each row; gradients as the first value column.

        `missing` keys: "skip"; "insert", with weights `initial` (as `default` in `get`) and fresh
        state; or "error". `duplicates`: a step for each row "in_order", or one with the "sum".
        Returns (int32 [N] buffer indices, -1 where skipped; bool [N] the key was there).
        """
        how = missing, duplicates, initial
        arguments, give = self._take_update(keys, gradients, optimizer, *how)
        indices, found = _core.update(self._table, *arguments)
        return give(indices), give(found)

    def activate(self, keys: ArrayLike) -> tuple[Array, Array]:
        """Adds the keys that are new, values zero, to be written later. Returns as `insert`."""
        rows, give = self._take(keys, self._key, "keys")
        indices, inserted = self._table.activate(rows)
        return give(indices), give(inserted)

    def get(self, keys: ArrayLike, default: Any = None) -> Array | tuple[Array, ...]:
        """The values of each key, [N, *value_element_shape]; a tuple if there are several columns.

        Missing keys give zeros, or `default`: a number, a row, or one row per key; for several
        columns a tuple of these.
        """
        rows, give = self._take(keys, self._key, "keys")
        values = self._table.get(rows, self._take_defaults(default))
        return _one_or_tuple([give(value) for value in values])

    def items(self) -> tuple[Array, Array | tuple[Array, ...]]:
        """(keys, values) of the live entries, copies; several columns give a tuple of values."""
        return self._give_items(self._table.items())

    def _give_items(self, items: Any) -> tuple[Array, Array | tuple[Array, ...]]:
        keys, values = items
        give = self._framework.give
        return give(keys), _one_or_tuple([give(value) for value in values])

    def value_tensor(self, value_buffer_id: int = 0) -> Array:
        """A value buffer itself, [capacity, *value_element_shape], to read and write at indices.

        A view taken before growth or compact() keeps the old memory: safe, no longer the table's.
        """
        return self._framework.give(
            self._table.value_tensor(
                integer(value_buffer_id, "value_buffer_id", len(self._values) - 1)
            )
        )

    def value_tensors(self) -> list[Array]:
        """All value buffers, one per column."""
        return [self.value_tensor(column) for column in range(len(self._values))]

    def _take_values(self, values: Any, list_values: Any, rows: Any) -> list[Any]:
        if list_values is not None:
            if values is not None:
                raise TypeError("values: got both values and list_values")
            columns: Sequence[Any] = list(list_values)
        elif values is None and self._values:
            raise TypeError(
                f"values: expected {len(self._values)} array(s), one per value column, got 0; "
                f"activate(keys) adds keys without values"
            )
        elif values is None:
            columns = ()
        elif len(self._values) == 1 and not _is_list_of_one_column(values, rows):
            return [self._take(values, self._values[0], "values")[0]]
        elif isinstance(values, (list, tuple)):
            columns = values
        else:
            columns = (values,)
        if len(columns) != len(self._values):
            raise ValueError(
                f"values: expected {len(self._values)} array(s), one per value column, "
                f"got {len(columns)}"
            )
        named = enumerate(zip(columns, self._values, strict=True))
        return [self._take(c, element, f"values[{i}]")[0] for i, (c, element) in named]

    def _take_update(
        self,
        keys: Any,
        gradients: Any,
        optimizer: Any,
        missing: Any,
        duplicates: Any,
        initial: Any,
    ) -> tuple[tuple[Any, Any, _core.Optimizer, str, str, Any], Callable[[Any], Array]]:
        """(what the core's update takes after the table, what makes the results)."""
        rows, give = self._take(keys, self._key, "keys")
        require_optimizer(optimizer)
        weights = self._values[0] if self._values else self._key  # without values the core refuses
        steps, _ = self._take(gradients, weights, "gradients")
        start = None if initial is None else _default_rows(initial, weights, "initial")
        how = word(missing, "missing"), word(duplicates, "duplicates")
        return (rows, steps, optimizer._core(), *how, start), give

    def _take_defaults(self, default: Any) -> list[Any]:
        if default is None:
            return []
        if len(self._values) == 1:
            return [_default_rows(default, self._values[0], "default")]
        if not isinstance(default, (list, tuple)) or len(default) != len(self._values):
            raise ValueError(
                f"default: expected a tuple of {len(self._values)}, one per value column, "
                f"got {default!r}"
            )
        named = enumerate(zip(default, self._values, strict=True))
        return [_default_rows(d, element, f"default[{i}]") for i, (d, element) in named]


def _words(reduce: str | Sequence[str]) -> list[str]:
    """`reduce` as a list of words."""
    many = [reduce] if isinstance(reduce, str) else reduce
    if not isinstance(many, (list, tuple)) or not all(isinstance(one, str) for one in many):
        raise TypeError(f"reduce: expected a word, or a list of one per column, got {reduce!r}")
    return list(many)


def value_columns(one: tuple[Any, Any], several: tuple[Any, Any]) -> list[tuple[Any, Any]]:
    """(dtype, element shape) of each value column, from one of each or from several."""
    if isinstance(one[0], (list, tuple)) and several[0] is None:
        # Open3D takes several columns at the place of one, too.
        one, several = (
            (None, None if several[1] is None else one[1]),
            (one[0], one[1] if several[1] is None else several[1]),
        )
    if several == (None, None):
        if one[0] is None or one[1] is None:
            raise TypeError(
                "value_dtype: expected value_dtype and value_element_shape, "
                "or value_dtypes and value_element_shapes; for keys without values use HashSet"
            )
        return [one]
    if one[0] is not None or one[1] is not None or None in several:
        raise TypeError(
            "value_dtypes: expected value_dtypes with value_element_shapes, "
            "not mixed with value_dtype or value_element_shape"
        )
    dtypes, shapes = list(several[0]), list(several[1])
    if len(dtypes) != len(shapes):
        raise ValueError(
            f"value_element_shapes: expected {len(dtypes)}, one per dtype, got {len(shapes)}"
        )
    return list(zip(dtypes, shapes, strict=True))


def _is_list_of_one_column(values: Any, rows: Any) -> bool:
    """Whether a list of length one is a list of columns, not a batch of one row."""
    if not isinstance(values, (list, tuple)) or len(values) != 1 or is_number(values[0]):
        return False
    return not isinstance(values[0], (list, tuple)) or rows.shape[:1] != (1,)


def _is_column(value: Any, values: Any) -> bool:
    """In `from_items`: a list of lists is one array; a tuple of lists is several columns."""
    if isinstance(value, (list, tuple, range)):
        return isinstance(values, tuple)
    return not is_number(value)


def _free_array(array: Any, argument: str) -> tuple[Any, str]:
    """(what the core reads, name of its framework) of an array that sets the dtype itself."""
    taken = take_array(array, None, argument)
    if taken is None:
        return natural_array(array, argument), "list"
    return taken[0], taken[1].name


def _default_rows(default: Any, element: Element, argument: str) -> Any:
    dtype, shape = element
    if default is None:
        default = 0
    if is_number(default):
        value = default.item() if isinstance(default, np.generic) else default
        row = np.full(shape, np.asarray(array_of(value, dtype, argument)))
        return _core.Tensor.wrap(row, argument, dtype)  # names bfloat16, which came as uint16
    taken = take_array(default, dtype, argument)
    return rows_of(default, dtype, shape, argument) if taken is None else taken[0]


def _one_or_tuple(arrays: list[Array]) -> Array | tuple[Array, ...]:
    """The values of one column, or a tuple of several columns'."""
    return arrays[0] if len(arrays) == 1 else tuple(arrays)
