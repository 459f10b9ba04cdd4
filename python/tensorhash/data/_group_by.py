"""group_by: one row per distinct key, with sums, means, extremes and more of the key's rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from tensorhash import _core
from tensorhash._arguments import element_text
from tensorhash._arrays import is_number
from tensorhash._types import Array, ArrayLike, NumPyArray
from tensorhash.data._keys import KeyCodes, KeyColumn, Keys, give_keys, read_array, read_keys
from tensorhash.data._text import Strings

#: What `agg` computes.
AGGREGATES = (
    *("sum", "mean", "min", "max", "count", "prod", "any", "all", "var", "std"),
    *("first", "last", "argmin", "argmax", "nunique"),
)


def group_by(keys: ArrayLike) -> Grouping:
    """Groups equal rows of `keys`; `agg` then gives one row per group.

    Keys are an array, a tuple of 1-D arrays, or a frame. Columns of a tuple or a frame keep their
    own dtypes. Groups come in order of first occurrence.

    >>> import numpy as np
    >>> groups = group_by(np.array([7, 3, 7])).agg(total=([1.0, 2.0, 4.0], "sum"), rows="count")
    >>> groups["key"], groups["total"], groups["rows"]
    (array([7, 3]), array([5., 2.]), array([2, 1]))
    """
    return Grouping(read_keys(keys, "keys"))


class Grouping:
    """Keys to group by. `group_by` makes it.

    >>> group_by([7, 3, 7]).agg(sum=[1, 2, 4])["sum"]
    array([5, 2])
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def agg(self, **columns: Any) -> dict[str, Array]:
        """Named columns with one row per group, after the keys.

        Each argument is a pair (values, aggregate), or "count". A name that is an aggregate takes
        the values alone. Aggregates are sum, mean, min, max, count, prod, any, all, var, std,
        first, last, argmin, argmax and nunique. Values have shape [N, ...]; each number of a row is
        aggregated on its own. Rows are added in order, so the bits do not depend on threads. Keys
        of one array are called "key"; those of a frame have its names; those of a tuple are
        "key_0", "key_1" and so on.

        >>> import numpy as np
        >>> group_by(np.array([7, 3, 7])).agg(sum=[1, 2, 4])
        {'key': array([7, 3]), 'sum': array([5, 2])}
        >>> price = np.array([1.5, 2.0, 4.5])
        >>> group_by(["a", "b", "a"]).agg(mean=price, best=(price, "argmax"))["best"]
        array([2, 1])
        """
        wanted = [_read_aggregate(name, given) for name, given in columns.items()]
        _refuse_clashes(self._keys, wanted)
        arrays = [None if one.values is None else _read_values(one, self._keys) for one in wanted]
        codes = KeyCodes()
        keys, _, results = _core.group_by(
            codes.encode(self._keys),
            [one.aggregate for one in wanted],
            arrays,
            [one.name for one in wanted],
        )
        give = self._keys.source.give
        named = {one.name: give(result) for one, result in zip(wanted, results, strict=True)}
        return {**give_keys(self._keys, codes, keys), **named}

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> NoReturn:
            way = {"size": '; use agg(rows="count")', "count": '; use agg(rows="count")'}
            way |= {one: f"; use agg({one}=values)" for one in AGGREGATES if one != "count"}
            raise AttributeError(f"'Grouping' object has no attribute {name!r}{way.get(name, '')}")

    def __repr__(self) -> str:
        return f"Grouping of {len(self._keys)} rows by {', '.join(self._keys.names())}"


class _Wanted(NamedTuple):
    """One result column: its name, its values or their name, and the aggregate."""

    name: str
    values: Any
    aggregate: str


def _read_aggregate(name: str, given: Any) -> _Wanted:
    if isinstance(given, str) and given == "count":
        return _Wanted(name, None, "count")
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str):
        _require_aggregate(name, given[1])
        if given[0] is not None or given[1] == "count":
            return _Wanted(name, *given)
    elif name in AGGREGATES and given is not None and not is_number(given):
        return _Wanted(name, given, name)
    raise TypeError(
        f'{name}: expected a pair such as (values, "sum"), "count", or an aggregate as the name '
        f"(sum=values), got {type(given).__name__}{_way_in(name, given)}"
    )


def _way_in(name: str, given: Any) -> str:
    return f'; {name}="count" counts rows' if is_number(given) else ""


def _require_aggregate(name: str, aggregate: str) -> None:
    if aggregate not in AGGREGATES:
        raise ValueError(f"{name}: expected one of {', '.join(AGGREGATES)}; got {aggregate!r}")


