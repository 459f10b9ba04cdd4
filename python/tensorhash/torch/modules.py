"""Sparse convolutions: Conv2d to Conv4d and their transposed forms over sparse voxels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import nn

from tensorhash._arguments import require_one_of
from tensorhash.coords import STRIDED_CONV_MODE, KernelMap
from tensorhash.coords._kernel_arguments import require_duplicates
from tensorhash.coords.convolution import Mode, check_mode, own_padding, parse_stride_mode
from tensorhash.torch._checks import (
    require_bool,
    require_coords,
    require_groups,
    require_memory,
    require_reduction,
)
from tensorhash.torch._layers import SparseLayer, like_rows, per_axis, require_axes
from tensorhash.torch._map_cache import Kernel, Made
from tensorhash.torch.functional import joined_rows, sparse_conv
from tensorhash.torch.sparse_tensor import SparseTensor


class _SparseConv(SparseLayer):
    """The parameters and the work of all convolutions."""

    _axes: ClassVar[int]
    bias: nn.Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        bias: bool = True,
        transposed: bool = False,
        generative: bool = False,
        groups: int = 1,
        stride_mode: STRIDED_CONV_MODE | str = STRIDED_CONV_MODE.STRIDE_ONLY,
        *,
        stride_reduce: str = "max",
        duplicates: str = "error",
        padding: int | Sequence[int] | None = None,
        out_sites: str = "strided",
        indice_key: str | None = None,
    ) -> None:
        super().__init__()
        for flag, name in ((bias, "bias"), (transposed, "transposed"), (generative, "generative")):
            require_bool(flag, name)
        require_groups(groups, in_channels, "in_channels")
        require_groups(groups, out_channels, "out_channels")
        self.groups = groups
        self.kernel_size = per_axis(kernel_size, self._axes, "kernel_size")
        self.stride = per_axis(stride, self._axes, "stride")
        self.dilation = per_axis(dilation, self._axes, "dilation")
        self.padding = None if padding is None else per_axis(padding, self._axes, "padding", 0)
        self.generative = generative
        self.transposed = transposed
        self.stride_mode = parse_stride_mode(stride_mode)
        require_one_of(out_sites, "out_sites", "strided", "reached")
        self.out_sites = out_sites
        require_reduction(stride_reduce, "stride_reduce")
        self.stride_reduce = stride_reduce
        require_duplicates(duplicates)
        self.duplicates = duplicates
        self.indice_key = indice_key
        size = math.prod(self.kernel_size), int(in_channels) // groups, int(out_channels)
        self.weight = nn.Parameter(torch.empty(size))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws from +-1 / sqrt(offsets * in channels of a group), as torch's convolutions do."""
        offsets, channels, _ = self.weight.shape
        bound = 1 / math.sqrt(max(1, offsets * channels))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def axes(self) -> int:
        """The number of axes that coordinates must have."""
        return self._axes

    def run(
        self, x: SparseTensor, out_coords: torch.Tensor | SparseTensor | None = None
    ) -> SparseTensor:
        """The convolution of a SparseTensor; `out_coords` may be a SparseTensor, too."""
        if self.bias is not None:
            require_memory(self.bias, "bias")
        require_axes(x, self._axes)
        x, made = self._made(x, out_coords)
        return x.moved(self._convolve(x.features, made.map), made.site)

    def kernel_map(
        self, coords: torch.Tensor, out_coords: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, KernelMap]:
        """Returns (output coordinates [M, 1 + D], kernel map), to reuse for the same voxels.

        With `stride_mode="reduce_and_stride"` the map's in rows are the rows of `stride_features`.
        """
        require_coords(coords, "coords", self._axes)
        nothing = torch.empty(len(coords), 0)
        x, made = self._made(SparseTensor(nothing, coords), out_coords)
        return x.maps[made.site].coords, made.map

    def _convolve(self, features: torch.Tensor, kernel_map: KernelMap) -> torch.Tensor:
        out = sparse_conv(features, self.weight, kernel_map, self.groups)
        # Under autocast the bias may be wider than the result; cast it, to keep the result's dtype.
        return out if self.bias is None else out + self.bias.to(out.dtype)

    def _made(self, x: SparseTensor, out_coords: Any) -> tuple[SparseTensor, Made]:
        """The tensor that the kernel runs over, and what it makes of its voxels."""
        reduces = self.stride_mode is STRIDED_CONV_MODE.REDUCE_AND_STRIDE
        mode = Mode(self.generative, self.transposed, reduces, self.out_sites == "reached")
        target = out_coords.coords if isinstance(out_coords, SparseTensor) else out_coords
        # Without out_coords, a transposed convolution asks the tensor for them.
        known = target is not None or (self.transposed and not self.generative)
        check_mode(known, mode)
        stride = self.stride
        if reduces and max(stride) > 1:
            x, stride = self._reduced(x), (1,) * self._axes
        padding = self.padding or tuple(own_padding(self.kernel_size, self.dilation))
        kernel = Kernel(self.kernel_size, stride, self.dilation, padding, self.duplicates)
        made = self._target(x, kernel, target)
        if self.indice_key is not None and not self.transposed:
            x.maps.name(self.indice_key, x.site, made, kernel)
        return x, made

    def _target(self, x: SparseTensor, kernel: Kernel, target: Any) -> Made:
        if target is not None:
            require_coords(target, "out_coords", self._axes)
            return x.maps.to(x.site, kernel, target, self.transposed)
        if self.generative:
            return x.maps.generative(x.site, kernel, self.transposed)
        if self.transposed:
            return x.maps.back(x.site, kernel)
        return x.maps.strided(x.site, kernel, self.out_sites == "reached")

    def _reduced(self, x: SparseTensor) -> SparseTensor:
        """The features and voxels that become one under the stride, reduced."""
        made = x.maps.reduced(x.site, self.stride, self.duplicates == "first")
        features = x.features
        if made.first is not None:
            features = features[like_rows(made.first, features)]
        count = len(x.maps[made.site].coords)
        return x.moved(joined_rows(features, made.rows, count, self.stride_reduce), made.site)

    def extra_repr(self) -> str:
        """The text in parentheses that print(module) shows."""
        _, channels, out_channels = self.weight.shape
        words = (
            f"{channels * self.groups}, {out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        flags = [name for name in ("generative", "transposed") if getattr(self, name)]
        more = [f"{flag}=True" for flag in flags]
        if self.groups != 1:
            more += [f"groups={self.groups}"]
        if self.padding is not None:
            more += [f"padding={self.padding}"]
        if self.out_sites != "strided":
            more += [f"out_sites={self.out_sites!r}"]
        if self.stride_mode is STRIDED_CONV_MODE.REDUCE_AND_STRIDE:
            more += [f"stride_mode={self.stride_mode.value!r}"]
            more += [f"stride_reduce={self.stride_reduce!r}"]
        if self.duplicates != "error":
            more += [f"duplicates={self.duplicates!r}"]
        if self.indice_key is not None:
            more += [f"indice_key={self.indice_key!r}"]
        return ", ".join([words, f"dilation={self.dilation}", *more])


class SparseConv3d(_SparseConv):
    """A sparse convolution over voxels: features [N, C], integer coordinates [N, 4].

    The columns of the coordinates are batch, x, y, z. The layer takes a SparseTensor and returns
    one, or takes features and coordinates and returns both.

    | | the output voxels are |
    |---|---|
    | stride 1 | the input voxels |
    | stride s | the input voxels, divided by s and rounded down |
    | `out_sites="reached"` | all voxels from which the kernel sees an input voxel, as in spconv |
    | generative | all voxels from which the kernel sees one of the strided voxels |
    | transposed | `out_coords`: the input of the layer that this one undoes |
    | transposed, generative | all voxels that the kernel reaches from the input voxels times s |

    A SparseTensor knows the voxels to which a transposed convolution goes back. With plain
    coordinates, `out_coords` is required there. Without `generative`, it may always be given.

    With `stride_mode="reduce_and_stride"`, `stride_reduce` ("max", "mean" or "sum") first combines
    the features of each strided voxel, and the kernel then runs over these voxels.

    Repeated voxels are a ValueError. With `duplicates="first"` only the first of equal voxels
    counts, and equal output voxels get equal features.

    At the output voxels the result equals that of Conv3d (or ConvTranspose3d) on a dense grid, zero
    where there is no voxel, with this `padding`. The default is `(kernel_size // 2) * dilation` for
    odd kernels; the axes of an even kernel start at offset 0. `weight` is [K, in / groups, out],
    with offsets in the order in which z varies fastest. Each of the `groups` equal parts of the out
    channels sees only its part of the in channels. `indice_key` names the kernel map for
    SparseInverseConv3d.

    >>> layer = SparseConv3d(16, 32, kernel_size=3, stride=2)
    >>> voxels = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1], [0, 2, 2, 2]])
    >>> features, coords = layer(torch.ones(3, 16), voxels)
    >>> features.shape, coords.tolist()
    (torch.Size([2, 32]), [[0, 0, 0, 0], [0, 1, 1, 1]])
    >>> layer(SparseTensor(torch.ones(3, 16), voxels))
    SparseTensor(2 voxels, 32 channels, stride=(2, 2, 2), torch.float32, cpu)
    """

    _axes = 3


class SparseConv2d(_SparseConv):
    """SparseConv3d over pixels, with coordinates [N, 3]: batch, x, y.

    >>> pixels = torch.tensor([[0, 0, 0], [0, 0, 1]])
    >>> SparseConv2d(4, 8, kernel_size=3)(SparseTensor(torch.ones(2, 4), pixels)).num_channels
    8
    """

    _axes = 2


class SparseConv4d(_SparseConv):
    """SparseConv3d over four axes, with coordinates [N, 5]: batch, x, y, z, t.

    >>> voxels = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 0, 1]])
    >>> SparseConv4d(4, 8, kernel_size=3)(SparseTensor(torch.ones(2, 4), voxels)).num_channels
    8
    """

    _axes = 4


class SubMConv3d(SparseConv3d):
    """spconv's name of a SparseConv3d with stride 1: the output voxels are the input voxels.

    The arguments are spconv's. Layers share kernel maps by themselves, so `indice_key` is only a
    name. As in spconv, `padding` has no effect: it is `(kernel_size // 2) * dilation`.

    >>> voxels = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1]])
    >>> SubMConv3d(4, 8, 3)(SparseTensor(torch.ones(2, 4), voxels)).num_channels
    8
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        indice_key: str | None = None,
    ) -> None:
        if max(per_axis(stride, 3, "stride")) > 1:
            raise ValueError(f"stride: expected 1 in a submanifold convolution, got {stride!r}")
        per_axis(padding, 3, "padding", 0)
        sizes = per_axis(kernel_size, 3, "kernel_size"), per_axis(dilation, 3, "dilation")
        super().__init__(
            *(in_channels, out_channels, kernel_size, 1, dilation, bias),
            groups=groups,
            padding=tuple(size // 2 * step for size, step in zip(*sizes, strict=True)),
            indice_key=indice_key,
        )


class SparseInverseConv3d(SparseConv3d):
    """Undoes a strided convolution: goes back to its input voxels with its kernel map turned round.

    Takes a SparseTensor. The layer to undo is the one that made its voxels with this kernel size;
    if there are several, `indice_key` names one.

    >>> voxels = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1], [0, 2, 2, 2]])
    >>> down, up = SparseConv3d(4, 8, 3, stride=2), SparseInverseConv3d(8, 4, 3)
    >>> up(down(SparseTensor(torch.ones(3, 4), voxels))).coords is voxels
    True
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        indice_key: str | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, bias=bias)
        self.indice_key = indice_key

    def _made(self, x: SparseTensor, out_coords: Any) -> tuple[SparseTensor, Made]:
        if out_coords is not None:
            raise ValueError("out_coords: expected None, because the layer to undo has the voxels")
        return x, x.maps.undone(x.site, self.kernel_size, self.indice_key)
