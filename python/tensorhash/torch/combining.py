"""Joins sparse tensors, and converts between sparse and dense tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tensorhash.coords.ops import axis_ints
from tensorhash.torch._checks import require_memory
from tensorhash.torch._layers import SparseLayer, like_rows
from tensorhash.torch.sparse_tensor import SparseTensor


def cat(tensors: Sequence[SparseTensor]) -> SparseTensor:
    """The channels of several tensors at the same voxels, side by side.

    ValueError if their voxels or the order of their rows differ.

    >>> x = SparseTensor(torch.ones(1, 4), torch.tensor([[0, 5, 5, 5]]))
    >>> cat([x, x, x]).num_channels
    12
    """
    if not tensors:
        raise ValueError("tensors: expected one or more, got none")
    first = require_sparse(tensors[0], "tensors[0]")
    for number, other in enumerate(tensors):
        require_sparse(other, f"tensors[{number}]")
        if not _same_voxels(first, other):
            raise ValueError(
                f"tensors[{number}]: expected the voxels of tensors[0] in the same order, "
                f"got {other!r}; a + b takes any voxels"
            )
    return first.with_features(torch.cat([one.features for one in tensors], dim=1))


def union_add(one: SparseTensor, other: SparseTensor) -> SparseTensor:
    """The sum over the voxels of both; also written `one + other`.

    The rows of `one` come first, then the voxels that only `other` has.

    >>> one = SparseTensor(torch.tensor([[1.0], [2.0]]), torch.tensor([[0, 0, 0], [0, 0, 1]]))
    >>> other = SparseTensor(torch.tensor([[5.0], [9.0]]), torch.tensor([[0, 0, 1], [0, 7, 7]]))
    >>> both = one + other
    >>> both.features.tolist(), both.coords.tolist()
    ([[1.0], [7.0], [9.0]], [[0, 0, 0], [0, 0, 1], [0, 7, 7]])
    """
    require_sparse(one, "one"), require_sparse(other, "other")
    if one.num_channels != other.num_channels:
        raise ValueError(f"other: expected {one.num_channels} channels, got {other.num_channels}")
    if one.stride != other.stride:
        raise ValueError(f"other: expected stride {one.stride}, got {other.stride}")
    if _same_voxels(one, other):
        return one.with_features(one.features + other.features)
    number = one.maps.number_of(other.coords, other.stride, other.spatial_shape)
    site, rows = one.maps.union(one.site, number)
    features = torch.cat([one.features, other.features])
    out = features.new_zeros(one.maps[site].coords.shape[0], one.num_channels)
    return one.moved(out.index_add(0, like_rows(rows, features), features), site)


def to_dense(
    x: SparseTensor,
    spatial_shape: int | Sequence[int] | None = None,
    origin: int | Sequence[int] = 0,
) -> torch.Tensor:
    """A grid [batch size, C, *spatial_shape] with zeros where there is no voxel.

    `spatial_shape` defaults to the tensor's, `origin` is the voxel of the grid's first cell. A
    voxel outside of the grid is a ValueError. Differentiable.

    >>> x = SparseTensor(torch.tensor([[7.0]]), torch.tensor([[0, 1, 2]]))
    >>> to_dense(x, (2, 3)).tolist()
    [[[[0.0, 0.0, 0.0], [0.0, 0.0, 7.0]]]]
    """
    require_sparse(x, "x")
    given = x.spatial_shape if spatial_shape is None else spatial_shape
    if given is None:
        raise ValueError("spatial_shape: expected the shape of the grid, because x has none")
    shape = axis_ints(given, x.axes, "spatial_shape")
    first = [origin] * x.axes if isinstance(origin, int) else list(origin)
    cells = x.coords.long() - torch.tensor([0, *first], device=x.coords.device)
    limits = torch.tensor([x.batch_size, *shape], device=cells.device)
    outside = ((cells < 0) | (cells >= limits)).any(dim=1)
    if outside.any():
        row = int(outside.nonzero()[0, 0])
        raise ValueError(
            f"spatial_shape: expected a grid with all voxels, got {tuple(shape)} from "
            f"{tuple(first)} on, but row {row} is {x.coords[row].tolist()}"
        )
    grid = x.features.new_zeros(x.batch_size, *shape, x.num_channels)
    places = tuple(like_rows(column, x.features) for column in cells.unbind(1))
    return grid.index_put(places, x.features).movedim(-1, 1)


class SparseToDense(SparseLayer):
    """`to_dense` as a layer, for the end of a sequence.

    >>> x = SparseTensor(torch.ones(1, 4), torch.tensor([[0, 1, 2]]), spatial_shape=(2, 3))
    >>> torch.nn.Sequential(SparseToDense(), torch.nn.Conv2d(4, 8, 1))(x).shape
    torch.Size([1, 8, 2, 3])
    """

    def __init__(
        self, spatial_shape: int | Sequence[int] | None = None, origin: int | Sequence[int] = 0
    ) -> None:
        super().__init__()
        self.spatial_shape = spatial_shape
        self.origin = origin

    def run(self, x: SparseTensor) -> torch.Tensor:
        """The grid of a SparseTensor."""
        return to_dense(x, self.spatial_shape, self.origin)

    def extra_repr(self) -> str:
        """The text in parentheses that print(module) shows."""
        return "" if self.spatial_shape is None else f"{self.spatial_shape}, origin={self.origin}"


def from_dense(grid: torch.Tensor, mask: torch.Tensor | None = None) -> SparseTensor:
    """The cells of a grid [B, C, *axes] as a SparseTensor, in the order of the cells.

    `mask`, bool [B, *axes], says which; None takes those with a channel that is not zero.
    Differentiable.

    >>> from_dense(torch.tensor([[[[0.0, 0.0], [0.0, 7.0]]]])).coords.tolist()
    [[0, 1, 1]]
    """
    require_memory(grid, "grid")
    if not 4 <= grid.ndim <= 8:
        raise ValueError(f"grid: expected shape (B, C, 2 to 6 axes), got {tuple(grid.shape)}")
    shape = (grid.shape[0], *grid.shape[2:])
    keep = (grid != 0).any(dim=1) if mask is None else mask
    if keep.dtype != torch.bool or tuple(keep.shape) != shape:
        raise ValueError(f"mask: expected bool {shape}, got {keep.dtype} {tuple(keep.shape)}")
    cells = keep.nonzero()
    features = grid.movedim(1, -1)[tuple(cells.unbind(1))]
    coords = cells.to(torch.int32)
    return SparseTensor(features, coords, spatial_shape=shape[1:], batch_size=shape[0])


def sparse_collate(
    coords: Sequence[torch.Tensor], features: Sequence[torch.Tensor]
) -> SparseTensor:
    """One SparseTensor of several items: coordinates [n, D] and features [n, C] of each.

    >>> one = torch.tensor([[1, 1], [2, 2]])
    >>> sparse_collate([one, one], [torch.ones(2, 3)] * 2).coords.tolist()
    [[0, 1, 1], [0, 2, 2], [1, 1, 1], [1, 2, 2]]
    """
    if len(coords) != len(features) or not len(coords):
        raise ValueError(
            f"features: expected one per item of coords, 1 or more, got {len(features)} for "
            f"{len(coords)}"
        )
    rows = []
    for item, (cells, values) in enumerate(zip(coords, features, strict=True)):
        require_memory(cells, f"coords[{item}]")
        require_memory(values, f"features[{item}]")
        if cells.ndim != 2 or values.ndim != 2 or len(cells) != len(values):
            raise ValueError(
                f"features[{item}]: expected one row per row of coords[{item}], got shapes "
                f"{tuple(values.shape)} and {tuple(cells.shape)}"
            )
        rows.append(torch.nn.functional.pad(cells, (1, 0), value=item))
    joined = torch.cat(rows)
    return SparseTensor(torch.cat(list(features)), joined, batch_size=len(coords))


def require_sparse(x: SparseTensor, argument: str) -> SparseTensor:
    """The tensor itself; TypeError for anything else."""
    if not isinstance(x, SparseTensor):
        raise TypeError(f"{argument}: expected a SparseTensor, got {type(x).__name__}")
    return x


def _same_voxels(one: SparseTensor, other: SparseTensor) -> bool:
    if one.maps is other.maps and one.site == other.site:
        return True
    if one.stride != other.stride or one.coords.shape != other.coords.shape:
        return False
    return one.coords is other.coords or bool((one.coords == other.coords).all())
