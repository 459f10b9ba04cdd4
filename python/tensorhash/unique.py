"""Distinct rows of an array."""

from __future__ import annotations

from tensorhash import _core
from tensorhash._arrays import NUMPY, take_array
from tensorhash._lists import natural_array
from tensorhash._table import Array, ArrayLike


def unique(
    array: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Array | tuple[Array, ...]:
    """The distinct rows of `array` along axis 0, in order of first occurrence.

    A frame, or a tuple of 1-D arrays, is read by columns. On request also, int64 and in this order:
    the first row of each, which of them each row is, and how often each occurs. Results come in the
    framework of the array.

    >>> unique([7, 3, 7], return_inverse=True, return_counts=True)
    (array([7, 3]), array([0, 1, 0]), array([2, 1]))
    >>> unique((np.array([7, 3, 7]), np.array([1, 2, 1]))).tolist()
    [[7, 1], [3, 2]]
    """
    taken = take_array(array, None, "array")
    rows, source = (natural_array(array, "array"), NUMPY) if taken is None else taken
    asked = bool(return_index), bool(return_inverse), bool(return_counts)
    parts = [source.give(tensor) for tensor in _core.unique(rows, *asked)]
    return tuple(parts) if any(asked) else parts[0]
