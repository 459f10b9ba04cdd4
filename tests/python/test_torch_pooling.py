"""Pooling, unpooling and global pooling against torch's dense pooling."""

import pytest

pytest.importorskip("torch")

import torch
from dense_oracle import at, dense, same_with_gradients, tensor
from torch.nn import functional as F

from tensorhash.torch import (
    SparseAvgPool,
    SparseChannelToSpace,
    SparseGlobalPool,
    SparseMaxPool,
    SparseSpaceToChannel,
    SparseSumPool,
    SparseTensor,
    SparseUnpool,
    splat_trilinear,
    stride_features,
    voxelize,
)

POOLS = {"max": SparseMaxPool, "mean": SparseAvgPool, "sum": SparseSumPool}
SHAPES = [(2, 2), (3, 3), (3, 2), (3, 1), (2, 1), (1, 2), ((2, 3, 1), (2, 1, 3))]


def dense_pool(x, reduce, kernel, stride, padding=0):
    """The dense pooling over voxels that are there, with a border that keeps the last kernels."""
    size = kernel if isinstance(kernel, tuple) else (kernel,) * 3
    pads = [n for k in reversed(size) for n in (padding, k)]
    if reduce == "max":
        return F.max_pool3d(F.pad(dense(x, 9, -torch.inf), pads, value=-torch.inf), size, stride)
    sums = F.avg_pool3d(F.pad(dense(x, 9), pads), size, stride, divisor_override=1)
    if reduce == "sum":
        return sums
    there = dense(x.with_features(torch.ones_like(x.features)), 9)
    return sums / F.avg_pool3d(F.pad(there, pads), size, stride, divisor_override=1).clamp(min=1)


@pytest.mark.parametrize("reduce", POOLS)
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize(("kernel", "stride"), SHAPES, ids=str)
def test_a_pooling_is_the_dense_one(reduce, kernel, stride, padding):
    x = tensor(1, high=9)
    y = POOLS[reduce](kernel, stride, padding=padding)(x)
    expected = at(dense_pool(x, reduce, kernel, stride, padding), y.coords)
    # Kernels may step over all voxels of an output: it is zero then.
    expected = torch.where(expected == -torch.inf, 0, expected)
    same_with_gradients(y.features, expected, [x.features])


def test_a_dilated_pooling_is_torchs():
    x = tensor(6, high=9)
    y = SparseMaxPool(2, 1, dilation=3)(x)
    grid = F.pad(dense(x, 9, -torch.inf), [0, 3] * 3, value=-torch.inf)
    expected = at(F.max_pool3d(grid, 2, 1, dilation=3), y.coords)
    same_with_gradients(y.features, torch.where(expected == -torch.inf, 0, expected), [x.features])
    with pytest.raises(TypeError, match="positional arguments"):
        SparseMaxPool(3, 2, 1)  # torch's third argument is the padding


@pytest.mark.parametrize("reduce", POOLS)
def test_a_pooling_with_padding_at_spconvs_voxels(reduce):
    x = tensor(2, high=9)
    y = POOLS[reduce](3, 2, padding=2, out_sites="reached")(x)
    inside = (y.coords[:, 1:] < 6).all(1)  # the dense grid ends there
    expected = at(dense_pool(x, reduce, 3, 2, 2), y.coords[inside])
    same_with_gradients(y.features[inside], expected, [x.features])
    assert inside.sum() > 50


def test_equal_maxima_share_the_gradient_and_nan_wins():
    coords = torch.tensor([[0, 0, 0, 1], [0, 0, 0, 0], [0, 4, 4, 4], [0, 4, 4, 5]])
    features = torch.tensor([[3.0], [3.0], [torch.nan], [1.0]], requires_grad=True)
    out = SparseMaxPool(2)(features, coords)[0]
    assert out[0].item() == 3 and out[1].isnan().item()
    assert torch.autograd.grad(out.nansum(), features)[0].tolist()[:2] == [[0.5], [0.5]]


