"""Reductions of strided voxels: stride_features, and SparseConv3d over the reduced voxels."""

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from kernel_map_oracle import random_coords

import tensorhash
from tensorhash.coords import stride_coords
from tensorhash.torch import SparseConv3d, sparse_conv, stride_features

JOIN = {"max": np.max, "mean": np.mean, "sum": np.sum}


def voxels(seed, count=120):
    return torch.from_numpy(random_coords(np.random.default_rng(seed), count, 3, -6, 6))


@pytest.mark.parametrize("reduce", JOIN)
@pytest.mark.parametrize("stride", [2, (1, 2, 3)], ids=str)
def test_features_of_voxels_in_one_cell_are_reduced(reduce, stride):
    coords = voxels(1)
    features = torch.randn(len(coords), 3, dtype=torch.float64)
    got, where = stride_features(features, coords, stride, reduce)
    assert torch.equal(where, stride_coords(coords, stride)[0])
    steps = np.array([1, *np.broadcast_to(stride, 3)])
    cells = (coords.numpy() // steps).tolist()
    for row, cell in enumerate(where.tolist()):
        own = features.numpy()[[c == cell for c in cells]]
        np.testing.assert_allclose(got[row].numpy(), JOIN[reduce](own, axis=0))


@pytest.mark.parametrize("reduce", JOIN)
def test_gradients_and_their_gradients(reduce):
    coords = voxels(2, count=12)
    torch.manual_seed(0)
    features = torch.randn(len(coords), 2, dtype=torch.float64, requires_grad=True)
    join = lambda f: stride_features(f, coords, 6, reduce)[0]  # noqa: E731
    assert len(join(features)) < len(features)
    assert torch.autograd.gradcheck(join, features)
    assert torch.autograd.gradgradcheck(join, features)


@pytest.mark.parametrize("reduce", JOIN)
@pytest.mark.parametrize("generative", [False, True])
def test_reduce_and_stride_is_a_convolution_of_the_reduced_voxels(reduce, generative):
    coords = voxels(3)
    torch.manual_seed(1)
    conv = SparseConv3d(
        *(2, 4, (3, 2, 3), 2),
        generative=generative,
        stride_mode="reduce_and_stride",
        stride_reduce=reduce,
    )
    plain = SparseConv3d(2, 4, (3, 2, 3), generative=generative)
    plain.load_state_dict(conv.state_dict())
    features = torch.randn(len(coords), 2, requires_grad=True)
    out, where = conv(features, coords)
    expected, places = plain(*stride_features(features, coords, 2, reduce))
    order, other = (np.lexsort(rows.numpy().T) for rows in (where, places))
    assert torch.equal(where[order], places[other])
    torch.testing.assert_close(out[order], expected[other])
    wanted = [features, *conv.parameters()]
    assert all(grad.abs().sum() > 0 for grad in torch.autograd.grad(out.sum(), wanted))
    again, kernel_map = conv.kernel_map(coords)
    joined = stride_features(features, coords, 2, reduce)[0]
    assert torch.equal(again, where)
    assert torch.equal(sparse_conv(joined, conv.weight, kernel_map) + conv.bias, out)


def test_with_stride_one_there_is_nothing_to_reduce():
    coords = voxels(4)
    features = torch.randn(len(coords), 2)
    conv = SparseConv3d(2, 3, 3, stride_mode="reduce_and_stride")
    plain = SparseConv3d(2, 3, 3)
    plain.load_state_dict(conv.state_dict())
    out, where = conv(features, coords)
    assert where is coords and torch.equal(out, plain(features, coords)[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_every_float_dtype_and_no_voxels(dtype):
    nothing = torch.empty(0, 4, dtype=torch.int32)
    for reduce in JOIN:
        features, coords = torch.tensor([[1.0], [3.0]]), torch.tensor([[0, 0, 0, 0], [0, 1, 1, 1]])
        joined = stride_features(features.to(dtype), coords, 2, reduce)[0]
        assert joined.dtype == dtype and joined.item() == JOIN[reduce]([1.0, 3.0])
        joined, where = stride_features(torch.empty(0, 2, dtype=dtype), nothing, 2, reduce)
        assert joined.shape == (0, 2) and where.shape == (0, 4)
        conv = SparseConv3d(
            *(2, 3, 3, 2), stride_mode="reduce_and_stride", stride_reduce=reduce, bias=False
        )
        assert conv(torch.empty(0, 2), nothing)[0].shape == (0, 3)


def test_errors_and_the_repr_name_the_mode():
    coords = voxels(5)
    for wrong, text in (
        ({"stride_mode": "reduce"}, 'stride_mode: expected "stride_only" or'),
        ({"stride_reduce": "median"}, 'stride_reduce: expected "max", "mean" or "sum", got'),
    ):
        with pytest.raises(ValueError, match=text):
            SparseConv3d(2, 3, 3, 2, **wrong)
    with pytest.raises(ValueError, match='reduce: expected "max", "mean" or "sum", got .min'):
        stride_features(torch.ones(len(coords), 2), coords, 2, "min")
    with pytest.raises(ValueError, match=rf"features: expected shape \({len(coords)}, channels\)"):
        stride_features(torch.ones(3, 2), coords, 2)
    conv = SparseConv3d(2, 3, 3, 2, stride_mode="reduce_and_stride", stride_reduce="sum")
    with pytest.raises(ValueError, match=rf"features: expected shape \({len(coords)}, channels\)"):
        conv(torch.ones(3, 2), coords)
    assert "stride_mode='reduce_and_stride', stride_reduce='sum'" in repr(conv)
    assert "stride_mode" not in repr(SparseConv3d(2, 3, 3, 2))


def test_the_same_bits_on_any_number_of_threads():
    coords, before = voxels(6, count=5000), torch.get_num_threads()
    torch.manual_seed(2)
    features = torch.randn(len(coords), 32, requires_grad=True)

    def run(reduce, threads):
        torch.set_num_threads(threads)
        tensorhash.set_num_threads(threads)
        out = stride_features(features, coords, 3, reduce)[0]
        return out, torch.autograd.grad(out.square().sum(), features)[0]

    try:
        for reduce in JOIN:
            one = run(reduce, 1)
            for threads in (2, 8):
                for first, other in zip(one, run(reduce, threads), strict=True):
                    assert torch.equal(first, other)
    finally:
        torch.set_num_threads(before)
