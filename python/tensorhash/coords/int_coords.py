"""IntCoords: integer coordinates of several batch items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash import _core
from tensorhash._arguments import position
from tensorhash._frameworks import NUMPY, Framework
from tensorhash._places import Place
from tensorhash._types import Array, ArrayLike, DeviceLike
from tensorhash.coords._names import also_named
from tensorhash.coords._points import per_axis, take_numbers
from tensorhash.coords._rows import (
    as_numpy,
    device_in,
    home_of,
    is_sequence,
    take_rows,
    with_axes,
)
from tensorhash.coords._tables import CoordTable
from tensorhash.coords.ops import axis_ints, expand_coords, number_of_batches, stride_coords
from tensorhash.coords.ordering import POINT_ORDERING, morton_order, parse_ordering

if TYPE_CHECKING:
    import torch


class IntCoords:
    """Integer coordinates [N, D]; rows `offsets[b]:offsets[b + 1]` are batch item b.

    It holds its own copy, on the CPU, and its properties return copies where `coords` came from.
    `device` is where its methods run, by default the device of `coords`. `tensor_stride` is the
    length of one step in units of the finest grid, per axis. `voxel_size` and `voxel_origin`
    describe that grid; they are kept and passed on, but not used in any computation.

    >>> coords = IntCoords(np.array([[0, 1], [2, 3], [9, 9]]), [0, 2, 3])
    >>> coords.batch_indexed_coordinates.tolist()
    [[0, 0, 1], [0, 2, 3], [1, 9, 9]]
    >>> coords.strided(2).coordinates.tolist()
    [[0, 0], [1, 1], [4, 4]]
    """

    @also_named(batched_tensor="coords")
    def __init__(
        self,
        coords: ArrayLike | Sequence[ArrayLike],
        offsets: ArrayLike | None = None,
        voxel_size: float | Sequence[float] | None = None,
        tensor_stride: int | Sequence[int] | None = None,
        device: DeviceLike = None,
        *,
        voxel_origin: float | ArrayLike | None = None,
    ) -> None:
        steps = 1 if tensor_stride is None else tensor_stride
        if isinstance(coords, (list, tuple)) and _are_arrays(coords):
            if offsets is not None:
                raise ValueError("offsets: expected None with a list of arrays, one per batch item")
            rows, self._source, bounds, taken = _joined(coords)
            self._place = Place(device, self._source, *taken)
            for i, item in enumerate(taken):
                self._place.require(item, f"coords[{i}]")
        else:
            taken, self._source = take_rows(coords, "coords", home_of(device))
            self._place = Place(device, self._source, taken)
            self._place.require(taken, "coords")
            rows = np.array(as_numpy(with_axes(taken, steps, batch=0)))
            bounds = np.array([0, len(rows)] if offsets is None else _bounds(offsets))
        _check_rows(rows)
        _check_bounds(bounds, len(rows))
        batch = np.repeat(np.arange(len(bounds) - 1, dtype=rows.dtype), np.diff(bounds))
        grid = _Grid(steps, voxel_size, voxel_origin, rows.shape[1])
        self._set(np.column_stack([batch, rows]), bounds, grid)

    def _set(self, batched: Any, bounds: Any, grid: _Grid) -> None:
        self._batched = np.ascontiguousarray(batched)
        self._bounds = np.ascontiguousarray(bounds, np.int64)
        # Whether item b has batch number b. After `from_batched` it may have any number.
        items = np.flatnonzero(np.diff(self._bounds))
        self._numbered = np.array_equal(self._batched[self._bounds[items], 0], items)
        self._grid = grid
        self._table: CoordTable | None = None

    @classmethod
    @also_named(batch_indexed_coords="coords")
    def from_batched(
        cls,
        coords: ArrayLike,
        num_batches: int | None = None,
        tensor_stride: int | Sequence[int] = 1,
        *,
        voxel_size: float | Sequence[float] | None = None,
        voxel_origin: float | ArrayLike | None = None,
    ) -> IntCoords:
        """From rows [N, 1 + D] in any order, with the batch in column 0.

        The rows of an item keep their order. If a batch number is negative, or 2^24 or more, the
        items are the batches that occur, ascending; `batch_indexed_coordinates` has their numbers.

        >>> coords = IntCoords.from_batched(np.array([[1, 5, 6], [0, 7, 8], [1, 4, 6]]))
        >>> coords.offsets, coords[1]
        (array([0, 1, 3]), array([[5, 6],
               [4, 6]]))
        """
        taken, source = take_rows(coords, "coords", NUMPY)
        rows = as_numpy(with_axes(taken, tensor_stride))
        # stride_coords checks the rows and counts the batches.
        batches = number_of_batches(num_batches)
        bounds = _core.stride_coords(rows, [1] * (_columns(rows) - 1), batches)[1]
        items = bounds.shape[0] - 1
        numbers, counts = np.unique(rows[:, 0], return_counts=True)
        if len(numbers) < items:  # some are empty
            counts = np.bincount(rows[:, 0], minlength=items)
        order = np.argsort(rows[:, 0], kind="stable")
        grid = _Grid(tensor_stride, voxel_size, voxel_origin, _columns(rows) - 1)
        place = Place(None, source, taken)
        return cls._made(source, place, rows[order], np.cumsum([0, *counts]), grid)

    @classmethod
    def _made(
        cls, source: Framework, place: Place, batched: Any, bounds: Any, grid: _Grid
    ) -> IntCoords:
        self = cls.__new__(cls)
        self._source = source
        self._place = place
        self._set(batched, bounds, grid)
        return self

    def _give(self, array: Any) -> Array:
        return self._place.give(_core.Tensor.wrap(np.array(array, order="C"), "coords"))

    @property
    def coordinates(self) -> Array:
        """A copy of the coordinates, [N, D]."""
        return self._give(self._batched[:, 1:])

    @property
    def batched_tensor(self) -> Array:
        """WarpConvNet's name of `coordinates`."""
        return self.coordinates

    @property
    def batch_indexed_coordinates(self) -> Array:
        """A copy of the coordinates with the batch in column 0, [N, 1 + D]."""
        return self._give(self._batched)

    @property
    def offsets(self) -> Array:
        """A copy of the batch offsets, int64 [B + 1]."""
        return self._give(self._bounds)

    @property
    def batch_size(self) -> int:
        """The number of batch items, including empty ones."""
        return len(self._bounds) - 1

    @property
    def _num_batches(self) -> int | None:
        return self.batch_size if self._numbered else None

    @property
    def num_axes(self) -> int:
        """The number of spatial axes, D."""
        return int(self._batched.shape[1]) - 1

    @property
    def num_spatial_dims(self) -> int:
        """WarpConvNet's name of `num_axes`."""
        return self.num_axes

    @property
    def device(self) -> str | torch.device:
        """Where methods run: a name such as "cpu:0", or a torch.device for torch tensors."""
        return device_in(self._source, self._place.device)

    @property
    def tensor_stride(self) -> tuple[int, ...]:
        """The length of one step in units of the finest grid, per axis."""
        return self._grid.tensor_stride

    @property
    def stride(self) -> tuple[int, ...]:
        """WarpConvNet's name of `tensor_stride`; to divide coordinates, use `strided(s)`."""
        return self.tensor_stride

    def set_tensor_stride(self, tensor_stride: int | Sequence[int]) -> None:
        """Sets the length of one step in units of the finest grid; keeps the coordinates.

        >>> coords = IntCoords(np.array([[5, 6], [4, 6], [5, 6]]))
        >>> coords.set_tensor_stride(4)
        >>> coords.tensor_stride
        (4, 4)
        """
        self._grid = self._grid.with_stride(tensor_stride, self.num_axes)

    @property
    def voxel_size(self) -> float | tuple[float, ...] | None:
        """The edge length of a voxel of the finest grid, one number or one per axis, or None."""
        return self._grid.voxel_size

    @property
    def voxel_origin(self) -> Array | None:
        """float64 [D], a copy: the corner where voxel 0 of the finest grid starts; or None."""
        origin = self._grid.voxel_origin
        return None if origin is None else self._give(origin)

    def __len__(self) -> int:
        return len(self._batched)

    def __getitem__(self, item: int) -> Array:
        """A copy of the coordinates of one batch item, [n, D]."""
        number = position(item, self.batch_size, "item")
        return self._give(self._batched[self._bounds[number] : self._bounds[number + 1], 1:])

    @also_named(dilation="kernel_dilation")
    def expand(
        self,
        kernel_size: int | Sequence[int],
        kernel_dilation: int | Sequence[int] | None = 1,
        kernel_batch: int | None = None,
    ) -> IntCoords:
        """The distinct coordinates that a kernel reaches, as in `expand_coords`.

        >>> coords = IntCoords(np.array([[5, 6], [4, 6], [5, 6]]))
        >>> len(coords.expand((3, 1)))  # 3 to 6 along the first axis
        4
        """
        made = expand_coords(
            self._batched,
            kernel_size,
            kernel_dilation,
            kernel_batch,
            self._num_batches,
            device=self._place.device,
        )
        return self._like(*made)

    def strided(self, stride: int | Sequence[int]) -> IntCoords:
        """The distinct coordinates after division by `stride`, rounded down.

        The tensor stride is multiplied by `stride`.

        >>> coords = IntCoords(np.array([[5, 6], [4, 6], [5, 6]]))
        >>> coords.strided(2).coordinates, coords.strided(2).tensor_stride
        (array([[2, 3]]), (2, 2))
        """
        steps = axis_ints(stride, self.num_axes, "stride")
        made = self._divided(steps)
        grown = [old * by for old, by in zip(self.tensor_stride, steps, strict=True)]
        return self._like(*made, self._grid.with_stride(grown, self.num_axes))

    def unique(self) -> IntCoords:
        """The distinct coordinates, in order of first occurrence inside each item.

        >>> IntCoords(np.array([[5, 6], [5, 6]])).unique().coordinates
        array([[5, 6]])
        """
        return self._like(*self._divided(1))

    def _divided(self, stride: Any) -> tuple[Array, Array]:
        on = self._place.device
        return stride_coords(self._batched, stride, num_batches=self._num_batches, device=on)

    def _like(self, batched: Any, bounds: Any, grid: _Grid | None = None) -> IntCoords:
        """Other rows where these are, by default in the same grid."""
        return self._made(self._source, self._place, batched, bounds, grid or self._grid)

    def prune(self, mask: ArrayLike) -> IntCoords:
        """Keeps the rows where `mask`, bool [N], is True. Items without rows stay, empty.

        >>> IntCoords(np.array([[5, 6], [4, 6]])).prune(np.array([False, True])).coordinates
        array([[4, 6]])
        """
        keep = as_numpy(take_numbers(mask, "mask")[0])
        if keep.dtype != np.bool_:
            raise TypeError(f"mask: expected bool, got {keep.dtype}; pass mask != 0")
        if keep.shape != (len(self),):
            raise ValueError(f"mask: expected shape ({len(self)},), one per row, got {keep.shape}")
        bounds = np.append(0, np.cumsum(keep))[self._bounds]
        return self._like(self._batched[keep], bounds)

    def sort(self, ordering: POINT_ORDERING | str = POINT_ORDERING.MORTON_XYZ) -> IntCoords:
        """Sorts the rows of each item along a Morton curve; equal rows keep their order.

        The curve starts at the smallest coordinate of each axis over all items. `RANDOM` keeps the
        order of the rows.

        >>> IntCoords(np.array([[5, 6], [4, 6]])).sort().coordinates
        array([[4, 6],
               [5, 6]])
        """
        how = parse_ordering(ordering, "ordering")
        item = np.repeat(np.arange(self.batch_size), np.diff(self._bounds))
        order = morton_order(item, self._batched[:, 1:], how, "ordering")
        return self._like(self._batched[order], self._bounds)

    @property
    def hashmap(self) -> CoordTable:
        """A CoordTable from [b, *coordinate] to its row, made on first access.

        >>> IntCoords(np.array([[5, 6], [7, 8]])).hashmap.search(np.array([[0, 7, 8], [1, 7, 8]]))
        array([ 1, -1], dtype=int32)
        """
        if self._table is None:
            rows = self.batch_indexed_coordinates
            self._table = CoordTable.from_coords(rows, self._place.device)
        return self._table

    def __repr__(self) -> str:
        return (
            f"IntCoords({len(self)} rows, {self.num_axes} axes, batch_size={self.batch_size}, "
            f"{self._batched.dtype}, tensor_stride={self.tensor_stride}, {self._source.name})"
        )