@pytest.mark.parametrize("reduce", POOLS)
def test_gradcheck(reduce):
    x = tensor(3, channels=2, count=15, high=4)
    pool = POOLS[reduce](3, 2)
    pool(x)  # makes the map
    run = lambda f: pool(x.with_features(f)).features  # noqa: E731
    assert torch.autograd.gradcheck(run, x.features)
    assert torch.autograd.gradgradcheck(run, x.features)


@pytest.mark.parametrize("kernel", [2, 3])
def test_unpooling_gives_each_voxel_the_coarse_voxels_that_saw_it(kernel):
    x = tensor(5)
    y = SparseMaxPool(kernel, 2)(x)
    z = SparseUnpool(kernel, 2)(y)
    assert z.coords is x.coords
    weight = torch.ones(1, 1, *[kernel] * 3, dtype=torch.float64).repeat(3, 1, 1, 1, 1)
    grid = F.conv_transpose3d(dense(y, 8), weight, stride=2, groups=3)
    expected = at(grid, x.coords)
    same_with_gradients(z.features, expected, [x.features])
    again = SparseUnpool(kernel, 2)(y.features, y.coords, x.coords)[0]
    torch.testing.assert_close(again, z.features)
    with pytest.raises(ValueError, match="out_coords: expected the output coordinates"):
        SparseUnpool(2)(y.features, y.coords)


@pytest.mark.parametrize("reduce", POOLS)
def test_global_pooling_is_a_reduction_per_item(reduce):
    features = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    coords = torch.tensor([[0, 1, 1], [2, 1, 1], [0, 2, 1], [2, 3, 3], [2, 4, 4]])
    x = SparseTensor(features, coords, batch_size=4)
    ways = {"max": torch.amax, "mean": torch.mean, "sum": torch.sum}
    zeros = torch.zeros(2, dtype=torch.float64)
    items = [ways[reduce](features[rows], 0) for rows in ([0, 2], [1, 3, 4])]
    expected = torch.stack([items[0], zeros, items[1], zeros])
    got = SparseGlobalPool(reduce)(x)
    same_with_gradients(got, expected, [features])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_summed_in_floats(dtype):
    """torch adds in the dtype of the rows: a sum of ones stops at 2048, or at 256."""
    coords = torch.cartesian_prod(*[torch.arange(n, dtype=torch.int32) for n in (1, 17, 17, 17)])
    ones, whole = torch.ones(17**3, 2, dtype=dtype), torch.tensor([[17.0**3] * 2]).to(dtype)
    x, mean = SparseTensor(ones.requires_grad_(), coords), torch.ones(1, 2, dtype=dtype)
    points = torch.full((17**3, 3), 0.5)
    for got, wanted in (
        (SparseSumPool(17)(x).features, whole),
        (SparseAvgPool(17)(x).features, mean),
        (SparseGlobalPool("sum")(x), whole),
        (SparseGlobalPool("mean")(x), mean),
        (stride_features(ones, coords, 17, "sum")[0], whole),
        (stride_features(ones, coords, 17, "mean")[0], mean),
        (voxelize(ones, points, 1.0, reduce="sum").tensor.features, whole),
        (voxelize(ones, points, 1.0).tensor.features, mean),
        (splat_trilinear(ones, points).features, whole),
    ):
        assert torch.equal(got, wanted)
    coarse = SparseTensor(mean.requires_grad_(), coords[:1])
    back = SparseUnpool(17)(coarse, x).features
    assert torch.equal(torch.autograd.grad(back.sum(), mean)[0], whole)


def test_no_voxels_are_ordinary():
    nothing = torch.empty(0, 3, dtype=torch.float32), torch.empty(0, 4, dtype=torch.int32)
    for pool in POOLS.values():
        features, coords = pool(2)(*nothing)
        assert features.shape == (0, 3) and coords.shape == (0, 4)
    assert SparseGlobalPool()(*nothing).shape == (0, 3)
    merged = SparseSpaceToChannel(2)(SparseTensor(*nothing))
    assert merged.features.shape == (0, 24)
    assert SparseChannelToSpace(2)(merged).features.shape == (0, 3)
