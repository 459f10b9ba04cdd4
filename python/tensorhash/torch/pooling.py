"""Pooling, unpooling and global pooling of sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from tensorhash._arguments import require_one_of
from tensorhash.torch._checks import require_coords, require_reduction
from tensorhash.torch._layers import SparseLayer, per_axis
from tensorhash.torch._map_cache import Kernel, Made
from tensorhash.torch._pooled import pooled
from tensorhash.torch.functional import joined_rows
from tensorhash.torch.sparse_tensor import SparseTensor


class _Pool(SparseLayer):
    """The geometry of a pooling, which works for any number of axes."""

    _reduce: ClassVar[str]

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        *,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        out_sites: str = "strided",
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.dilation = dilation
        self.padding = padding
        require_one_of(out_sites, "out_sites", "strided", "reached")
        self.out_sites = out_sites
        self.kernel(2 if isinstance(kernel_size, int) else len(kernel_size))

    def kernel(self, axes: int) -> Kernel:
        """The kernel for voxels with that many axes."""
        return Kernel(
            per_axis(self.kernel_size, axes, "kernel_size"),
            per_axis(self.stride, axes, "stride"),
            per_axis(self.dilation, axes, "dilation"),
            per_axis(self.padding, axes, "padding", 0),
        )

    def run(
        self, x: SparseTensor, out_coords: torch.Tensor | SparseTensor | None = None
    ) -> SparseTensor:
        """The pooling of a SparseTensor, at given voxels if `out_coords` came."""
        made = self._made(x, self.kernel(x.axes), out_coords)
        return x.moved(pooled(x.features, made.map, self._reduce), made.site)

    def _made(self, x: SparseTensor, kernel: Kernel, out_coords: Any) -> Made:
        if out_coords is None:
            return x.maps.strided(x.site, kernel, self.out_sites == "reached")
        return x.maps.to(x.site, kernel, _target(out_coords, x.axes), False)

    def extra_repr(self) -> str:
        """The text in parentheses that print(module) shows."""
        words = f"{self.kernel_size}, stride={self.stride}, dilation={self.dilation}"
        more = f", padding={self.padding}"
        return words + more + (", out_sites='reached'" if self.out_sites == "reached" else "")


class SparseMaxPool(_Pool):
    """The maximum over the voxels that the kernel sees; for any number of axes.

    `stride` defaults to `kernel_size`, and `padding` to 0, as in torch's pooling: voxel o sees the
    voxels from `o * stride - padding` on. Output voxels and `out_sites` are those of SparseConv3d.
    Absent voxels do not count, and an output voxel without any input is zero. Voxels that share a
    maximum share its gradient. Takes a SparseTensor, or features and coordinates.

    >>> voxels = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1], [0, 2, 2, 2]])
    >>> features, coords = SparseMaxPool(2)(torch.tensor([[1.0], [5.0], [2.0]]), voxels)
    >>> features.tolist(), coords.tolist()
    ([[5.0], [2.0]], [[0, 0, 0, 0], [0, 1, 1, 1]])
    """

    _reduce = "max"


class SparseAvgPool(_Pool):
    """SparseMaxPool with the mean of the voxels that are there.

    >>> voxels = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1]])
    >>> SparseAvgPool(2)(torch.tensor([[1.0], [5.0]]), voxels)[0].tolist()
    [[3.0]]
    """

    _reduce = "mean"


class SparseSumPool(_Pool):
    """SparseMaxPool with the sum of the voxels.

    >>> voxels = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1]])
    >>> SparseSumPool(3, stride=1, padding=1)(torch.tensor([[1.0], [5.0]]), voxels)[0].tolist()
    [[6.0], [6.0]]
    """

    _reduce = "sum"


class SparseUnpool(_Pool):
    """Undoes a pooling: each fine voxel gets the sum of the coarse voxels that saw it.

    If `kernel_size` is the stride, that is a copy of its coarse voxel. `reduce` may be "mean" or
    "max". A SparseTensor knows the fine voxels; with plain coordinates `out_coords` is required.

    >>> voxels = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1], [0, 2, 2, 2]])
    >>> coarse = SparseMaxPool(2)(SparseTensor(torch.tensor([[1.0], [5.0], [2.0]]), voxels))
    >>> SparseUnpool(2)(coarse).features.tolist()
    [[5.0], [5.0], [2.0]]
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        *,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        reduce: str = "sum",
    ) -> None:
        super().__init__(kernel_size, stride, dilation=dilation, padding=padding)
        require_reduction(reduce, "reduce")
        self._reduce = reduce  # type: ignore[misc]

    def _made(self, x: SparseTensor, kernel: Kernel, out_coords: Any) -> Made:
        if out_coords is None:
            return x.maps.back(x.site, kernel)
        return x.maps.to(x.site, kernel, _target(out_coords, x.axes), True)


class SparseGlobalPool(SparseLayer):
    """One row per item of the batch: the "max", "mean" or "sum" of its voxels.

    Returns a tensor [batch size, C]. An item without voxels has zeros.

    >>> x = SparseTensor(torch.ones(2, 3), torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1]]))
    >>> SparseGlobalPool("sum")(x).tolist()
    [[2.0, 2.0, 2.0]]
    """

    def __init__(self, reduce: str = "mean") -> None:
        super().__init__()
        require_reduction(reduce, "reduce")
        self.reduce = reduce

    def run(self, x: SparseTensor) -> torch.Tensor:
        """The pooled rows of a SparseTensor."""
        return joined_rows(x.features, x.coords[:, 0], x.batch_size, self.reduce)

    def extra_repr(self) -> str:
        """The text in parentheses that print(module) shows."""
        return repr(self.reduce)


def _target(out_coords: Any, axes: int) -> torch.Tensor:
    target = out_coords.coords if isinstance(out_coords, SparseTensor) else out_coords
    require_coords(target, "out_coords", axes)
    coords: torch.Tensor = target
    return coords
