"""Kernel maps: for every offset of a convolution kernel, the pairs (in row, out row).

Over 400 lines, and `generate_kernel_map` over 50 lines: most are arguments, docstrings and
examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from tensorhash import _core
from tensorhash._arguments import integer, position, require_one_of
from tensorhash._device import usable_device
from tensorhash._frameworks import NUMPY, Framework, copied_to_numpy
from tensorhash._places import Place
from tensorhash._types import Array, ArrayLike, DeviceLike
from tensorhash.coords._kernel_arguments import (
    axes_of,
    numbers_per_axis,
    require_batch_column,
    require_duplicates,
    require_strategy,
    take_both,
)
from tensorhash.coords._names import also_named
from tensorhash.coords._rows import device_in, home_of, take_rows, with_axes
from tensorhash.coords._tables import CoordTable, PackedHashTable

if TYPE_CHECKING:
    import torch


class Coverage(NamedTuple):
    """The rows of a kernel map that have no pair.

    >>> generate_kernel_map([[0, 1, 1]], [[0, 1, 1], [0, 5, 5]], 1, 3).coverage()
    Coverage(unused_in=array([], dtype=int64), empty_out=array([1]))
    """

    unused_in: Array  #: int64: in rows that no out row sees
    empty_out: Array  #: int64: out rows that see no in row


class KernelMap:
    """The pairs (in row, out row) of a convolution, grouped by kernel offset.

    `in_maps` and `out_maps` are int32 [pairs], `offsets` is int64 [K + 1]. Group k is
    `in_maps[offsets[k]:offsets[k + 1]]`, ascending by out row. The arrays use the framework of the
    coordinates. `identity_map_index` is the group that pairs every row with itself, or None; it is
    set only for odd kernels over equal coordinates. `strategy` is the algorithm that made the map.

    >>> pairs = generate_kernel_map([[0, 1, 1], [0, 1, 2]], [[0, 1, 1]], 1, (1, 3))
    >>> [(ins.tolist(), outs.tolist()) for ins, outs in pairs]
    [([], []), ([0], [0]), ([1], [0])]
    >>> pairs.pair_table().tolist()
    [[-1], [0], [1]]
    """

    def __init__(self, made: _core.KernelMap, source: Framework) -> None:
        self._made = made
        self._source = source
        self.in_maps: Array = source.give(made.in_maps)
        self.out_maps: Array = source.give(made.out_maps)
        self.offsets: Array = source.give(made.offsets)
        # A copy, because the user may write to `offsets`.
        # Made on a device, the map has one on the host already.
        bounds = made.offsets if made.bounds is None else made.bounds
        self._bounds = np.array(copied_to_numpy(bounds))
        # Plain integers: torch.compile cannot read those of the core.
        self._rows = made.num_in, made.num_out
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
        """A map from NumPy arrays (in_maps, out_maps, offsets) and (num_in, num_out)."""
        ins, outs, offsets = maps
        made = _core.kernel_map_from_parts(
            np.ascontiguousarray(ins, np.int32),
            np.ascontiguousarray(outs, np.int32),
            np.ascontiguousarray(offsets, np.int64),
            *rows,
            identity_map_index,
            strategy,
            *probes,
        )
        return cls(made, source)

    def _maps(self) -> tuple[Any, Any, Any]:
        """Copies of (in_maps, out_maps, offsets) as NumPy arrays."""
        made = self._made
        ins, outs, offsets = map(copied_to_numpy, (made.in_maps, made.out_maps, made.offsets))
        return np.array(ins), np.array(outs), np.array(offsets)

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
        """A copy with its own arrays.

        >>> coords = [[0, 1, 5], [0, 2, 5]]
        >>> pairs = generate_kernel_map(coords, coords, 1, (3, 1))  # the offsets -1, 0 and 1
        >>> pairs.clone().in_maps
        array([0, 0, 1, 1], dtype=int32)
        """
        return KernelMap._of_parts(**self.__getstate__())

    @property
    def device(self) -> str | torch.device:
        """The device of the arrays: "cpu:0", or a torch.device if they are torch tensors."""
        return device_in(self._source, self._made.in_maps.device)

    @property
    def identity_map_index(self) -> int | None:
        """The group that pairs every row with itself, or None."""
        return self._made.identity_map_index

    @property
    def strategy(self) -> str:
        """The algorithm that made the map: "blocks", "flat", "hierarchical" or "merge"."""
        return self._made.strategy

    @property
    def num_in(self) -> int:
        """The number of rows of in_coords."""
        return self._rows[0]

    @property
    def num_out(self) -> int:
        """The number of rows of out_coords."""
        return self._rows[1]

    @property
    def probes(self) -> tuple[int, int]:
        """The number of lookups of (coarse cells, coordinates); 0 for "blocks" and "merge"."""
        return self._made.coarse_probes, self._made.fine_probes

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def numel(self, k: int) -> int:
        """The number of pairs of offset k.

        >>> coords = [[0, 1, 5], [0, 2, 5]]
        >>> pairs = generate_kernel_map(coords, coords, 1, (3, 1))  # the offsets -1, 0 and 1
        >>> [pairs.numel(k) for k in range(3)]
        [1, 2, 1]
        """
        group = position(k, len(self), "k")
        return int(self._bounds[group + 1] - self._bounds[group])

    def __getitem__(self, k: int) -> tuple[Array, Array]:
        """(in rows, out rows) of offset k."""
        group = position(k, len(self), "k")
        pairs = slice(int(self._bounds[group]), int(self._bounds[group + 1]))
        return self._sliced(self.in_maps, pairs), self._sliced(self.out_maps, pairs)

    def _sliced(self, maps: Array, pairs: slice) -> Array:
        if isinstance(maps, _core.Tensor):  # on a device: the core's tensors have no slices
            return self._give_host(np.array(copied_to_numpy(maps)[pairs]))
        return maps[pairs]

    def _give_host(self, array: Any) -> Array:
        """A NumPy array as a result, on the map's device."""
        made = _core.Tensor.wrap(np.ascontiguousarray(array), "map")
        return self._source.give(made.to(self._made.in_maps.device))

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        return (self[k] for k in range(len(self)))

    @overload
    def get_batch(
        self, start: int, end: int, out_format: Literal["list"] = "list"
    ) -> tuple[list[Array], list[Array]]: ...

    @overload
    def get_batch(
        self, start: int, end: int, out_format: Literal["tensor"]
    ) -> tuple[Array, Array]: ...

    @also_named(start_idx="start", end_idx="end")
    def get_batch(
        self, start: int, end: int, out_format: str = "list"
    ) -> tuple[list[Array], list[Array]] | tuple[Array, Array]:
        """(in maps, out maps) of the offsets start..end-1, as two lists of arrays.

        With out_format="tensor" as two int64 arrays [end - start, most pairs], padded with -1.

        >>> coords = [[0, 1, 5], [0, 2, 5]]
        >>> pairs = generate_kernel_map(coords, coords, 1, (3, 1))  # the offsets -1, 0 and 1
        >>> pairs.get_batch(0, 2, "tensor")[0]
        array([[ 0, -1],
               [ 0,  1]])
        """
        first, last = integer(start, "start", None), integer(end, "end", None)
        if not 0 <= first <= last <= len(self):
            raise ValueError(
                f"start, end: expected 0 <= start <= end <= {len(self)}, got {first} and {last}"
            )
        require_one_of(out_format, "out_format", "list", "tensor")
        if out_format == "list":
            groups = [self[k] for k in range(first, last)]
            return [pair[0] for pair in groups], [pair[1] for pair in groups]
        *maps, _ = self._maps()
        sizes = np.diff(self._bounds[first : last + 1])
        padded = np.full((2, last - first, max(sizes, default=0)), -1, dtype=np.int64)
        for row, (begin, size) in enumerate(zip(self._bounds[first:last], sizes, strict=True)):
            for side in range(2):
                padded[side, row, :size] = maps[side][begin : begin + size]
        return self._give_host(padded[0]), self._give_host(padded[1])

    def pair_table(self) -> Array:
        """int32 [K, num_out]: the in row of each offset and out row, or -1. Made on first call.

        >>> coords = [[0, 1, 5], [0, 2, 5]]
        >>> pairs = generate_kernel_map(coords, coords, 1, (3, 1))  # the offsets -1, 0 and 1
        >>> pairs.pair_table()
        array([[-1,  0],
               [ 0,  1],
               [ 1, -1]], dtype=int32)
        """
        if self._table is None:
            self._table = self._source.give(self._made.pair_table())
        return self._table

    @property
    def _pair_table(self) -> Array:
        return self.pair_table()

    def pair_mask(self) -> Array:
        """int32 [num_out, ceil(K / 32)]: bit k % 32 of word k // 32 is set if offset k has a pair.

        Made on first call.

        >>> coords = [[0, 1, 5], [0, 2, 5]]
        >>> pairs = generate_kernel_map(coords, coords, 1, (3, 1))  # the offsets -1, 0 and 1
        >>> [bin(word) for word in pairs.pair_mask()[:, 0]]
        ['0b110', '0b11']
        """
        if self._mask is None:
            self._mask = self._source.give(self._made.pair_mask())
        return self._mask

    def to_csr(self) -> tuple[Array, Array, Array]:
        """The pairs by out row: (in rows, out rows with pairs [U], offsets int64 [U + 1]).

        >>> coords = [[0, 1, 5], [0, 2, 5]]
        >>> pairs = generate_kernel_map(coords, coords, 1, (3, 1))  # the offsets -1, 0 and 1
        >>> ins, rows, offsets = pairs.to_csr()
        >>> [ins[offsets[i] : offsets[i + 1]].tolist() for i in range(len(rows))]
        [[0, 1], [0, 1]]
        """
        ins, rows, offsets = self._made.to_csr()
        give = self._source.give
        return give(ins), give(rows), give(offsets)

    def neighbor_count_per_output(self, num_out: int | None = None) -> Array:
        """int64 [num_out]: how many offsets have a pair for each out row.

        `num_out` defaults to the map's; with a larger one the rest are zeros.

        >>> coords = [[0, 1, 5], [0, 2, 5]]
        >>> pairs = generate_kernel_map(coords, coords, 1, (3, 1))  # the offsets -1, 0 and 1
        >>> pairs.neighbor_count_per_output()
        array([2, 2])
        """
        rows = self.num_out if num_out is None else integer(num_out, "num_out", None)
        outs = copied_to_numpy(self._made.out_maps)
        most = int(outs.max(initial=-1))
        if outs.min(initial=0) < 0:
            raise ValueError("out_maps: expected rows from 0 on; this map was written to")
        if not most < rows < 2**31:
            raise ValueError(f"num_out: expected more than {most}, the last out row, got {rows}")
        return self._give_host(np.bincount(outs, minlength=rows))

    def coverage(self) -> Coverage:
        """The in rows that no out row sees, and the out rows that see none.

        A strided kernel may step over in rows: their features are lost without a word.

        >>> pairs = generate_kernel_map([[0, 1, 1], [0, 3, 3]], [[0, 0, 0]], 4, 3)
        >>> pairs.coverage().unused_in.tolist()
        [1]
        """
        maps = self._maps()
        sides = ((maps[0], self.num_in, "in_maps"), (maps[1], self.num_out, "out_maps"))
        missing = []
        for rows, count, name in sides:
            if len(rows) and not 0 <= rows.min() <= rows.max() < count:
                raise ValueError(f"{name}: expected rows below {count}; this map was written to")
            unused = np.flatnonzero(np.bincount(rows, minlength=count) == 0)
            missing.append(self._source.give(_core.Tensor.wrap(unused, "rows")))
        return Coverage(*missing)

    def transpose(self) -> KernelMap:
        """The map with in and out swapped, for a transposed convolution.

        >>> coords = [[0, 1, 5], [0, 2, 5]]
        >>> pairs = generate_kernel_map(coords, coords, 1, (3, 1))  # the offsets -1, 0 and 1
        >>> pairs.transpose()[0]
        (array([1], dtype=int32), array([0], dtype=int32))
        """
        return KernelMap(self._made.transpose(), self._source)

    def __repr__(self) -> str:
        return (
            f"KernelMap(offsets={len(self)}, pairs={int(self._bounds[-1])}, in={self.num_in}, "
            f"out={self.num_out}, {self.strategy}, {self._source.name})"
        )


