"""Sampling and splatting against grid_sample and its gradients, and voxelize with gradients."""

import pytest

pytest.importorskip("torch")

import torch
from dense_oracle import dense, same_with_gradients, tensor
from torch.nn import functional as F

import tensorhash
from tensorhash.torch import (
    SparseMaxPool,
    SparseTensor,
    sample_nearest,
    sample_trilinear,
    splat_trilinear,
    voxelize,
)

EXTENT = 10


def points(seed, count=60, low=-1.0, high=11.0, axes=3):
    generator = torch.Generator().manual_seed(seed)
    made = torch.rand(count, axes, generator=generator, dtype=torch.float64) * (high - low) + low
    batch = torch.randint(0, 2, (count,), generator=generator)
    return made.requires_grad_(), batch


def grid_sample(grid, where, batch, mode):
    """torch's grid_sample at points in units of voxels, one item at a time."""
    extent = grid.shape[-1]
    rows = grid.new_zeros(len(where), grid.shape[1])
    for item in range(grid.shape[0]):
        here = torch.nonzero(batch == item)[:, 0]
        unit = (where[here] * 2 / extent - 1).flip(1)  # grid_sample wants the last axis first
        shape = (1, len(here), *[1] * (grid.ndim - 3), grid.ndim - 2)
        found = F.grid_sample(grid[item : item + 1], unit.view(shape), mode, align_corners=False)
        rows = rows.index_add(0, here, found.reshape(grid.shape[1], -1).T)
    return rows


@pytest.mark.parametrize("axes", [2, 3])
def test_trilinear_samples_are_those_of_grid_sample(axes):
    x = tensor(1, axes=axes, count=250, high=EXTENT)
    where, batch = points(2, axes=axes)
    got = sample_trilinear(x, where, batch)
    expected = grid_sample(dense(x, EXTENT), where, batch, "bilinear")
    same_with_gradients(got, expected, [x.features, where])


def test_nearest_samples_are_those_of_grid_sample():
    x = tensor(3, count=250, high=EXTENT)
    where, batch = points(4)
    got = sample_nearest(x, where, batch)
    expected = grid_sample(dense(x, EXTENT), where, batch, "nearest")
    same_with_gradients(got, expected, [x.features])
    assert (got != 0).any()


def test_normalized_samples_ignore_absent_voxels():
    x = tensor(5, count=250, high=EXTENT)
    where, batch = points(6)
    ones = x.with_features(torch.ones_like(x.features))
    got = sample_trilinear(x, where, batch, normalize=True)
    weights = grid_sample(dense(ones, EXTENT), where, batch, "bilinear")
    total = grid_sample(dense(x, EXTENT), where, batch, "bilinear")
    expected = total / torch.where(weights > 0, weights, 1)
    same_with_gradients(got, expected, [x.features, where])
    constant = sample_trilinear(ones, where, batch, normalize=True)
    assert set(constant.detach().round(decimals=9).unique().tolist()) <= {0.0, 1.0}


def test_a_stride_scales_the_points():
    x = tensor(7, count=250, high=EXTENT)
    y = SparseMaxPool(2)(x)
    where, batch = points(8)
    plain = SparseTensor(y.features, y.coords)
    got = sample_trilinear(y, where, batch)
    torch.testing.assert_close(got, sample_trilinear(plain, where / 2, batch))


def test_gradcheck_of_samples_and_splats():
    x = tensor(9, channels=2, count=40, high=4)
    where, batch = points(10, count=6, low=0.0, high=4.0)
    values = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)

    for normalize in (False, True):

        def sample(f, p, normalize=normalize):
            return sample_trilinear(x.with_features(f), p, batch, normalize=normalize)

        def splat(f, p, normalize=normalize):
            return splat_trilinear(f, p, batch, like=x, normalize=normalize).features

        assert torch.autograd.gradcheck(sample, (x.features, where))
        assert torch.autograd.gradcheck(splat, (values, where))


def test_a_splat_is_the_transpose_of_a_sample():
    x = tensor(11, count=250, high=EXTENT)
    where, batch = points(12)
    values = torch.randn(len(where), 3, dtype=torch.float64, requires_grad=True)
    splat = splat_trilinear(values, where, batch, like=x)
    direction = torch.randn_like(splat.features)
    sampled = sample_trilinear(x.with_features(direction), where, batch)
    leaves = [values, where]
    same_with_gradients((splat.features * direction).sum(), (sampled * values).sum(), leaves)
    # Without `like`, nothing is lost.
    whole = splat_trilinear(values, where, batch)
    torch.testing.assert_close(whole.features.sum(0), values.sum(0))
    again = splat_trilinear(values, where, batch, like=whole)
    torch.testing.assert_close(again.features, whole.features)
    weights = splat_trilinear(torch.ones_like(values), where, batch, normalize=True).features
    torch.testing.assert_close(weights, torch.ones_like(weights))


@pytest.mark.parametrize("reduce", ["mean", "max", "sum"])
def test_voxelize_has_the_values_of_coords_and_gradients(reduce):
    where, batch = points(13, high=4.0)
    values = torch.randn(len(where), 2, dtype=torch.float64, requires_grad=True)
    made = voxelize(values, where, 0.7, batch, reduce, 0.1)
    expected = tensorhash.coords.voxelize(where.detach(), 0.7, 0.1, reduce, values.detach(), batch)
    assert torch.equal(made.tensor.coords, expected.coords)
    assert torch.equal(made.inverse, expected.inverse) and torch.equal(made.counts, expected.counts)
    torch.testing.assert_close(made.tensor.features, expected.features)
    run = lambda f: voxelize(f, where, 0.7, batch, reduce, 0.1).tensor.features  # noqa: E731
    assert torch.autograd.gradcheck(run, values)


def test_points_are_checked():
    x = tensor(14)
    with pytest.raises(ValueError, match=r"points: expected shape \(P, 3\), got \(1, 2\)"):
        sample_nearest(x, torch.zeros(1, 2))
    with pytest.raises(TypeError, match="points: expected a float dtype, got torch.int64"):
        sample_nearest(x, torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="points: expected finite numbers"):
        sample_trilinear(x, torch.full((1, 3), torch.nan))
    with pytest.raises(ValueError, match="batch: expected 1 integers"):
        sample_trilinear(x, torch.zeros(1, 3), torch.zeros(2, dtype=torch.int64))
    for call in (sample_nearest, sample_trilinear):  # it would become item 0
        with pytest.raises(ValueError, match="batch: row 0: expected a number that fits int32"):
            call(x, torch.zeros(1, 3), torch.tensor([2**32]))
    for narrow in (torch.uint8, torch.int16):
        assert len(sample_nearest(x, torch.zeros(1, 3), torch.tensor([1], dtype=narrow))) == 1
    with pytest.raises(TypeError, match="x: expected a SparseTensor, got Tensor"):
        sample_nearest(torch.zeros(3), torch.zeros(1, 3))
    far = torch.tensor([[1e30, 0.0, 0.0], [-1e30, 0.0, 0.0]], dtype=torch.float64)
    assert (sample_trilinear(x, far) == 0).all() and (sample_nearest(x, far) == 0).all()
    with pytest.raises(ValueError, match="points: expected voxels within int32"):
        splat_trilinear(torch.ones(2, 1), far)
    assert sample_trilinear(x, torch.zeros(0, 3)).shape == (0, 3)
