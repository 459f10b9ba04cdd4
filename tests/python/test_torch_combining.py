"""Joining sparse tensors, dense grids, and layers that drop, split and merge voxels."""

import pytest

pytest.importorskip("torch")

import torch
from dense_oracle import at, dense, rows_of, same_with_gradients, tensor, voxels

from tensorhash.torch import (
    SparseChannelToSpace,
    SparseConv3d,
    SparsePrune,
    SparseSpaceToChannel,
    SparseSubdivide,
    SparseTensor,
    SparseToDense,
    cat,
    from_dense,
    sparse_collate,
    to_dense,
    union_add,
)


def test_a_union_is_the_sum_of_the_dense_grids():
    one, other = tensor(1), tensor(2)
    both = one + other
    assert rows_of(both.coords) == rows_of(one.coords) | rows_of(other.coords)
    assert torch.equal(both.coords[: len(one)], one.coords)
    expected = at(dense(one, 8) + dense(other, 8), both.coords)
    same_with_gradients(both.features, expected, [one.features, other.features])
    again = union_add(one, other)
    assert again.site == both.site  # the voxels of the union are made once
    layer = SparseConv3d(3, 3, 3).double()
    layer(both), layer(again)
    assert len(one.maps) == 1


def test_a_sum_at_the_same_voxels_keeps_them():
    one = tensor(3)
    other = SparseTensor(one.features * 2, one.coords.clone())
    assert (one + other).coords is one.coords
    assert torch.equal((one + other).features, 3 * one.features)


def test_cat_joins_channels_of_the_same_voxels_only():
    one = tensor(4)
    other = SparseTensor(one.features[:, :1], one.coords.clone())
    assert torch.equal(
        cat([one, other]).features, torch.cat([one.features, one.features[:, :1]], 1)
    )
    with pytest.raises(ValueError, match=r"tensors\[1\]: expected the voxels of tensors\[0\]"):
        cat([one, SparseTensor(one.features, one.coords.flip(0))])
    with pytest.raises(TypeError, match=r"tensors\[1\]: expected a SparseTensor, got Tensor"):
        cat([one, one.features])
    with pytest.raises(ValueError, match="tensors: expected one or more"):
        cat([])
    with pytest.raises(ValueError, match="other: expected 3 channels, got 1"):
        one + other
    with pytest.raises(ValueError, match="other: expected stride"):
        one + SparseTensor(one.features, one.coords, 2)


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_to_dense_and_back(axes):
    x = tensor(5, axes=axes)
    grid = to_dense(x, 8)
    same_with_gradients(grid, dense(x, 8), [x.features])
    back = from_dense(grid)
    assert back.spatial_shape == (8,) * axes and back.batch_size == 2
    assert rows_of(back.coords) == rows_of(x.coords)
    same_with_gradients(to_dense(back), grid, [x.features])
    moved = to_dense(x, 9, origin=-1)
    assert torch.equal(moved[(..., *[slice(1, None)] * axes)], grid)
    assert torch.equal(torch.nn.Sequential(SparseToDense(9, -1))(x), moved)
    assert torch.equal(SparseToDense()(back), grid)
    assert repr(SparseToDense(9, -1)) == "SparseToDense(9, origin=-1)"
    whole = from_dense(grid, torch.ones(2, *[8] * axes, dtype=torch.bool))
    assert len(whole) == 2 * 8**axes
    with pytest.raises(ValueError, match="spatial_shape: expected a grid with all voxels"):
        to_dense(x, 3)
    with pytest.raises(ValueError, match="spatial_shape: expected the shape of the grid"):
        to_dense(x)
    with pytest.raises(ValueError, match="mask: expected bool"):
        from_dense(grid, torch.ones(2, dtype=torch.bool))


def test_collate_numbers_the_items():
    rows = [voxels(n, count=10 + n)[:, 1:] for n in range(3)]
    values = [torch.randn(len(row), 2) for row in rows]
    x = sparse_collate(rows, values)
    assert x.batch_size == 3
    for item, (features, coords) in enumerate(x.items()):
        assert torch.equal(features, values[item]) and torch.equal(coords, rows[item])
    with pytest.raises(ValueError, match="features: expected one per item"):
        sparse_collate(rows, values[1:])
    with pytest.raises(ValueError, match=r"features\[0\]: expected one row per row"):
        sparse_collate(rows, values[::-1])


def test_pruning_keeps_the_rows_of_the_mask():
    x = tensor(6)
    mask = x.features[:, 0] > 0
    y = SparsePrune()(x, mask)
    assert torch.equal(y.features, x.features[mask]) and torch.equal(y.coords, x.coords[mask])
    features, coords = SparsePrune()(x.features, x.coords, mask)
    assert torch.equal(features, y.features) and torch.equal(coords, y.coords)
    with pytest.raises(ValueError, match="mask: expected bool of shape"):
        SparsePrune()(x, mask[1:])


@pytest.mark.parametrize("factor", [2, (1, 3, 2)], ids=str)
def test_subdividing_repeats_each_voxel(factor):
    x = tensor(7, count=20)
    y = SparseSubdivide(factor)(x)
    steps = (factor,) * 3 if isinstance(factor, int) else factor
    grid = dense(x, 8)
    for axis, step in enumerate(steps):
        grid = grid.repeat_interleave(step, axis + 2)
    assert rows_of(y.coords) == rows_of(from_dense(grid).coords)
    same_with_gradients(y.features, at(grid, y.coords), [x.features])


@pytest.mark.parametrize("factor", [2, 3, (1, 3, 4)], ids=str)
def test_space_to_channel_is_that_of_the_dense_grid(factor):
    x = tensor(8)
    layer = SparseSpaceToChannel(factor)
    y = layer(x)
    f = (factor,) * 3 if isinstance(factor, int) else factor
    grid = dense(x, 12).reshape(2, 3, 12 // f[0], f[0], 12 // f[1], f[1], 12 // f[2], f[2])
    merged = grid.permute(0, 3, 5, 7, 1, 2, 4, 6).flatten(1, 4)
    same_with_gradients(y.features, at(merged, y.coords), [x.features])
    back = SparseChannelToSpace(factor)(y)
    assert back.coords is x.coords
    same_with_gradients(back.features, x.features * 1, [x.features])
    whole = SparseChannelToSpace(factor, generative=True)(y)
    assert len(whole) == len(y) * f[0] * f[1] * f[2]
    torch.testing.assert_close(dense(whole, 12), dense(x, 12))
    with pytest.raises(ValueError, match="features: expected a multiple of 8 channels, got 3"):
        SparseChannelToSpace(2)(x)
