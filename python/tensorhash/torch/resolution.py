"""Layers that drop, split and merge voxels: prune, subdivide, space to channel and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from tensorhash.coords import KernelMap
from tensorhash.torch._checks import require_memory
from tensorhash.torch._layers import SparseLayer, like_rows, per_axis
from tensorhash.torch._map_cache import Kernel
from tensorhash.torch._pooled import pooled_sum
from tensorhash.torch.functional import map_tensors
from tensorhash.torch.sparse_tensor import SparseTensor


class SparsePrune(SparseLayer):
    """Keeps the voxels where `mask`, bool [N], is True: `SparsePrune()(x, mask)`.

    >>> x = SparseTensor(torch.tensor([[1.0], [2.0]]), torch.tensor([[0, 0, 0], [0, 0, 1]]))
    >>> SparsePrune()(x, x.features[:, 0] > 1.5).coords.tolist()
    [[0, 0, 1]]
    """

    def run(self, x: SparseTensor, mask: torch.Tensor) -> SparseTensor:
        """The rows of a SparseTensor that the mask keeps."""
        require_memory(mask, "mask")
        if mask.dtype != torch.bool or tuple(mask.shape) != (len(x),):
            raise ValueError(
                f"mask: expected bool of shape ({len(x)},), one per voxel, got {mask.dtype} of "
                f"shape {tuple(mask.shape)}"
            )
        coords = x.coords[mask.to(x.coords.device)]
        site = x.maps.number_of(coords, x.stride, x.spatial_shape)
        return x.moved(x.features[mask.to(x.device)], site)


class _Cells(SparseLayer):
    """Blocks of `factor` voxels per axis."""

    def __init__(self, factor: int | Sequence[int] = 2) -> None:
        super().__init__()
        self.factor = factor
        self.kernel(2 if isinstance(factor, int) else len(factor))

    def kernel(self, axes: int) -> Kernel:
        """The kernel that sees one block."""
        factor = per_axis(self.factor, axes, "factor")
        return Kernel(factor, factor, (1,) * axes, (0,) * axes)

    def extra_repr(self) -> str:
        """The text in parentheses that print(module) shows."""
        return repr(self.factor)


class SparseSubdivide(_Cells):
    """Splits each voxel into all its `factor` parts per axis; each part gets its features.

    >>> x = SparseTensor(torch.tensor([[1.0]]), torch.tensor([[0, 3, 4]]), stride=2)
    >>> SparseSubdivide(2)(x).coords.tolist()
    [[0, 6, 8], [0, 6, 9], [0, 7, 8], [0, 7, 9]]
    """

    def run(self, x: SparseTensor) -> SparseTensor:
        """The parts of the voxels of a SparseTensor."""
        made = x.maps.generative(x.site, self.kernel(x.axes), True)
        return x.moved(pooled_sum(x.features, made.map), made.site)


class SparseSpaceToChannel(_Cells):
    """Merges blocks of `factor` voxels per axis: their features side by side, absent ones zero.

    The channels are [offset, channel], the last axis of the offset fastest.

    >>> x = SparseTensor(torch.tensor([[5.0], [7.0]]), torch.tensor([[0, 0, 1], [0, 1, 1]]))
    >>> SparseSpaceToChannel(2)(x).features.tolist()
    [[0.0, 5.0, 0.0, 7.0]]
    """

    def run(self, x: SparseTensor) -> SparseTensor:
        """The merged voxels of a SparseTensor."""
        made = x.maps.strided(x.site, self.kernel(x.axes))
        ins, places = _places(made.map, x.features)
        cells = made.map.num_out * len(made.map)
        rows = x.features.new_zeros(cells, x.num_channels)
        rows = rows.index_copy(0, places, x.features.index_select(0, ins))
        channels = len(made.map) * x.num_channels
        return x.moved(rows.reshape(made.map.num_out, channels), made.site)


class SparseChannelToSpace(_Cells):
    """Undoes SparseSpaceToChannel: splits channels into the voxels that were merged.

    With `generative=True`, into all voxels of each block.

    >>> x = SparseTensor(torch.tensor([[5.0], [7.0]]), torch.tensor([[0, 0, 1], [0, 1, 1]]))
    >>> merged = SparseSpaceToChannel(2)(x)
    >>> SparseChannelToSpace(2)(merged).features.tolist()
    [[5.0], [7.0]]
    """

    def __init__(self, factor: int | Sequence[int] = 2, generative: bool = False) -> None:
        super().__init__(factor)
        self.generative = bool(generative)

    def run(self, x: SparseTensor) -> SparseTensor:
        """The split voxels of a SparseTensor."""
        kernel = self.kernel(x.axes)
        parts = math.prod(kernel.size)
        if x.num_channels % parts != 0:
            raise ValueError(
                f"features: expected a multiple of {parts} channels, got {x.num_channels}"
            )
        maps = x.maps
        made = (
            maps.generative(x.site, kernel, True) if self.generative else maps.back(x.site, kernel)
        )
        outs, places = _places(made.map, x.features, turned=True)
        rows = x.features.reshape(len(x) * parts, x.num_channels // parts)
        found = rows.index_select(0, places)
        made_rows = rows.new_zeros(made.map.num_out, rows.shape[1])
        return x.moved(made_rows.index_copy(0, outs, found), made.site)


def _places(
    kernel_map: KernelMap, features: torch.Tensor, turned: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(fine row, coarse row * offsets + offset) of each pair; `turned` maps go coarse to fine."""
    ins, outs, offsets = map_tensors(kernel_map, features.device)
    fine, coarse = (outs, ins) if turned else (ins, outs)
    counts = offsets.to(features.device).diff()
    numbers: Any = torch.arange(len(kernel_map), device=features.device)
    offset = numbers.repeat_interleave(counts, output_size=ins.shape[0])
    return like_rows(fine, features), like_rows(coarse, features) * len(kernel_map) + offset
