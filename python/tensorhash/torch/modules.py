"""SparseConv3d: torch's Conv3d and ConvTranspose3d where only some voxels are there."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
from torch import nn

from tensorhash.coords import KernelMap, expand_coords, generate_kernel_map, stride_coords
from tensorhash.torch.functional import sparse_conv


class SparseConv3d(nn.Module):
    """A convolution over voxels with features, [N, 4] integer coordinates (batch, x, y, z).

    | | the output voxels are |
    |---|---|
    | stride 1 | the input's |
    | stride s | the input's, divided by s and rounded down |
    | generative | all that the kernel reaches from those |
    | transposed | `out_coords`, which must be given: those of the layer that this one undoes |
    | transposed, generative | all that the kernel reaches from the input's, times s |

    `out_coords` may be given without `generative`. At those voxels the result is that of Conv3d (or
    ConvTranspose3d) on a grid with zeros in between and padding `(kernel_size // 2) * dilation` for
    odd kernels; the axes of an even kernel begin at offset 0. `weight` is [K, in, out], offsets with
    z fastest.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] = 1,
        dilation: int | tuple[int, int, int] = 1,
        bias: bool = True,
        generative: bool = False,
        transposed: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = _per_axis(kernel_size, "kernel_size")
        self.stride = _per_axis(stride, "stride")
        self.dilation = _per_axis(dilation, "dilation")
        self.generative = bool(generative)
        self.transposed = bool(transposed)
        size = math.prod(self.kernel_size), int(in_channels), int(out_channels)
        self.weight = nn.Parameter(torch.empty(size))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(offsets * in channels), as torch's convolutions begin."""
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
        """(features, coordinates) of the output."""
        coords_out, kernel_map = self.kernel_map(coords, out_coords)
        out = sparse_conv(features, self.weight, kernel_map)
        # Under autocast the bias is wider than the result, which keeps its dtype.
        return (out if self.bias is None else out + self.bias.to(out.dtype)), coords_out

    def kernel_map(
        self, coords: torch.Tensor, out_coords: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, KernelMap]:
        """(output coordinates, kernel map), to be kept where the same voxels come again."""
        for array, name in ((coords, "coords"), (out_coords, "out_coords")):
            if array is not None:
                _require_coords(array, name)
        if out_coords is None:
            out_coords = self._out_coords(coords)
        elif self.generative:
            raise ValueError("out_coords: a generative convolution makes its own, got some")
        if self.transposed:
            # The forward map of the layer that this one undoes, with in and out exchanged.
            undone = self._map(out_coords, coords)
            return out_coords, undone.transpose()
        return out_coords, self._map(coords, out_coords)

    def _map(self, fine: torch.Tensor, coarse: torch.Tensor) -> KernelMap:
        return generate_kernel_map(fine, coarse, self.stride, self.kernel_size, self.dilation)

    def _out_coords(self, coords: torch.Tensor) -> torch.Tensor:
        if self.transposed and not self.generative:
            raise ValueError(
                "out_coords: a transposed convolution needs the coordinates to go to, got None; "
                "or set generative=True"
            )
        if self.transposed:
            return self._reached(_moved(coords, (1, *self.stride), (0, 0, 0, 0)))
        strided = coords if self.stride == (1, 1, 1) else stride_coords(coords, self.stride)[0]
        if not self.generative:
            return strided
        # An output sees the inputs at its place plus the offsets, so inputs reach backwards; that
        # differs from forwards on even axes only.
        axes = zip(self.kernel_size, self.dilation, strict=True)
        back = [(size - 1) * step if size % 2 == 0 else 0 for size, step in axes]
        return _moved(self._reached(strided), (1, 1, 1, 1), (0, *back))

    def _reached(self, coords: torch.Tensor) -> torch.Tensor:
        reached: torch.Tensor = expand_coords(coords, self.kernel_size, self.dilation)[0]
        return reached

    def extra_repr(self) -> str:
        """What print(module) shows between the brackets."""
        _, channels, out_channels = self.weight.shape
        words = f"{channels}, {out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        flags = [name for name in ("generative", "transposed") if getattr(self, name)]
        return ", ".join([words, f"dilation={self.dilation}", *(f"{flag}=True" for flag in flags)])


def _require_coords(coords: Any, argument: str) -> None:
    if not isinstance(coords, torch.Tensor) or coords.dtype not in (torch.int32, torch.int64):
        kind = coords.dtype if isinstance(coords, torch.Tensor) else type(coords).__name__
        raise TypeError(f"{argument}: expected a torch tensor of int32 or int64, got {kind}")
    if coords.ndim != 2 or coords.shape[1] != 4:
        raise ValueError(
            f"{argument}: expected shape (N, 4): batch, x, y, z; got {tuple(coords.shape)}"
        )


def _moved(coords: torch.Tensor, factors: tuple[int, ...], back: tuple[int, ...]) -> torch.Tensor:
    """coords * factors - back, or ValueError where that leaves int32, in which maps are made."""
    moved = coords.to(torch.int64) * torch.tensor(factors) - torch.tensor(back)
    limits = torch.iinfo(torch.int32)
    if len(moved) and not (limits.min <= int(moved.min()) and int(moved.max()) <= limits.max):
        raise ValueError(
            f"coords: expected output coordinates within int32, got {int(moved.min())} to "
            f"{int(moved.max())}"
        )
    return moved.to(coords.dtype)


def _per_axis(value: Any, argument: str) -> tuple[int, int, int]:
    try:
        numbers = [operator.index(n) for n in (value if hasattr(value, "__len__") else [value] * 3)]
    except TypeError:
        raise TypeError(f"{argument}: expected an int or three, got {value!r}") from None
    if len(numbers) != 3 or min(numbers) < 1:
        raise ValueError(f"{argument}: expected an int or three, each 1 or more, got {value!r}")
    return numbers[0], numbers[1], numbers[2]
