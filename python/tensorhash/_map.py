"""The common base of HashMap and BoundedHashMap: value columns, their arguments and views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._arguments import integer, word
from tensorhash._arrays import is_number, take_array
from tensorhash._frameworks import Framework
from tensorhash._lists import array_of, rows_of
from tensorhash._table import Table
from tensorhash._types import ArrayLike, ArrayT, DeviceLike, DtypeLike, Element, ShapeLike
from tensorhash.optim import Optimizer, require_optimizer


class MapTable(Table[ArrayT]):
    """A table with value columns. The private base of HashMap and BoundedHashMap."""

    _values: list[Element]
    #: How to make a table without values, for an error message.
    _without_values = "pass value_dtypes=[] and value_element_shapes=[]"

    def _create_map(
        self,
        rows: int,
        key: tuple[DtypeLike, ShapeLike],
        one: tuple[Any, Any],
        several: tuple[Any, Any],
        device: DeviceLike | Sequence[DeviceLike],
        seed: int | None,
    ) -> None:
        """`_create` with the (dtype, element shape) of one value column, or of several."""
        self._create(rows, key, _value_columns(one, several, self._without_values), device, seed)

    def _hold(self, table: Any, home: Framework) -> None:
        super()._hold(table, home)
        self._values = [(dtype, tuple(shape)) for dtype, shape in table.value_elements]

    def update(
        self,
        keys: ArrayLike,
        gradients: ArrayLike,
        optimizer: Optimizer,
        *,
        missing: str = "skip",
        duplicates: str = "in_order",
        initial: Any = None,
    ) -> tuple[ArrayT, ArrayT]:
        """Makes one optimizer step for each row. `gradients` is [N, *shape of the first column].

        `optimizer` is one of tensorhash.optim. `missing` says what to do with keys that the table
        does not hold: "skip" them, "insert" them with the weights `initial` (like `default` of
        `get`) and fresh state, or raise an "error". `duplicates`: equal keys step row by row
        "in_order", or once with the "sum" of their gradients.
        Returns (int32 [N] buffer indices, -1 if skipped; bool [N] whether the key was there).

        >>> m = tensorhash.HashMap.from_items(np.array([7]), np.float32([[1.0, 2.0]]))
        >>> step = np.float32([[2.0, 2.0], [9.0, 9.0]])
        >>> m.update([7, 5], step, tensorhash.optim.SGD(lr=0.5))
        (array([ 0, -1], dtype=int32), array([ True, False]))
        >>> m.get([7])
        array([[0., 1.]], dtype=float32)
        """
        how = missing, duplicates, initial
        arguments, give = self._take_update(keys, gradients, optimizer, *how)
        indices, found = _core.update(self._table, *arguments)
        return give(indices), give(found)

    def items(self) -> tuple[ArrayT, ArrayT | tuple[ArrayT, ...]]:
        """Copies of all (keys, values). With several columns, `values` is a tuple of arrays.

        >>> m = tensorhash.HashMap.from_items(np.array([7, 8]), np.array([0.5, 1.5]))
        >>> m.items()
        (array([7, 8]), array([0.5, 1.5]))
        """
        return self._give_items(self._table.items())

    def _give_items(
        self, items: tuple[_core.Tensor, list[_core.Tensor]]
    ) -> tuple[ArrayT, ArrayT | tuple[ArrayT, ...]]:
        keys, values = items
        return self._give(keys), one_or_tuple(values, self._give)

    def value_tensor(self, value_buffer_id: int = 0) -> ArrayT:
        """A view of a value buffer, [capacity, *value_element_shape], to read and write.

        Index it with buffer indices. After growth or compact() an old view is still safe to use,
        but no longer shows the table.

        >>> m = tensorhash.HashMap.from_items(np.array([7, 8]), np.array([0.5, 1.5]))
        >>> indices, _ = m.find([8])
        >>> m.value_tensor()[indices] += 1
        >>> m.get([8])
        array([2.5])
        """
        column = integer(value_buffer_id, "value_buffer_id", len(self._values) - 1)
        return self._give_view(self._table.value_tensor(column))

    def value_tensors(self) -> list[ArrayT]:
        """Views of all value buffers, one per column.

        >>> m = tensorhash.HashMap(9, "int64", (), ("uint8", "float32"), ((3,), ()))
        >>> [view.shape for view in m.value_tensors()]
        [(9, 3), (9,)]
        """
        return [self.value_tensor(column) for column in range(len(self._values))]

    # Arguments.

    def _take_values(self, values: Any, list_values: Any, rows: Any) -> list[Any]:
        """Arrays for the core from `values` or `list_values`, one per column."""
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
    ) -> tuple[tuple[Any, Any, _core.Optimizer, str, str, Any], Callable[[_core.Tensor], ArrayT]]:
        """(arguments of the core's update after the table, function that makes the results)."""
        rows, give = self._take(keys, self._key, "keys")
        require_optimizer(optimizer)
        weights = self._values[0] if self._values else self._key  # without values the core raises
        steps, _ = self._take(gradients, weights, "gradients")
        start = None if initial is None else _default_rows(initial, weights, "initial")
        how = word(missing, "missing"), word(duplicates, "duplicates")
        return (rows, steps, optimizer._core(), *how, start), give

    def _take_defaults(self, default: Any) -> list[Any]:
        """Arrays for the core from `default`, one per column; [] for zeros."""
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


def one_or_tuple(
    values: list[_core.Tensor], give: Callable[[_core.Tensor], ArrayT]
) -> ArrayT | tuple[ArrayT, ...]:
    """A single array for one value column, else a tuple with one array per column."""
    return give(values[0]) if len(values) == 1 else tuple(give(value) for value in values)


def _value_columns(
    one: tuple[Any, Any], several: tuple[Any, Any], without: str
) -> list[tuple[Any, Any]]:
    """(dtype, element shape) of each value column, from the arguments for one or for several."""
    if isinstance(one[0], (list, tuple)) and several[0] is None:
        # Like Open3D, accept lists in the arguments for one column.
        one, several = (
            (None, None if several[1] is None else one[1]),
            (one[0], one[1] if several[1] is None else several[1]),
        )
    if several == (None, None):
        if one[0] is None or one[1] is None:
            raise TypeError(
                "value_dtype: expected value_dtype and value_element_shape, "
                f"or value_dtypes and value_element_shapes; for keys without values {without}"
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
    """Whether a list of length 1 is a list of columns, not a batch of one row."""
    if not isinstance(values, (list, tuple)) or len(values) != 1 or is_number(values[0]):
        return False
    return not isinstance(values[0], (list, tuple)) or rows.shape[:1] != (1,)


def _default_rows(default: Any, element: Element, argument: str) -> Any:
    dtype, shape = element
    if default is None:
        default = 0
    if is_number(default):
        value = default.item() if isinstance(default, np.generic) else default
        row = np.full(shape, np.asarray(array_of(value, dtype, argument)))
        return _core.Tensor.wrap(row, argument, dtype)  # restores bfloat16, which came as uint16
    taken = take_array(default, dtype, argument)
    return rows_of(default, dtype, shape, argument) if taken is None else taken[0]
