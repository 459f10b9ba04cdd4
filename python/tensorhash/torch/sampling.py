"""Features at points: nearest voxel, interpolation, splatting and voxelization, with gradients."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from tensorhash import coords as _coords
from tensorhash.coords import unique_coords
from tensorhash.torch._checks import require_memory, require_reduction, wide
from tensorhash.torch._layers import like_rows
from tensorhash.torch._map_cache import where_tables_are
from tensorhash.torch.combining import require_sparse
from tensorhash.torch.functional import joined_rows
from tensorhash.torch.sparse_tensor import SparseTensor


def sample_nearest(
    x: SparseTensor, points: torch.Tensor, batch: torch.Tensor | None = None
) -> torch.Tensor:
    """The features of the voxel that each point lies in; zeros where there is no voxel.

    `points` is [P, D] in units of the finest grid: voxel v of a tensor with stride 1 is the cell
    from v to v + 1. `batch` is the item of each point (default: item 0). Differentiable in the
    features.

    >>> x = SparseTensor(torch.tensor([[5.0], [7.0]]), torch.tensor([[0, 0, 0], [0, 0, 1]]))
    >>> sample_nearest(x, torch.tensor([[0.2, 1.9], [0.2, 2.0]])).tolist()
    [[7.0], [0.0]]
    """
    cells = _cells(x, points)
    rows = _find(x, torch.floor(cells.detach()), _items(points, batch))
    return _rows_or_zero(x.features, rows)


def sample_trilinear(
    x: SparseTensor,
    points: torch.Tensor,
    batch: torch.Tensor | None = None,
    *,
    normalize: bool = False,
) -> torch.Tensor:
    """The features at points, linear between the centres of voxels, along any number of axes.

    `points` and `batch` are those of `sample_nearest`: the centre of voxel v is v + 0.5. Absent
    voxels count as zeros; with `normalize=True` they do not count, and the weights of the others
    are divided by their sum. Differentiable in features and points.

    >>> x = SparseTensor(torch.tensor([[5.0], [7.0]]), torch.tensor([[0, 0, 0], [0, 0, 1]]))
    >>> sample_trilinear(x, torch.tensor([[0.5, 1.0]])).tolist()
    [[6.0]]
    """
    items, cells = _items(points, batch), _cells(x, points)
    total = x.features.new_zeros(len(points), x.num_channels)
    weights = x.features.new_zeros(len(points))
    for corner, weight in _corners(cells):
        rows = _find(x, corner, items)
        weight = weight.to(x.dtype)
        total = total + _rows_or_zero(x.features, rows) * weight[:, None]
        weights = weights + torch.where(like_rows(rows, x.features) >= 0, weight, 0)
    return _divided(total, weights) if normalize else total


def splat_trilinear(
    features: torch.Tensor,
    points: torch.Tensor,
    batch: torch.Tensor | None = None,
    *,
    like: SparseTensor | None = None,
    normalize: bool = False,
) -> SparseTensor:
    """Distributes the features [P, C] of points over the voxels around them; sums per voxel.

    The transpose of `sample_trilinear`, with the same weights. The voxels are those of `like`, and
    parts of other voxels are lost; None makes all voxels with a weight above zero. With
    `normalize=True` each sum is divided by the sum of its weights. Differentiable in features and
    points.

    >>> x = splat_trilinear(torch.tensor([[8.0]]), torch.tensor([[0.5, 0.75]]))
    >>> x.coords.tolist(), x.features.tolist()
    ([[0, 0, 0], [0, 0, 1]], [[6.0], [2.0]])
    """
    require_memory(features, "features")
    if features.ndim != 2 or len(features) != len(points):
        raise ValueError(
            f"features: expected shape ({len(points)}, channels), one row per point, "
            f"got {tuple(features.shape)}"
        )
    items = _items(points, batch)
    cells = _points(points, None) if like is None else _cells(like, points)
    corners = list(_corners(cells))
    target = _touched(corners, items) if like is None else like
    given = wide(features)
    out = given.new_zeros(len(target), features.shape[1])
    weights = given.new_zeros(len(target))
    for corner, weight in corners:
        rows = like_rows(_find(target, corner, items), features)
        part = torch.where(rows >= 0, weight.to(given.dtype), 0)
        rows = rows.clamp(min=0)
        if len(target):
            out = out.index_add(0, rows, given * part[:, None])
            weights = weights.index_add(0, rows, part)
    out = _divided(out, weights) if normalize else out
    return target.with_features(out.to(features.dtype))


class Voxelized(NamedTuple):
    """Points as voxels: the tensor, the voxel of each point, and the number of points of each.

    >>> voxelize(torch.ones(1, 1), torch.tensor([[0.1, 0.1]]), 0.5).counts.tolist()
    [1]
    """

    tensor: SparseTensor
    inverse: torch.Tensor  #: int64 [P]: the row of the tensor
    counts: torch.Tensor  #: int64 [N]: points per voxel


def voxelize(
    features: torch.Tensor,
    points: torch.Tensor,
    voxel_size: float | Sequence[float],
    batch: torch.Tensor | None = None,
    reduce: str = "mean",
    origin: float | Sequence[float] = 0.0,
) -> Voxelized:
    """The occupied voxels of points [P, D], with the features [P, C] reduced per voxel.

    `tensorhash.coords.voxelize` with gradients: `reduce` is "mean", "max" or "sum". Voxels are in
    order of first occurrence. `features[inverse]` brings features of voxels back to the points.

    >>> points = torch.tensor([[0.1, 0.1], [0.2, 0.3], [0.9, 0.1]])
    >>> made = voxelize(torch.tensor([[1.0], [3.0], [5.0]]), points, 0.5)
    >>> made.tensor.coords.tolist(), made.tensor.features.tolist(), made.inverse.tolist()
    ([[0, 0, 0], [0, 1, 0]], [[2.0], [5.0]], [0, 0, 1])
    """
    require_reduction(reduce, "reduce")
    require_memory(features, "features")
    items = where_tables_are(_items(_points(points, None), batch))
    if features.ndim != 2 or len(features) != len(points):
        raise ValueError(
            f"features: expected shape ({len(points)}, channels), one row per point, "
            f"got {tuple(features.shape)}"
        )
    where = where_tables_are(points.detach())
    made = _coords.voxelize(where, voxel_size, origin, batch=items, features=items, reduce="first")
    parts = made.coords, made.inverse, made.counts
    coords, inverse, counts = (torch.as_tensor(part) for part in parts)
    rows = like_rows(inverse, features)
    out = joined_rows(features, rows, len(coords), reduce)
    return Voxelized(SparseTensor(out, coords.to(features.device)), rows, counts.to(rows.device))


def _points(points: torch.Tensor, axes: int | None) -> torch.Tensor:
    require_memory(points, "points")
    if not points.is_floating_point():
        raise TypeError(f"points: expected a float dtype, got {points.dtype}")
    expected = "D" if axes is None else axes
    if points.ndim != 2 or (axes is not None and points.shape[1] != axes):
        raise ValueError(f"points: expected shape (P, {expected}), got {tuple(points.shape)}")
    if not bool(torch.isfinite(points.detach()).all()):
        raise ValueError("points: expected finite numbers, got NaN or infinity")
    return points


def _cells(x: SparseTensor, points: torch.Tensor) -> torch.Tensor:
    """The points in units of the tensor's own voxels."""
    require_sparse(x, "x")
    steps = [float(step) for step in x.stride]
    return _points(points, x.axes) / points.new_tensor(steps)


