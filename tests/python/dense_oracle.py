"""Sparse tensors as dense grids, for comparison with torch's dense operators."""

import torch

from tensorhash.torch import SparseTensor


def voxels(seed, axes=3, count=120, low=0, high=8, batches=2):
    """Distinct random coordinates in random order, int32 [N, 1 + axes]."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(low, high, (count, 1 + axes), generator=generator, dtype=torch.int32)
    rows[:, 0] = torch.randint(0, batches, (count,), generator=generator)
    rows = torch.unique(rows, dim=0)
    return rows[torch.randperm(len(rows), generator=generator)]


def tensor(seed, channels=3, axes=3, dtype=torch.float64, **options):
    """A SparseTensor with random features that need a gradient."""
    coords = voxels(seed, axes, **options)
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(len(coords), channels, generator=generator, dtype=torch.float64)
    return SparseTensor(features.to(dtype).requires_grad_(), coords)


def dense(x, extent, fill=0.0, low=0):
    """[batches, channels, *axes] with `fill` where there is no voxel; a gradient flows back."""
    shape = (2, *[extent] * x.axes, x.num_channels)
    grid = torch.full(shape, fill, dtype=x.dtype)
    places = tuple((x.coords.long() - torch.tensor([0, *[low] * x.axes])).unbind(1))
    return grid.index_put(places, x.features).movedim(-1, 1)


def at(grid, coords, low=0):
    """The rows of a dense grid at coordinates."""
    places = coords.long() - torch.tensor([0, *[low] * (coords.shape[1] - 1)])
    return grid.movedim(1, -1)[tuple(places.unbind(1))]


def same_with_gradients(got, expected, leaves):
    """Both results and their gradients in a random direction are equal."""
    torch.testing.assert_close(got, expected)
    direction = torch.randn_like(expected)
    mine = torch.autograd.grad(got, leaves, direction, retain_graph=True, allow_unused=True)
    theirs = torch.autograd.grad(expected, leaves, direction, allow_unused=True)
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other)


def rows_of(coords):
    """The set of rows, which must be distinct."""
    rows = {tuple(row) for row in coords.tolist()}
    assert len(rows) == len(coords)
    return rows
