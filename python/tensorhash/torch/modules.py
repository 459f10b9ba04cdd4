"""SparseConv3d: Conv3d and ConvTranspose3d over sparse voxels."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
from torch import nn

from tensorhash.coords import STRIDED_CONV_MODE, KernelMap, convolution_map, unique_coords
from tensorhash.coords._kernel_arguments import require_duplicates
from tensorhash.coords.convolution import parse_stride_mode
from tensorhash.torch.functional import (
    require_groups,
    require_memory,
    require_reduction,
    require_rows,
    sparse_conv,
    stride_features,
)


class SparseConv3d(nn.Module):
    """A sparse convolution over voxels: features [N, C], integer coordinates [N, 4].

    The columns of the coordinates are batch, x, y, z.

    | | the output voxels are |
    |---|---|
    | stride 1 | the input voxels |
    | stride s | the input voxels, divided by s and rounded down |
    | generative | all voxels from which the kernel sees one of these |
    | transposed | `out_coords`, which is required: the input of the layer that this one undoes |
    | transposed, generative | all voxels that the kernel reaches from the input voxels times s |

    With `stride_mode="reduce_and_stride"`, `stride_reduce` ("max", "mean" or "sum") first combines
    the features of each strided voxel, and the kernel then runs over these voxels.

    Repeated voxels are a ValueError. With `duplicates="first"` only the first of equal voxels
    counts, and equal output voxels get equal features.

    Without `generative`, `out_coords` may be given. At those voxels the result equals that of
    Conv3d (or ConvTranspose3d) on a dense grid, zero where there is no voxel, with padding
    `(kernel_size // 2) * dilation` for odd kernels; the axes of an even kernel start at offset 0.
    `weight` is [K, in / groups, out], with offsets in the order in which z varies fastest. Each of
    the `groups` equal parts of the out channels sees only its part of the in channels.

    >>> layer = SparseConv3d(16, 32, kernel_size=3, stride=2)
    >>> voxels = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1], [0, 2, 2, 2]])
    >>> features, coords = layer(torch.ones(3, 16), voxels)
    >>> features.shape, coords.tolist()
    (torch.Size([2, 32]), [[0, 0, 0, 0], [0, 1, 1, 1]])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] = 1,
        dilation: int | tuple[int, int, int] = 1,
        bias: bool = True,
        transposed: bool = False,
        generative: bool = False,
        groups: int = 1,
        stride_mode: STRIDED_CONV_MODE | str = STRIDED_CONV_MODE.STRIDE_ONLY,
        *,
        stride_reduce: str = "max",
        duplicates: str = "error",
    ) -> None:
        super().__init__()
        require_groups(groups, in_channels, "in_channels")
        require_groups(groups, out_channels, "out_channels")
        self.groups = groups
        self.kernel_size = _per_axis(kernel_size, "kernel_size")
        self.stride = _per_axis(stride, "stride")
        self.dilation = _per_axis(dilation, "dilation")
        self.generative = bool(generative)
        self.transposed = bool(transposed)
        self.stride_mode = parse_stride_mode(stride_mode)
        require_reduction(stride_reduce, "stride_reduce")
        self.stride_reduce = stride_reduce
        require_duplicates(duplicates)
        self.duplicates = duplicates
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

    def forward(
        self,
        features: torch.Tensor,
        coords: torch.Tensor,
        out_coords: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns (features [M, out_channels], coordinates [M, 4]) of the output voxels."""
        if self.bias is not None:
            require_memory(self.bias, "bias")
        coords_out, kernel_map = self.kernel_map(coords, out_coords)
        reduces = self.stride_mode is STRIDED_CONV_MODE.REDUCE_AND_STRIDE
        if reduces and max(self.stride) > 1:
            if self.duplicates == "first":
                require_rows(features, coords)
                coords, first = unique_coords(coords, return_index=True)
                features = features[first]
            features, _ = stride_features(features, coords, self.stride, self.stride_reduce)
        out = sparse_conv(features, self.weight, kernel_map, self.groups)
        # Under autocast the bias may be wider than the result; cast it, to keep the result's dtype.
        return (out if self.bias is None else out + self.bias.to(out.dtype)), coords_out

    def kernel_map(
        self, coords: torch.Tensor, out_coords: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, KernelMap]:
        """Returns (output coordinates [M, 4], kernel map), to reuse for the same voxels.

        With `stride_mode="reduce_and_stride"` the map's in rows are the rows of `stride_features`.
        """
        for array, name in ((coords, "coords"), (out_coords, "out_coords")):
            if array is not None:
                _require_coords(array, name)
        where, _, kernel_map = convolution_map(
            *(coords, self.kernel_size, self.stride, self.dilation),
            out_coords=out_coords,
            generative=self.generative,
            transposed=self.transposed,
            stride_mode=self.stride_mode,
            duplicates=self.duplicates,
        )
        return where, kernel_map

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
        if self.stride_mode is STRIDED_CONV_MODE.REDUCE_AND_STRIDE:
            more += [f"stride_mode={self.stride_mode.value!r}"]
            more += [f"stride_reduce={self.stride_reduce!r}"]
        if self.duplicates != "error":
            more += [f"duplicates={self.duplicates!r}"]
        return ", ".join([words, f"dilation={self.dilation}", *more])


def _require_coords(coords: Any, argument: str) -> None:
    if not isinstance(coords, torch.Tensor) or coords.dtype not in (torch.int32, torch.int64):
        kind = coords.dtype if isinstance(coords, torch.Tensor) else type(coords).__name__
        raise TypeError(f"{argument}: expected a torch tensor of int32 or int64, got {kind}")
    if coords.ndim != 2 or coords.shape[1] != 4:
        raise ValueError(
            f"{argument}: expected shape (N, 4): batch, x, y, z; got {tuple(coords.shape)}"
        )


def _per_axis(value: Any, argument: str) -> tuple[int, int, int]:
    try:
        numbers = [operator.index(n) for n in (value if hasattr(value, "__len__") else [value] * 3)]
    except TypeError:
        raise TypeError(f"{argument}: expected an int or three, got {value!r}") from None
    if len(numbers) != 3 or min(numbers) < 1:
        raise ValueError(f"{argument}: expected an int or three, each 1 or more, got {value!r}")
    return numbers[0], numbers[1], numbers[2]
