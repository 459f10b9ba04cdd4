"""Kernel maps: for every offset of a convolution kernel, the pairs (in row, out row)."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._arrays import NUMPY, Framework
from tensorhash._device import usable_device
from tensorhash._table import Array, ArrayLike, integer
from tensorhash.coords._names import also_named
from tensorhash.coords._rows import device_in, home_of, is_sequence, take_rows, with_axes
from tensorhash.coords._tables import CoordTable, PackedHashTable

_KINDS = (np.int32, np.int32, np.int64)  # of in_maps, out_maps, offsets


class KernelMap:
    """Pairs grouped by offset, ascending by out row within an offset.

    `in_maps` and `out_maps` are int32, `offsets` int64 [K + 1]: group k is
    `in_maps[offsets[k]:offsets[k + 1]]`. All arrays are of the framework of the coordinates.
    `identity_map_index` is the group that joins every row with itself, or None; it is set only for
    odd kernels over equal coordinates. `strategy` is the path that was taken.
    """

    def __init__(self, made: _core.KernelMap, source: Framework) -> None:
        self._made = made
        self._source = source
        self.in_maps: Array = source.give(made.in_maps)
        self.out_maps: Array = source.give(made.out_maps)
        self.offsets: Array = source.give(made.offsets)
        # A private copy: a user may write into `offsets`, and slices must stay right.
        self._bounds = np.array(made.offsets)
        self._table: Array | None = None
        self._mask: Array | None = None

    @classmethod
    def _of_parts(
        cls,
        maps: tuple[Any, Any, Any],
        rows: tuple[int, int],
        source: Framework,
        strategy: str,
        probes: tuple[int, int],
        identity_map_index: int | None = None,
    ) -> KernelMap:
        """A map from (in_maps, out_maps, offsets) of NumPy and (num_in, num_out)."""
        arrays = [np.ascontiguousarray(part, kind) for part, kind in zip(maps, _KINDS, strict=True)]
        made = _core.kernel_map_from_parts(*arrays, *rows, identity_map_index, strategy, *probes)
        return cls(made, source)

    def _maps(self) -> tuple[Any, Any, Any]:
        """Copies of (in_maps, out_maps, offsets), of NumPy."""
        made = self._made
        return np.array(made.in_maps), np.array(made.out_maps), np.array(made.offsets)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "maps": self._maps(),
            "rows": (self.num_in, self.num_out),
            "source": self._source,
            "strategy": self.strategy,
            "probes": self.probes,
            "identity_map_index": self.identity_map_index,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(KernelMap._of_parts(**state).__dict__)

    def clone(self) -> KernelMap:
        """A copy with its own arrays."""
        return KernelMap._of_parts(**self.__getstate__())

    @property
    def device(self) -> Any:
        """The device of the arrays: "cpu:0", or a torch device for torch arrays."""
        return device_in(self._source)

    @property
    def identity_map_index(self) -> int | None:
        """The group that joins every row with itself, or None."""
        return self._made.identity_map_index

    @property
    def strategy(self) -> str:
        """The path that was used: "blocks", "flat", "hierarchical" or "merge"."""
        return self._made.strategy

    @property
    def num_in(self) -> int:
        """Rows of in_coords."""
        return self._made.num_in

    @property
    def num_out(self) -> int:
        """Rows of out_coords."""
        return self._made.num_out

    @property
    def probes(self) -> tuple[int, int]:
        """Lookups (of coarse cells, of coordinates); "blocks" and "merge" make none."""
        return self._made.coarse_probes, self._made.fine_probes

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def _group(self, k: Any) -> int:
        try:
            index = operator.index(k)
        except TypeError:
            raise TypeError(f"k: expected an int, got {type(k).__name__}") from None
        if not -len(self) <= index < len(self):
            raise IndexError(f"k: expected {-len(self)} <= k < {len(self)}, got {index}")
        return index % len(self)

    def numel(self, k: int) -> int:
        """The number of pairs of offset k."""
        group = self._group(k)
        return int(self._bounds[group + 1] - self._bounds[group])

    def __getitem__(self, k: int) -> tuple[Array, Array]:
        """(in rows, out rows) of offset k."""
        group = self._group(k)
        pairs = slice(int(self._bounds[group]), int(self._bounds[group + 1]))
        return self.in_maps[pairs], self.out_maps[pairs]

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        return (self[k] for k in range(len(self)))

    @also_named(start_idx="start", end_idx="end")
    def get_batch(self, start: int, end: int, out_format: str = "list") -> tuple[Any, Any]:
        """(in, out) of the offsets start..end-1: two lists of maps, or with "tensor" two int64
        arrays [end - start, most pairs], padded with -1."""
        first, last = integer(start, "start", None), integer(end, "end", None)
        if not 0 <= first <= last <= len(self):
            raise ValueError(
                f"start, end: expected 0 <= start <= end <= {len(self)}, got {first} and {last}"
            )
        if out_format not in ("list", "tensor"):
            raise ValueError(f'out_format: expected "list" or "tensor", got {out_format!r}')
        groups = [self[k] for k in range(first, last)]
        if out_format == "list":
            return [pair[0] for pair in groups], [pair[1] for pair in groups]
        widest = max((len(pair[0]) for pair in groups), default=0)
        padded = np.full((2, len(groups), widest), -1, dtype=np.int64)
        for row, pair in enumerate(groups):
            for side in range(2):
                padded[side, row, : len(pair[side])] = np.asarray(pair[side])
        ins, outs = (_core.Tensor.wrap(np.ascontiguousarray(side)) for side in padded)
        return self._source.give(ins), self._source.give(outs)

    def pair_table(self) -> Array:
        """int32 [K, num_out]: the in row of each offset and out row, or -1. Made on first access."""
        if self._table is None:
            self._table = self._source.give(self._made.pair_table())
        return self._table

    @property
    def _pair_table(self) -> Array:
        return self.pair_table()

    def pair_mask(self) -> Array:
        """int32 [num_out, ceil(K / 32)]: bit k % 32 of word k // 32 is set if offset k has a pair.
        Made on first access."""
        if self._mask is None:
            self._mask = self._source.give(self._made.pair_mask())
        return self._mask

    def to_csr(self) -> tuple[Array, Array, Array]:
        """The pairs by out row: (in rows, out rows with pairs, int64 offsets [U + 1])."""
        ins, rows, offsets = self._made.to_csr()
        give = self._source.give
        return give(ins), give(rows), give(offsets)

    def neighbor_count_per_output(self, num_out: int | None = None) -> Array:
        """int64 [num_out]: how many offsets have a pair for each out row.

        `num_out` is that of the map unless given; a larger one counts zeros for the rest.
        """
        rows = self.num_out if num_out is None else integer(num_out, "num_out", None)
        outs = np.asarray(self._made.out_maps)
        most = int(outs.max(initial=-1))
        if outs.min(initial=0) < 0:
            raise ValueError("out_maps: expected row numbers from 0 on; this map was written to")
        if not most < rows < 2**31:
            raise ValueError(f"num_out: expected more than {most}, the last out row, got {rows}")
        return self._source.give(_core.Tensor.wrap(np.bincount(outs, minlength=rows), "counts"))

    def transpose(self) -> KernelMap:
        """The map with in and out exchanged, as a transposed convolution needs it."""
        return KernelMap(self._made.transpose(), self._source)

    def __repr__(self) -> str:
        return (
            f"KernelMap(offsets={len(self)}, pairs={int(self._bounds[-1])}, in={self.num_in}, "
            f"out={self.num_out}, {self.strategy}, {self._source.name})"
        )


def numbers_per_axis(value: Any, axes: int | None, argument: str) -> list[int]:
    """One int per axis: a sequence of them, or one for all axes where their number is known."""
    try:
        several = is_sequence(value)
        numbers = [operator.index(number) for number in (value if several else [value])]
    except TypeError:
        kind = "an int or a sequence of ints" if axes else "a sequence of ints"
        raise TypeError(f"{argument}: expected {kind}, got {value!r}") from None
    for number in numbers:
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"{argument}: expected numbers that fit 64 bits, got {number}")
    if several:
        return numbers
    if axes is None:
        raise TypeError(f"{argument}: expected a sequence of ints, one per axis, got {value!r}")
    return numbers * axes


def axes_of(rows: Any) -> int:
    """The number of spatial axes, or 0 if these are no coordinates; the core reports errors."""
    shape = tuple(getattr(rows, "shape", ()))
    return max(shape[1] - 1, 0) if len(shape) == 2 else 0


def require_batch_column(rows: Any, kernel_size: Any, argument: str, source: Framework) -> None:
    """ValueError if the rows have a column for each axis of the kernel, and none for the batch."""
    shape = tuple(getattr(rows, "shape", ()))
    if len(shape) != 2 or not is_sequence(kernel_size) or len(kernel_size) != shape[1]:
        return
    pad = "torch.nn.functional.pad({}, (1, 0))" if source.name == "torch" else ""
    pad = pad or "np.pad({}, ((0, 0), (1, 0)))"
    raise ValueError(
        f"{argument}: expected shape (N, {shape[1] + 1}), the batch in column 0 and then the "
        f"{shape[1]} axes of kernel_size, got {shape}: there is no batch column; "
        f"{pad.format(argument)} adds batch 0"
    )


def kernel_offsets_from_size(
    kernel_size: Any, kernel_dilation: Any = 1, center_offset: Any = None, device: Any = None
) -> Array:
    """int32 [K, axes + 1]: the offsets of a kernel in the order of its groups.

    The first axis is the slowest, the last the fastest; column 0, the batch, is zero. Odd axes are
    centered, even ones begin at 0, unless `center_offset` says which place is offset 0. A torch
    tensor if `device` is torch's, else a NumPy array.

    >>> kernel_offsets_from_size((2, 1), (1, 1)).tolist()
    [[0, 0, 0], [0, 1, 0]]
    """
    size = numbers_per_axis(kernel_size, None, "kernel_size")
    dilation = numbers_per_axis(kernel_dilation, len(size), "kernel_dilation")
    center = (
        [] if center_offset is None else numbers_per_axis(center_offset, len(size), "center_offset")
    )
    usable_device("cpu" if device is None else device)
    return home_of(device).give(_core.kernel_offsets(size, dilation, center))


@also_named(batch_indexed_in_coords="in_coords", batch_indexed_out_coords="out_coords")
def generate_kernel_map(
    in_coords: ArrayLike,
    out_coords: ArrayLike,
    in_to_out_stride_ratio: Any,
    kernel_size: Any,
    kernel_dilation: Any = None,
    kernel_center_offset: Any = None,
    method: str = "size",
    skip_symmetric_kernel_map: bool = False,
    strategy: str | None = None,
    *,
    duplicates: str = "error",
) -> KernelMap:
    """All pairs with `in_coords[i] == stride * out_coords[o] + offset[k]` in the same batch.

    Coordinates are integers [N, axes + 1], batch first, 2 to 6 axes; an empty list is no rows.
    Numbers per axis may be one int for all. `method` is "size" or "offset": both give the same map.
    With `skip_symmetric_kernel_map` only the groups before the middle one are made: the others
    mirror them. `strategy` names a path: "blocks", "flat", "hierarchical", "merge", or
    "warpconvnet", which chooses by the kernel's size as WarpConvNet does. None takes the fastest.
    All give the same map. Repeated rows of in_coords are an error, unless `duplicates="first"`.

    >>> m = generate_kernel_map([[0, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 0, 1]], 1, (1, 3))
    >>> [(i.tolist(), o.tolist()) for i, o in m]
    [([0], [1]), ([0, 1], [0, 1]), ([1], [0])]
    """
    wanted = (in_to_out_stride_ratio, kernel_size, kernel_dilation, kernel_center_offset)
    rows_in, rows_out, source = _take_both(in_coords, out_coords, wanted)
    require_batch_column(rows_in, kernel_size, "in_coords", source)
    require_batch_column(rows_out, kernel_size, "out_coords", source)
    axes = axes_of(rows_in)
    if method not in ("size", "offset"):
        raise ValueError(f'method: expected "size" or "offset", got {method!r}')
    require_duplicates(duplicates)
    if not (strategy is None or isinstance(strategy, str)):
        raise TypeError(f"strategy: expected a str or None, got {type(strategy).__name__}")

    def per_axis(value: Any, argument: str) -> list[int]:
        return [] if value is None else numbers_per_axis(value, axes, argument)

    made = _core.generate_kernel_map(
        rows_in,
        rows_out,
        numbers_per_axis(in_to_out_stride_ratio, axes, "in_to_out_stride_ratio"),
        numbers_per_axis(kernel_size, axes, "kernel_size"),
        per_axis(kernel_dilation, "kernel_dilation"),
        per_axis(kernel_center_offset, "kernel_center_offset"),
        strategy,
        duplicates == "first",
        bool(skip_symmetric_kernel_map),
    )
    return KernelMap(made, source)


@also_named(batch_indexed_in_coords="in_coords", batch_indexed_out_coords="out_coords")
def kernel_map_from_offsets(
    in_coords: ArrayLike,
    out_coords: ArrayLike,
    kernel_offsets: ArrayLike,
    in_to_out_stride_ratio: Any = 1,
    *,
    duplicates: str = "error",
) -> KernelMap:
    """The map of any list of offsets, [K, axes + 1] with zeros in column 0, the batch.

    Group k has all pairs with `in_coords[i] == stride * out_coords[o] + kernel_offsets[k]`. The
    offsets may be in any order, and one may come twice. The rest is as in `generate_kernel_map`.

    >>> m = kernel_map_from_offsets([[0, 5, 5]], [[0, 5, 5], [0, 1, 5]], [[0, 4, 0], [0, 0, 0]])
    >>> [(i.tolist(), o.tolist()) for i, o in m]
    [([0], [1]), ([0], [0])]
    """
    offsets, home = take_rows(kernel_offsets, "kernel_offsets", NUMPY)
    wanted = (in_to_out_stride_ratio, [0] * axes_of(offsets))
    rows_in, rows_out, source = _take_both(in_coords, out_coords, wanted, home)
    require_duplicates(duplicates)
    axes = axes_of(rows_in)
    stride = numbers_per_axis(in_to_out_stride_ratio, axes, "in_to_out_stride_ratio")
    made = _core.kernel_map_from_offsets(
        rows_in, rows_out, stride, with_axes(offsets, [0] * axes), duplicates == "first"
    )
    return KernelMap(made, source)


def _take_both(
    in_coords: ArrayLike, out_coords: ArrayLike, wanted: Iterable[Any], home: Framework = NUMPY
) -> tuple[Any, Any, Framework]:
    """(in rows, out rows, the framework of the results: that of the first argument that is no list)."""
    rows_out, home = take_rows(out_coords, "out_coords", home)
    rows_in, source = take_rows(in_coords, "in_coords", home)
    # An empty list has the axes of the other rows, or of the numbers per axis.
    axes = axes_of(rows_in) or axes_of(rows_out)
    like = [0] * axes if axes else next(filter(is_sequence, wanted), 0)
    return with_axes(rows_in, like), with_axes(rows_out, like), source


def require_duplicates(duplicates: Any) -> None:
    """ValueError unless the word is a known one."""
    if duplicates not in ("error", "first"):
        raise ValueError(f'duplicates: expected "error" or "first", got {duplicates!r}')


def kernel_map_from_size_hierarchical(
    fine_ht: PackedHashTable | CoordTable,
    query_coords: ArrayLike,
    kernel_size: Any,
    stride: int = 4,
    identity_map_index: int | None = None,
) -> KernelMap:
    """The map from the rows of a table to `query_coords`; the first of equal rows counts.

    The table itself is probed, and only where a coarse cell, `stride` voxels wide, holds anything;
    `stride` is a power of two up to 2^30. Kernels are odd, over three axes, dilation 1. A query with a number
    beyond int32 has no pairs. The map finds its `identity_map_index` itself: one that is given is
    checked, and a ValueError unless it is the same.
    """
    if not isinstance(fine_ht, (PackedHashTable, CoordTable)):
        raise TypeError(
            f"fine_ht: expected a PackedHashTable or a CoordTable, got {type(fine_ht).__name__}"
        )
    rows, source = take_rows(query_coords, "query_coords", fine_ht._framework)
    size = numbers_per_axis(kernel_size, 3, "kernel_size")
    width = integer(stride, "stride", 2**30)
    made = _core.hierarchical_kernel_map(fine_ht._table, rows, size, width)
    if identity_map_index is not None and identity_map_index != made.identity_map_index:
        raise ValueError(
            f"identity_map_index: expected None or the group that joins every row with itself, "
            f"here {made.identity_map_index}, got {identity_map_index!r}"
        )
    return KernelMap(made, source)