class _Grid:
    """The finest grid, and the length of one step in its units."""

    def __init__(self, tensor_stride: Any, voxel_size: Any, voxel_origin: Any, axes: int) -> None:
        self.tensor_stride = tuple(axis_ints(tensor_stride, axes, "tensor_stride"))
        self.voxel_size: float | tuple[float, ...] | None = None
        if voxel_size is not None:
            sizes = tuple(_floats(voxel_size, axes, "voxel_size"))
            if not all(0 < size < math.inf for size in sizes):
                raise ValueError(f"voxel_size: expected numbers above 0, got {voxel_size!r}")
            self.voxel_size = sizes if is_sequence(voxel_size) else sizes[0]
        self.voxel_origin: Any = None
        if voxel_origin is not None:
            self.voxel_origin = np.array(_floats(voxel_origin, axes, "voxel_origin"))

    def with_stride(self, tensor_stride: Any, axes: int) -> _Grid:
        """The same grid with other steps."""
        return _Grid(tensor_stride, self.voxel_size, self.voxel_origin, axes)


def _floats(values: Any, axes: int, argument: str) -> list[float]:
    numbers = per_axis(values, axes, argument)
    if len(numbers) != axes:
        raise ValueError(f"{argument}: expected a number or {axes}, one per axis, got {values!r}")
    return numbers


