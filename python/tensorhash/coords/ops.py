"""Operations on integer coordinates [N, 1 + D] with the batch in column 0."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from tensorhash import _core
from tensorhash._arguments import integer, optional_integer
from tensorhash._frameworks import NUMPY, copied_to_numpy
from tensorhash._places import Place
from tensorhash._types import Array, ArrayLike, DeviceLike
from tensorhash.coords._kernel_arguments import require_batch_column
from tensorhash.coords._names import also_named
from tensorhash.coords._rows import take_rows, with_axes
from tensorhash.coords.ordering import POINT_ORDERING, morton_order, parse_ordering
from tensorhash.unique import distinct


@overload
def unique_coords(
    coords: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    *,
    device: DeviceLike = None,
) -> Array: ...


@overload
def unique_coords(
    coords: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    device: DeviceLike = None,
) -> Array | tuple[Array, ...]: ...


def unique_coords(
    coords: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    device: DeviceLike = None,
) -> Array | tuple[Array, ...]:
    """The distinct rows of integer coordinates, in order of first occurrence.

    On request returns a tuple with these int64 arrays after the rows, in this order: the index of
    the first occurrence of each distinct row, the distinct row of each row of `coords`, and the
    count of each distinct row.

    Like all functions of this module it runs where its arrays are, unless `device` is given, and
    its results are where the arrays came from.

    >>> unique_coords(np.array([[0, 5, 5], [0, 1, 1], [0, 5, 5]])).tolist()
    [[0, 5, 5], [0, 1, 1]]
    """
    rows, source = take_rows(coords, "coords", NUMPY)
    rows = with_axes(rows, 3)
    shape = tuple(rows.shape)
    dtype = rows.dtype if isinstance(rows, _core.Tensor) else np.asarray(rows).dtype.name
    if dtype not in ("int32", "int64"):
        raise TypeError(f"coords: expected int32 or int64, got {dtype}")
    if len(shape) != 2:
        raise ValueError(f"coords: expected shape (N, columns), got {shape}")
    place = Place(device, source, rows)
    rows = place.take(rows, "coords")
    return distinct(rows, place.give, return_index, return_inverse, return_counts)


@also_named(batch_indexed_coords="coords")
def stride_coords(
    coords: ArrayLike,
    stride: int | Sequence[int],
    order: POINT_ORDERING | str = POINT_ORDERING.RANDOM,
    num_batches: int | None = None,
    *,
    device: DeviceLike = None,
) -> tuple[Array, Array]:
    """The distinct coordinates after division by `stride`, rounded down.

    Returns (coords [M, 1 + D], batch offsets int64 [B + 1]); batch b is rows
    `offsets[b]:offsets[b + 1]`. Batches ascend. Inside a batch, rows are in order of first
    occurrence, or with `order` along a Morton curve ("morton_xyz" or another POINT_ORDERING).
    `num_batches` keeps empty batches at the end; without it the largest batch is the last. Batches
    may be any integers: if one is negative, or 2^24 or more, `offsets` covers only the batches that
    occur, and column 0 holds their numbers.

    >>> stride_coords(np.array([[0, -1], [0, 3], [0, 2]]), 2)[0].tolist()
    [[0, -1], [0, 1]]
    """
    ordering = parse_ordering(order, "order")
    rows, source = take_rows(coords, "coords", NUMPY)
    rows = with_axes(rows, stride)
    place = Place(device, source, rows)
    steps = axis_ints(stride, _axes(rows), "stride")
    made, offsets = _core.stride_coords(
        place.take(rows, "coords"), steps, number_of_batches(num_batches)
    )
    if ordering is not POINT_ORDERING.RANDOM:
        strided = copied_to_numpy(made)
        order_of = morton_order(strided[:, 0], strided[:, 1:], ordering, "order")
        made = _core.Tensor.wrap(np.ascontiguousarray(strided[order_of]), "coords")
    return place.give(made), place.give(offsets)


@also_named(batch_indexed_coords="coords")
def expand_coords(
    coords: ArrayLike,
    kernel_size: int | Sequence[int],
    kernel_dilation: int | Sequence[int] | None = 1,
    kernel_batch: int | None = None,
    num_batches: int | None = None,
    *,
    device: DeviceLike = None,
) -> tuple[Array, Array]:
    """The distinct coordinates that a kernel reaches from `coords`.

    Returns (coords [M, 1 + D], batch offsets int64 [B + 1]). The kernel's offsets are those of
    kernel maps: x varies slowest, odd axes are centred, even axes go from 0 to k - 1. Batches
    ascend as in `stride_coords`. Inside a batch the given rows come first, then the rows that each
    offset adds, offset by offset. `kernel_batch` is the number of offsets looked up at a time: it
    changes memory and time, not the result. Coordinates are int32 or int64; a sum that does not fit
    the dtype is a ValueError.

    >>> expand_coords(np.array([[0, 5]]), 3)[0].tolist()
    [[0, 5], [0, 4], [0, 6]]
    """
    rows, source = take_rows(coords, "coords", NUMPY)
    rows = with_axes(rows, kernel_size)
    require_batch_column(rows, kernel_size, "coords", source)
    axes = _axes(rows)
    offsets = _kernel_offsets(
        axis_ints(kernel_size, axes, "kernel_size"),
        axis_ints(1 if kernel_dilation is None else kernel_dilation, axes, "kernel_dilation"),
    )
    chunk = 0
    if kernel_batch is not None:
        chunk = integer(kernel_batch, "kernel_batch", 2**63 - 1)
        if chunk < 1:
            raise ValueError(f"kernel_batch: expected 1 or more, got {chunk}")
    place = Place(device, source, rows)
    rows = place.take(rows, "coords")
    made = _core.expand_coords(rows, offsets, chunk, number_of_batches(num_batches))
    return place.give(made[0]), place.give(made[1])


def _axes(rows: Any) -> int:
    shape = tuple(rows.shape)
    if len(shape) != 2 or shape[1] < 2:
        raise ValueError(f"coords: expected shape (N, 1 + D), the batch in column 0, got {shape}")
    return int(shape[1]) - 1


def number_of_batches(num_batches: Any) -> int | None:
    """Parses an int or None. The core checks that it covers all batches."""
    return optional_integer(num_batches, "num_batches", 2**24)


def axis_ints(values: Any, axes: int, argument: str, least: int = 1) -> list[int]:
    """One int >= `least` per axis, from one int for all axes or one per axis."""
    try:
        given = [operator.index(values)] * axes
    except TypeError:
        try:
            given = [operator.index(value) for value in values]
        except TypeError:
            raise TypeError(
                f"{argument}: expected an int or {axes} of them, got {values!r}"
            ) from None
    if len(given) != axes:
        raise ValueError(f"{argument}: expected one int or {axes}, one per axis, got {len(given)}")
    for value in given:
        if not least <= value < 2**31:
            raise ValueError(f"{argument}: expected {least} to 2147483647, got {value}")
    return given


def _kernel_offsets(sizes: list[int], dilations: list[int]) -> Any:
    """int64 [K, D]: the offsets of a kernel. Kernel maps need two axes, so pad a single one."""
    flat = [1] * (2 - len(sizes))
    offsets = _core.kernel_offsets([*flat, *sizes], [*flat, *dilations], [])
    return np.asarray(offsets)[:, 1 + len(flat) :].astype(np.int64)