def kernel_offsets_from_size(
    kernel_size: Sequence[int],
    kernel_dilation: int | Sequence[int] = 1,
    center_offset: int | Sequence[int] | None = None,
    device: DeviceLike = None,
) -> Array:
    """int32 [K, axes + 1]: the offsets of a kernel, in the order of a map's groups.

    The last axis varies fastest; column 0, the batch, is zero. Odd axes are centred and even axes
    start at 0, unless `center_offset` gives the position of offset 0. The result is a torch tensor
    if `device` is a torch.device, else a NumPy array.

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
    in_to_out_stride_ratio: int | Sequence[int],
    kernel_size: int | Sequence[int],
    kernel_dilation: int | Sequence[int] | None = None,
    kernel_center_offset: int | Sequence[int] | None = None,
    method: str = "size",
    skip_symmetric_kernel_map: bool = False,
    strategy: str | None = None,
    *,
    duplicates: str = "error",
    pair_table: bool = False,
    device: DeviceLike = None,
) -> KernelMap:
    """Finds all pairs with `in_coords[i] == stride * out_coords[o] + offset[k]` in the same batch.

    Coordinates are integers [N, axes + 1], batch first, with 2 to 6 axes; an empty list is zero
    rows. Arguments per axis may be one int for all axes. `method` is "size" or "offset"; both give
    the same map. `skip_symmetric_kernel_map` makes only the groups before the middle one, because
    the others mirror them. `strategy` names an algorithm: "blocks", "flat", "hierarchical",
    "merge", or "warpconvnet", which chooses by kernel size as WarpConvNet does. None takes the
    fastest. All give the same map. Repeated rows of in_coords are a ValueError, unless
    `duplicates="first"`. With `pair_table`, what `KernelMap.pair_table` returns is made in the same
    call, on a device for free. The map is made where the arrays are, unless `device` is given, and
    its arrays are where out_coords are.

    >>> m = generate_kernel_map([[0, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 0, 1]], 1, (1, 3))
    >>> [(i.tolist(), o.tolist()) for i, o in m]
    [([0], [1]), ([0, 1], [0, 1]), ([1], [0])]
    """
    wanted = (in_to_out_stride_ratio, kernel_size, kernel_dilation, kernel_center_offset)
    rows_in, rows_out, source = take_both(in_coords, out_coords, wanted)
    require_batch_column(rows_in, kernel_size, "in_coords", source)
    require_batch_column(rows_out, kernel_size, "out_coords", source)
    axes = axes_of(rows_in)
    require_one_of(method, "method", "size", "offset")
    require_duplicates(duplicates)
    require_strategy(strategy)

    def per_axis(value: int | Sequence[int] | None, argument: str) -> list[int]:
        return [] if value is None else numbers_per_axis(value, axes, argument)

    place = Place(device, source, rows_out, rows_in)
    made = _core.generate_kernel_map(
        place.take(rows_in, "in_coords"),
        place.take(rows_out, "out_coords"),
        numbers_per_axis(in_to_out_stride_ratio, axes, "in_to_out_stride_ratio"),
        numbers_per_axis(kernel_size, axes, "kernel_size"),
        per_axis(kernel_dilation, "kernel_dilation"),
        per_axis(kernel_center_offset, "kernel_center_offset"),
        strategy,
        duplicates == "first",
        bool(skip_symmetric_kernel_map),
        bool(pair_table),
    )
    result = KernelMap(place.bring(made), source)
    if pair_table:
        result._table = place.give(made.pair_table())
    return result


@also_named(batch_indexed_in_coords="in_coords", batch_indexed_out_coords="out_coords")
def kernel_map_from_offsets(
    in_coords: ArrayLike,
    out_coords: ArrayLike,
    kernel_offsets: ArrayLike,
    in_to_out_stride_ratio: int | Sequence[int] = 1,
    *,
    duplicates: str = "error",
    device: DeviceLike = None,
) -> KernelMap:
    """The kernel map of any list of offsets, [K, axes + 1] with zeros in column 0, the batch.

    Group k has all pairs with `in_coords[i] == stride * out_coords[o] + kernel_offsets[k]`. Offsets
    may be in any order and may repeat. The rest is as in `generate_kernel_map`.

    >>> m = kernel_map_from_offsets([[0, 5, 5]], [[0, 5, 5], [0, 1, 5]], [[0, 4, 0], [0, 0, 0]])
    >>> [(i.tolist(), o.tolist()) for i, o in m]
    [([0], [1]), ([0], [0])]
    """
    offsets, home = take_rows(kernel_offsets, "kernel_offsets", NUMPY)
    wanted = (in_to_out_stride_ratio, [0] * axes_of(offsets))
    rows_in, rows_out, source = take_both(in_coords, out_coords, wanted, home)
    require_duplicates(duplicates)
    columns = [0] * axes_of(offsets)
    for rows, argument in ((rows_in, "in_coords"), (rows_out, "out_coords")):
        require_batch_column(rows, columns, argument, source, "axes of kernel_offsets")
    axes = axes_of(rows_in)
    stride = numbers_per_axis(in_to_out_stride_ratio, axes, "in_to_out_stride_ratio")
    place = Place(device, source, rows_out, rows_in)
    made = _core.kernel_map_from_offsets(
        place.take(rows_in, "in_coords"),
        place.take(rows_out, "out_coords"),
        stride,
        with_axes(offsets, [0] * axes),
        duplicates == "first",
    )
    return KernelMap(place.bring(made), source)


def kernel_map_from_size_hierarchical(
    fine_ht: PackedHashTable | CoordTable,
    query_coords: ArrayLike,
    kernel_size: int | Sequence[int],
    stride: int = 4,
    identity_map_index: int | None = None,
) -> KernelMap:
    """The kernel map from the rows of a table to `query_coords`; of equal rows the first counts.

    Probes the table only where a coarse cell, `stride` voxels wide, holds a coordinate. `stride` is
    a power of two up to 2^30. Kernels must be odd, with three axes and dilation 1. A query with a
    number beyond int32 has no pairs. `identity_map_index` is computed; a given one that differs is
    a ValueError.

    >>> voxels = np.int32([[0, 1, 1, 1], [0, 1, 1, 2]])
    >>> table = PackedHashTable.from_coords(voxels)
    >>> len(kernel_map_from_size_hierarchical(table, voxels, (5, 5, 5)).in_maps)
    4
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
            f"identity_map_index: expected None or the group that pairs every row with itself, "
            f"here {made.identity_map_index}, got {identity_map_index!r}"
        )
    return KernelMap(made, source)