def _are_arrays(items: Any) -> bool:
    return len(items) > 0 and all(hasattr(item, "shape") and len(item.shape) > 0 for item in items)


def _joined(items: Sequence[ArrayLike]) -> tuple[Any, Framework, Any, list[Any]]:
    """(rows of all items, framework of the first item, bounds, the items for the core)."""
    taken = [take_rows(item, f"coords[{i}]", NUMPY) for i, item in enumerate(items)]
    arrays = [as_numpy(rows) for rows, _ in taken]
    for i, array in enumerate(arrays):
        if array.ndim != 2 or array.shape[1] != arrays[0].shape[-1]:
            raise ValueError(
                f"coords[{i}]: expected shape (N, {arrays[0].shape[-1]}), got {array.shape}"
            )
        if array.dtype != arrays[0].dtype:
            raise TypeError(f"coords[{i}]: expected {arrays[0].dtype}, got {array.dtype}")
    bounds = np.cumsum([0, *(len(array) for array in arrays)])
    return np.concatenate(arrays), taken[0][1], bounds, [rows for rows, _ in taken]


def _columns(rows: Any) -> int:
    return int(rows.shape[1]) if rows.ndim == 2 else 0


def _check_rows(rows: Any) -> None:
    if rows.dtype not in (np.int32, np.int64):
        raise TypeError(f"coords: expected int32 or int64, got {rows.dtype}")
    if rows.ndim != 2 or rows.shape[1] < 1:
        raise ValueError(f"coords: expected shape (N, D), got {rows.shape}")


def _bounds(offsets: ArrayLike) -> Any:
    bounds = as_numpy(take_rows(offsets, "offsets", NUMPY)[0])
    if bounds.dtype.kind not in "iu":
        raise TypeError(f"offsets: expected integers, got {bounds.dtype}")
    return bounds


def _check_bounds(bounds: Any, rows: int) -> None:
    if bounds.ndim != 1 or len(bounds) < 1:
        raise ValueError(f"offsets: expected shape (B + 1,), got {bounds.shape}")
    if bounds[0] != 0 or bounds[-1] != rows:
        raise ValueError(
            f"offsets: expected numbers from 0 to {rows}, the number of rows, "
            f"got {bounds[0]} to {bounds[-1]}"
        )
    falling = np.flatnonzero(bounds[1:] < bounds[:-1])
    if len(falling) > 0:
        at = int(falling[0])
        raise ValueError(
            f"offsets: expected numbers that never decrease, "
            f"got {bounds[at]} and then {bounds[at + 1]} at {at + 1}"
        )