def _refuse_clashes(keys: Keys, wanted: list[_Wanted]) -> None:
    for one in wanted:
        if one.name in keys.names():
            raise ValueError(
                f"{one.name}: expected a name that no key column has, got {one.name!r}; "
                f"the key columns are {', '.join(keys.names())}"
            )


def _read_values(wanted: _Wanted, keys: Keys) -> Any:
    if isinstance(wanted.values, str):
        raise TypeError(
            f"{wanted.name}: expected an array of values, got {wanted.values!r}; pass the column "
            f"itself, such as frame[{wanted.values!r}]"
        )
    values = read_array(wanted.values, wanted.name)
    _require_rows(values, len(keys), wanted.name)
    return values


def _require_rows(values: Any, rows: int, name: str) -> None:
    shape = tuple(values.shape) if hasattr(values, "shape") else (len(values),)
    if not shape or shape[0] != rows:
        raise ValueError(f"{name}: expected {rows} rows, as many as keys, got shape {shape}")


def _require_same_form(batch: Keys, first: Keys) -> None:
    """Batches must agree in their form, and those of frames in the names of their columns."""
    if batch.is_single != first.is_single:
        words = ["a frame or a tuple of columns", "one array"]
        raise TypeError(
            f"{batch.argument}: expected {words[first.is_single]} as in the first batch, "
            f"got {words[batch.is_single]}"
        )
    names = [
        (one.name, other.name) for one, other in zip(first.columns, batch.columns, strict=False)
    ]
    if any(None not in pair and pair[0] != pair[1] for pair in names):
        raise ValueError(
            f"{batch.argument}: expected the columns {', '.join(first.names())} as in the first batch, "
            f"got {', '.join(batch.names())}"
        )


