"""MinkUNet: a U-Net of sparse convolutions that gives each voxel a vector."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from torch import nn

from tensorhash.torch.combining import cat
from tensorhash.torch.modules import SparseConv3d
from tensorhash.torch.rowwise import RowWise, SparseBatchNorm, SparseReLU
from tensorhash.torch.sparse_tensor import SparseTensor


class MinkUNet(nn.Module):
    """A U-Net over voxels: as many levels as `widths`, two convolutions per level and direction.

    Takes a SparseTensor, or features and coordinates by `SparseTensor(features, coords)`, and
    returns `out_channels` features at the same voxels. Each level halves the resolution. Three
    levels have 13 convolutions and need five kernel maps.

    >>> import torch
    >>> x = SparseTensor(torch.ones(2, 3), torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]))
    >>> MinkUNet(3, 10)(x), len(x.maps)
    (SparseTensor(2 voxels, 10 channels, stride=(1, 1, 1), torch.float32, cpu), 5)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        widths: Sequence[int] = (32, 64, 128),
        *,
        kernel_size: int = 3,
        down_kernel_size: int = 2,
    ) -> None:
        super().__init__()
        steps = list(itertools.pairwise(widths))
        self.start = _block(in_channels, widths[0], kernel_size)
        self.same = nn.ModuleList(
            nn.Sequential(_block(w, w, kernel_size), _block(w, w, kernel_size)) for w in widths
        )
        self.down = nn.ModuleList(_block(a, b, down_kernel_size, stride=2) for a, b in steps)
        self.up = nn.ModuleList(
            _block(b, a, down_kernel_size, stride=2, transposed=True) for a, b in steps
        )
        self.joined = nn.ModuleList(_block(2 * a, a, kernel_size) for a, _ in steps)
        self.end = RowWise(nn.Linear(widths[0], out_channels))

    def forward(self, x: SparseTensor) -> SparseTensor:
        """The vectors of the voxels of `x`."""
        x = self.same[0](self.start(x))
        levels = [x]
        for down, same in zip(self.down, itertools.islice(self.same, 1, None), strict=True):
            levels.append(same(down(levels[-1])))
        x = levels.pop()
        for up, joined in zip(reversed(self.up), reversed(self.joined), strict=True):
            x = joined(cat([levels.pop(), up(x)]))
        out: SparseTensor = self.end(x)
        return out


def _block(ins: int, outs: int, size: int, stride: int = 1, transposed: bool = False) -> nn.Module:
    """A convolution without a bias, which the norm after it would cancel, a norm and a ReLU."""
    conv = SparseConv3d(ins, outs, size, stride, bias=False, transposed=transposed)
    # In place: the norm needs its input for gradients, not its result.
    return nn.Sequential(conv, SparseBatchNorm(outs), SparseReLU(inplace=True))