def _items(points: torch.Tensor, batch: Any) -> torch.Tensor:
    if batch is None:
        return torch.zeros(len(points), dtype=torch.int32, device=points.device)
    require_memory(batch, "batch")
    if batch.is_floating_point() or tuple(batch.shape) != (len(points),):
        raise ValueError(
            f"batch: expected {len(points)} integers, one per point, got {batch.dtype} of shape "
            f"{tuple(batch.shape)}"
        )
    limits, items = torch.iinfo(torch.int32), batch.long()
    beyond = (items < limits.min) | (items > limits.max)
    if bool(beyond.any()):
        row = int(beyond.nonzero()[0, 0])
        raise ValueError(
            f"batch: row {row}: expected a number that fits int32, got {int(items[row])}"
        )
    return items


def _corners(cells: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """(voxels, weights) of the 2^D voxels with centres around each point."""
    low = torch.floor(cells.detach() - 0.5)
    part = cells - 0.5 - low
    for bits in itertools.product((0, 1), repeat=cells.shape[1]):
        step = cells.new_tensor(bits)
        weight = torch.where(step > 0, part, 1 - part).prod(dim=1)
        yield low + step, weight


def _find(x: SparseTensor, cells: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
    """int64 [P]: the row of each voxel, or -1."""
    limits = torch.iinfo(torch.int32)
    inside = ((cells >= limits.min) & (cells <= limits.max)).all(dim=1)
    cells = torch.where(inside[:, None], cells, 0).to(torch.int64)
    queries = torch.cat([items[:, None].to(cells), cells], dim=1)
    queries = where_tables_are(queries.to(x.coords.device, x.coords.dtype))
    rows = torch.as_tensor(x.maps.table(x.site).search(queries))
    return torch.where(inside.to(rows.device), rows.long(), -1)


def _touched(corners: list[tuple[torch.Tensor, torch.Tensor]], items: torch.Tensor) -> SparseTensor:
    """A tensor without channels at all voxels with a weight."""
    rows = []
    limits = torch.iinfo(torch.int32)
    for cells, weight in corners:
        keep = weight.detach() > 0
        if bool(((cells < limits.min) | (cells > limits.max)).any()):
            raise ValueError("points: expected voxels within int32")
        rows.append(torch.cat([items[:, None].int(), cells.int()], dim=1)[keep])
    coords = torch.as_tensor(unique_coords(where_tables_are(torch.cat(rows))))
    nothing = torch.empty(len(coords), 0, device=items.device)
    return SparseTensor(nothing, coords.to(items.device))


def _rows_or_zero(features: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    rows = like_rows(rows, features)
    if not len(features):
        return features.new_zeros(len(rows), features.shape[1])
    found = features.index_select(0, rows.clamp(min=0))
    return torch.where(rows[:, None] >= 0, found, 0)


def _divided(total: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The sums divided by their weights; zero where the weight is zero."""
    safe = torch.where(weights > 0, weights, 1)
    return total / safe[:, None]