class GroupBy:
    """group_by for data that arrives in batches.

    Name the result columns when you make it: a pair (name of the values, aggregate), or "count". A
    name that is an aggregate takes the name of the values alone. Then `update` with every batch:
    dtypes are those of the first one with rows, and lists take them. The result has the same bits
    as `group_by` of all batches joined.

    >>> import numpy as np
    >>> stream = GroupBy(total=("price", "sum"), rows="count")
    >>> stream.update(np.array([7, 3]), price=np.array([1.0, 2.0]))
    >>> stream.update(np.array([7]), price=np.array([4.0]))
    >>> stream.result()
    {'key': array([7, 3]), 'total': array([5., 2.]), 'rows': array([2, 1])}
    """

    def __init__(self, **columns: Any) -> None:
        self._wanted = [_read_aggregate(name, given) for name, given in columns.items()]
        for one in self._wanted:
            if one.values is not None and not isinstance(one.values, str):
                raise TypeError(
                    f'{one.name}: expected the name of the values, such as ("price", "sum"), '
                    f"got {type(one.values).__name__}; update takes the arrays"
                )
            if one.values in ("keys", "self"):
                raise ValueError(
                    f"{one.name}: expected another name of values than {one.values!r}, "
                    f"which update already has"
                )
        self._names = sorted({one.values for one in self._wanted if one.values is not None})
        self._codes = KeyCodes()
        self._keys: Keys | None = None  # of the first batch: names and frameworks
        self._types: tuple[Any, Any] | None = None  # of keys and columns, from the first batch
        self._core: _core.GroupBy | None = None

    def update(self, keys: ArrayLike, **values: ArrayLike) -> None:
        """Adds a batch: keys as in `group_by`, and an array for every name of values.

        A call that raises changes nothing.

        >>> stream = GroupBy(max="price")
        >>> stream.update([7, 3, 7], price=[1.0, 2.0, 4.0])
        >>> len(stream)
        2
        """
        if sorted(values) != self._names:
            raise TypeError(
                f"values: expected {', '.join(self._names) or 'none'}, "
                f"got {', '.join(sorted(values)) or 'none'}"
            )
        batch, known = read_keys(keys, "keys"), self._elements()
        arrays = {name: read_array(one, name, known.get(name)) for name, one in values.items()}
        for name, array in arrays.items():
            _require_rows(array, len(batch), name)
        started = self._started()
        if started is not None and self._keys is not None:
            _require_same_form(batch, self._keys)
        codes = KeyCodes() if started is None else self._codes
        rows = codes.encode(batch)
        given = [None if one.values is None else arrays[one.values] for one in self._wanted]
        labels = [one.values or one.name for one in self._wanted]
        if started is not None:
            started.update(rows, given, labels)
            return
        types = self._types_of(batch, rows, given)
        core = _core.GroupBy(*types)
        core.update(rows, given, labels)
        self._core, self._types, self._codes = core, types, codes
        self._keys = _without_rows(batch)

    def _started(self) -> _core.GroupBy | None:
        """The groups, if there are any: without rows the dtypes are still open."""
        return self._core if self._core is not None and self._core.rows() > 0 else None

    def _elements(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Dtype and shape of each array of values, from the first batch with rows."""
        columns = () if self._started() is None or self._types is None else self._types[1]
        return {name: element for _, element, name in columns if element is not None}

    def _require_elements(self, other: dict[str, tuple[str, tuple[int, ...]]]) -> None:
        for name, element in self._elements().items():
            if other[name] != element:
                raise TypeError(
                    f"other: expected {element_text(element)} as {name}, "
                    f"got {element_text(other[name])}"
                )

    def _types_of(self, batch: Keys, rows: Any, given: list[Any]) -> tuple[Any, Any]:
        _refuse_clashes(batch, self._wanted)
        columns = [
            (
                one.aggregate,
                None if array is None else _element(array, one.values),
                one.values or one.name,
            )
            for one, array in zip(self._wanted, given, strict=True)
        ]
        return _element(rows, "keys"), columns

    def merge(self, other: GroupBy) -> None:
        """Adds the groups of another stream, as if its batches came after those of this one.

        A group's sums of both streams are added as two numbers, so floats may differ in the last
        bits from one stream over all batches.

        >>> a, b = GroupBy(sum="x"), GroupBy(sum="x")
        >>> a.update([7, 3], x=[1, 2])
        >>> b.update([9, 7], x=[8, 4])
        >>> a.merge(b)
        >>> a.result()
        {'key': array([7, 3, 9]), 'sum': array([5, 2, 8])}
        """
        if not isinstance(other, GroupBy):
            raise TypeError(f"other: expected a GroupBy, got {type(other).__name__}")
        if other is self:
            raise ValueError("other: expected another stream, got this one")
        if self._wanted != other._wanted:
            raise ValueError("other: expected a stream with the same columns")
        if other._core is None or other._keys is None:
            return
        started = self._started()
        if started is not None and other._started() is None:
            return
        keys = other._decoded(other._core.result()[0])
        if started is not None and self._keys is not None:
            _require_same_form(keys, self._keys)
            self._require_elements(other._elements())
            started.merge(other._core, self._codes.encode(keys))
            return
        codes = KeyCodes()
        core = _core.GroupBy(*(other._types or ()))
        core.merge(other._core, codes.encode(keys))
        self._core, self._types, self._codes, self._keys = core, other._types, codes, other._keys

    def _decoded(self, rows: _core.Tensor) -> Keys:
        """The keys of all groups, as `read_keys` would give them."""
        assert self._keys is not None
        keys = self._keys
        columns = [
            replace(one, rows=_as_read(one, self._codes.decode(rows, keys, at)))
            for at, one in enumerate(keys.columns)
        ]
        return Keys(keys.argument, columns, keys.is_single)

    def result(self) -> dict[str, Array]:
        """Named columns with one row per group so far, as `agg` gives them.

        >>> stream = GroupBy(mean="x")
        >>> stream.update([1, 1, 2], x=[3, 4, 5])
        >>> stream.result()["mean"]
        array([3.5, 5. ])
        """
        if self._core is None or self._keys is None:
            raise ValueError("result: expected at least one batch, got none; call update first")
        keys, _, results = self._core.result()
        give = self._keys.source.give
        named = {one.name: give(column) for one, column in zip(self._wanted, results, strict=True)}
        return {**give_keys(self._keys, self._codes, keys), **named}

    def __len__(self) -> int:
        """The number of groups so far."""
        return 0 if self._core is None else self._core.groups()

    def __repr__(self) -> str:
        rows = 0 if self._core is None else self._core.rows()
        return f"GroupBy of {len(self)} groups, {rows} rows"


def _element(array: Any, argument: str) -> tuple[str, tuple[int, ...]]:
    tensor = _core.Tensor.wrap(array, argument)
    if not tensor.shape:
        raise ValueError(f"{argument}: expected at least one dimension, the rows, got a scalar")
    return tensor.dtype, tuple(tensor.shape[1:])


def _without_rows(keys: Keys) -> Keys:
    """The names and frameworks of keys, without their memory."""
    columns = [replace(one, rows=_nothing(one), listed=None) for one in keys.columns]
    return Keys(keys.argument, columns, keys.is_single)


def _nothing(column: KeyColumn) -> Any:
    if isinstance(column.rows, Strings):
        return Strings([], "objects", 0)
    return np.empty((0, *column.array.shape[1:]), column.array.dtype)


def _as_read(column: KeyColumn, values: NumPyArray) -> Any:
    if isinstance(column.rows, Strings):
        return Strings(values.tolist(), "objects", len(values))
    return values
