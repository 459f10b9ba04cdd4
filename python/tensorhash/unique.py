"""unique(): the distinct rows of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from tensorhash import _core
from tensorhash._arrays import take_array
from tensorhash._frameworks import NUMPY
from tensorhash._lists import natural_array
from tensorhash._places import Place
from tensorhash._types import Array, ArrayLike, DeviceLike


@overload
def unique(
    array: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    *,
    device: DeviceLike = None,
) -> Array: ...


@overload
def unique(
    array: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    device: DeviceLike = None,
) -> Array | tuple[Array, ...]: ...


def unique(
    array: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    device: DeviceLike = None,
) -> Array | tuple[Array, ...]:
    """The distinct rows of `array` along axis 0, in order of first occurrence.

    On request returns a tuple with these int64 arrays after the rows, in this order: the index of
    the first occurrence of each distinct row, the distinct row of each row of `array`, and the
    count of each distinct row. A frame, or a tuple of 1-D arrays, is read as columns. Results use
    the framework of the array. The call runs where the array is, unless `device` is given, and its
    results are where the array is.

    >>> unique([7, 3, 7], return_inverse=True, return_counts=True)
    (array([7, 3]), array([0, 1, 0]), array([2, 1]))
    >>> unique((np.array([7, 3, 7]), np.array([1, 2, 1]))).tolist()
    [[7, 1], [3, 2]]
    """
    taken = take_array(array, None, "array")
    rows, source = (natural_array(array, "array"), NUMPY) if taken is None else taken
    place = Place(device, source, rows)
    rows = place.take(rows, "array")
    return distinct(rows, place.give, return_index, return_inverse, return_counts)


def distinct(
    rows: Any, give: Callable[[_core.Tensor], Array], index: bool, inverse: bool, counts: bool
) -> Array | tuple[Array, ...]:
    """`unique` of an array for the core; `give` makes the arrays of the results."""
    wanted = bool(index), bool(inverse), bool(counts)
    parts: list[Array] = [give(tensor) for tensor in _core.unique(rows, *wanted)]
    return tuple(parts) if any(wanted) else parts[0]
