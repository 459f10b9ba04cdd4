"""Sparse convolution against torch's dense convolution on grids, and its gradients."""

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional as F

from tensorhash.coords import generate_kernel_map
from tensorhash.torch import SparseConv3d, sparse_conv

ORIGIN = -12  # a multiple of all strides below, so that coordinates are negative too
EXTENT = 24
BATCHES = 2


@pytest.fixture(autouse=True)
def one_thread_of_torch():
    """The grids are small: torch's threads would mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def voxels(seed, count=150, low=ORIGIN + 8, high=ORIGIN + 16):
    """Distinct random coordinates in random order, some of them negative, far from the border."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(low, high, (count, 4), generator=generator, dtype=torch.int32)
    rows[:, 0] = rows[:, 1] % BATCHES
    rows = torch.unique(rows, dim=0)
    return rows[torch.randperm(len(rows), generator=generator)]


def dense(coords, features, extent=EXTENT, origin=ORIGIN):
    """[batches, channels, x, y, z] with zeros where there is no voxel."""
    grid = torch.zeros(BATCHES, extent, extent, extent, features.shape[1], dtype=features.dtype)
    b, x, y, z = coords.long().T
    grid = grid.index_put((b, x - origin, y - origin, z - origin), features)
    return grid.permute(0, 4, 1, 2, 3)


def at(grid, coords, origin):
    b, x, y, z = coords.long().T
    x, y, z = (axis - o for axis, o in zip((x, y, z), origin, strict=True))
    return grid[b, :, x, y, z]


def per_axis(value):
    return value if isinstance(value, tuple) else (value,) * 3


def padded(grid, kernel, dilation):
    """Pads so that output o sees inputs o + offset: odd kernels centred, even ones from 0."""
    pads = []
    for size, step in reversed(list(zip(kernel, dilation, strict=True))):
        before = (size // 2) * step if size % 2 else 0
        pads += [before, (size - 1) * step - before]
    return F.pad(grid, pads)


def dense_conv(conv, coords, features):
    """(grid, origin) of the dense convolution with the module's weights."""
    kernel, stride, dilation = conv.kernel_size, conv.stride, conv.dilation
    weight = conv.weight.reshape(*kernel, *conv.weight.shape[1:])
    grid = dense(coords, features)
    if not conv.transposed:
        weight = weight.permute(4, 3, 0, 1, 2)
        out = F.conv3d(padded(grid, kernel, dilation), weight, conv.bias, stride, 0, dilation)
        return out, [ORIGIN // s for s in stride]
    out = F.conv_transpose3d(
        grid, weight.permute(3, 4, 0, 1, 2), conv.bias, stride, dilation=dilation
    )
    before = [(k // 2) * d if k % 2 else 0 for k, d in zip(kernel, dilation, strict=True)]
    return out, [ORIGIN * s - b for s, b in zip(stride, before, strict=True)]


def check(conv, coords, out_coords=None):
    features = torch.randn(len(coords), conv.weight.shape[1], dtype=torch.float64)
    features.requires_grad_()
    conv = conv.double()
    out, where = conv(features, coords, out_coords)
    grid, origin = dense_conv(conv, coords, features)
    expected = at(grid, where, origin)
    torch.testing.assert_close(out, expected)
    # Gradients must equal those of the dense convolution, in a random direction.
    direction = torch.randn_like(out)
    leaves = [features, *conv.parameters()]
    got = torch.autograd.grad(out, leaves, direction)
    for mine, theirs in zip(got, torch.autograd.grad(expected, leaves, direction), strict=True):
        torch.testing.assert_close(mine, theirs)
    return where


KERNELS = [
    {"kernel_size": 3},
    {"kernel_size": 5},
    {"kernel_size": 1},
    {"kernel_size": 2},
    {"kernel_size": (3, 1, 5), "dilation": (1, 1, 2)},
    {"kernel_size": (2, 3, 4), "dilation": 2},
]


@pytest.mark.parametrize("options", KERNELS, ids=str)
@pytest.mark.parametrize("stride", [1, 2, (1, 2, 3)], ids=str)
def test_a_convolution_is_the_dense_one_at_its_voxels(options, stride):
    coords = voxels(1)
    where = check(SparseConv3d(3, 4, **options, stride=stride), coords)
    steps = np.array((1, *per_axis(stride)))
    expected = {tuple(row) for row in (coords.numpy() // steps).tolist()}
    assert {tuple(row) for row in where.tolist()} == expected
    assert len(where) == len(expected)
    if stride == 1:
        assert torch.equal(where, coords)


def test_the_output_voxels_can_be_given():
    out = voxels(2, low=-4, high=3)
    assert check(SparseConv3d(2, 3, 3, stride=2, bias=False), voxels(1), out) is out


def reached(conv, coords):
    """Where the dense convolution of all ones is not zero."""
    ones = SparseConv3d(
        *(1, 1, conv.kernel_size, conv.stride, conv.dilation),
        bias=False,
        transposed=conv.transposed,
    )
    torch.nn.init.ones_(ones.weight)
    grid, origin = dense_conv(ones, coords, torch.ones(len(coords), 1))
    found = torch.nonzero(grid[:, 0] > 0.5) + torch.tensor([0, *origin])
    return {tuple(row) for row in found.tolist()}


@pytest.mark.parametrize("options", KERNELS, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_a_generative_convolution_covers_all_that_the_kernel_reaches(options, transposed):
    conv = SparseConv3d(2, 3, **options, generative=True, transposed=transposed)
    coords = voxels(3, count=20)
    where = check(conv, coords)
    places = {tuple(row) for row in where.tolist()}
    assert len(places) == len(where)
    assert places == reached(conv, coords)


@pytest.mark.parametrize("stride", [2, (1, 2, 3)], ids=str)
@pytest.mark.parametrize("kernel_size", [2, 3, (2, 3, 1)], ids=str)
def test_generative_convolutions_with_a_stride(kernel_size, stride):
    coords = voxels(4, count=20)
    conv = SparseConv3d(2, 3, kernel_size, stride, generative=True)
    assert {tuple(row) for row in check(conv, coords).tolist()} >= reached(conv, coords)
    conv = SparseConv3d(2, 3, kernel_size, stride, generative=True, transposed=True)
    assert {tuple(row) for row in check(conv, coords).tolist()} == reached(conv, coords)


@pytest.mark.parametrize("options", [*KERNELS, {"kernel_size": 3, "dilation": 2}], ids=str)
@pytest.mark.parametrize("stride", [2, (1, 2, 3)], ids=str)
def test_a_transposed_convolution_goes_back_to_given_voxels(options, stride):
    fine = voxels(5)
    down = SparseConv3d(2, 3, **options, stride=stride)
    _, coarse = down(torch.randn(len(fine), 2), fine)
    where = check(SparseConv3d(3, 2, **options, stride=stride, transposed=True), coarse, fine)
    assert where is fine
    conv = SparseConv3d(3, 2, **options, stride=stride, transposed=True, generative=True)
    few = coarse[:20]
    assert {tuple(row) for row in check(conv, few).tolist()} == reached(conv, few)


def test_gradcheck():
    coords = voxels(6, count=12)
    torch.manual_seed(0)
    conv = SparseConv3d(2, 3, 3, stride=2).double()
    kernel_map = conv.kernel_map(coords)[1]
    features = torch.randn(len(coords), 2, dtype=torch.float64, requires_grad=True)
    weight = conv.weight.detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda f, w: sparse_conv(f, w, kernel_map), (features, weight))
    # Only requested gradients are computed.
    frozen = sparse_conv(features.detach(), weight, kernel_map).sum()
    frozen.backward()
    assert weight.grad is not None


def test_gradients_have_gradients():
    coords = voxels(6, count=12)
    kernel_map = generate_kernel_map(coords, coords, 1, (3, 1, 2))
    torch.manual_seed(0)
    features = torch.randn(len(coords), 2, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(6, 2, 3, dtype=torch.float64, requires_grad=True)
    inputs = features, weight
    assert torch.autograd.gradgradcheck(lambda f, w: sparse_conv(f, w, kernel_map), inputs)

    def penalized(make):
        out = make(features, weight).square().sum()
        (grad,) = torch.autograd.grad(out, features, create_graph=True)
        return torch.autograd.grad(out + grad.square().sum(), inputs)

    def dense_sum(f, w):
        return sum(
            torch.zeros(len(coords), 3, dtype=f.dtype).index_add(0, o.long(), f[i.long()] @ w[k])
            for k, (i, o) in enumerate(kernel_map)
        )

    expected = penalized(dense_sum)
    for one, other in zip(
        penalized(lambda f, w: sparse_conv(f, w, kernel_map)), expected, strict=True
    ):
        torch.testing.assert_close(one, other)


def test_autocast_casts_like_torchs_convolutions():
    coords = voxels(12)
    torch.manual_seed(0)
    conv = SparseConv3d(2, 3, 3)
    features = torch.randn(len(coords), 2)
    exact = conv(features, coords)[0]
    for dtype in (torch.float32, torch.bfloat16):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = conv(features.to(dtype), coords)[0]
        assert out.dtype == torch.bfloat16
        torch.testing.assert_close(out.float(), exact, rtol=0.05, atol=0.05)
        out.sum().backward()
        assert conv.weight.grad.dtype == torch.float32
    double = conv.double()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert double(features.double(), coords)[0].dtype == torch.float64


def test_an_overwritten_map_is_refused():
    coords = voxels(13)
    features, weight = torch.randn(len(coords), 2), torch.randn(27, 2, 3)
    for array, place, value in (
        ("offsets", 5, -3),
        ("offsets", 0, 1),
        ("offsets", 27, 0),
        ("in_maps", 0, -1),
        ("in_maps", 3, len(coords)),
        ("out_maps", -1, len(coords)),
    ):
        kernel_map = generate_kernel_map(coords, coords, 1, 3)
        getattr(kernel_map, array)[place] = value
        with pytest.raises(ValueError, match=f"kernel_map: {array}: .* was written to"):
            sparse_conv(features, weight, kernel_map)


@pytest.mark.parametrize("batch", [-1, 2**24, -(2**31), 2**31 - 1])
@pytest.mark.parametrize("options", [{"stride": 2}, {"generative": True}], ids=str)
def test_any_integer_is_a_batch_number(batch, options):
    conv = SparseConv3d(2, 3, 3, **options)
    features = torch.randn(1, 2)
    out, where = conv(features, torch.tensor([[batch, 0, 0, 0]]))
    expected, plain = conv(features, torch.tensor([[0, 0, 0, 0]]))
    assert torch.equal(out, expected) and torch.equal(where[:, 1:], plain[:, 1:])
    assert (where[:, 0] == batch).all()


def test_numpy_maps_every_float_dtype_and_no_voxels():
    coords = voxels(7)
    kernel_map = generate_kernel_map(coords.numpy(), coords.numpy(), 1, (3, 3, 3))
    for dtype, tolerance in (
        (torch.float32, 1e-5),
        (torch.float64, 1e-12),
        (torch.float16, 0.02),
        (torch.bfloat16, 0.1),
    ):
        features, weight = torch.randn(len(coords), 2), torch.randn(27, 2, 3)
        got = sparse_conv(features.to(dtype), weight.to(dtype), kernel_map)
        assert got.dtype == dtype
        expected = sparse_conv(features.to(dtype).double(), weight.to(dtype).double(), kernel_map)
        torch.testing.assert_close(got.double(), expected, rtol=tolerance, atol=tolerance)
    nothing = torch.empty(0, 4, dtype=torch.int32)
    for options in ({}, {"stride": 2}, {"generative": True}):
        out, where = SparseConv3d(2, 3, 3, **options)(torch.empty(0, 2), nothing)
        assert out.shape == (0, 3) and where.shape == (0, 4)


@pytest.mark.parametrize("threads", [1, 2])
def test_two_runs_give_the_same_bits(threads):
    torch.set_num_threads(threads)
    coords = voxels(8, count=4000)
    torch.manual_seed(1)
    conv = SparseConv3d(16, 32, 3)
    features = torch.randn(len(coords), 16, requires_grad=True)

    def run():
        out = conv(features, coords)[0]
        grads = torch.autograd.grad(out.square().sum(), [features, *conv.parameters()])
        return [out.detach(), *grads]

    for first, second in zip(run(), run(), strict=True):
        assert torch.equal(first, second)


def test_errors_say_what_was_expected():
    coords = voxels(9)
    conv = SparseConv3d(2, 3, 3)
    kernel_map = conv.kernel_map(coords)[1]
    rows = len(coords)
    with pytest.raises(ValueError, match=rf"features: expected shape \({rows}, channels\)"):
        conv(torch.randn(rows - 1, 2), coords)
    with pytest.raises(ValueError, match=r"weight: expected shape \(27, 5, out channels\)"):
        conv(torch.randn(rows, 5), coords)
    with pytest.raises(TypeError, match="weight: expected torch.float64"):
        conv(torch.randn(rows, 2).double(), coords)
    with pytest.raises(TypeError, match="features: expected a float dtype, got torch.int64"):
        sparse_conv(torch.ones(rows, 2, dtype=torch.int64), conv.weight, kernel_map)
    with pytest.raises(TypeError, match="features: expected a torch tensor, got ndarray"):
        sparse_conv(np.ones((rows, 2)), conv.weight, kernel_map)
    with pytest.raises(ValueError, match="out_coords: expected the output coordinates of a"):
        SparseConv3d(2, 3, 3, transposed=True)(torch.randn(rows, 2), coords)
    with pytest.raises(ValueError, match="out_coords: expected None, because a generative"):
        SparseConv3d(2, 3, 3, generative=True)(torch.randn(rows, 2), coords, coords)
    with pytest.raises(ValueError, match="stride: expected an int or three"):
        SparseConv3d(2, 3, 3, stride=0)
    with pytest.raises(TypeError, match="kernel_size: expected an int or three"):
        SparseConv3d(2, 3, 2.5)
    with pytest.raises(TypeError, match="coords: expected a torch tensor of int32.*got ndarray"):
        conv(torch.randn(rows, 2), coords.numpy())
    with pytest.raises(TypeError, match="out_coords: expected a torch tensor.*got torch.float32"):
        conv(torch.randn(rows, 2), coords, coords.float())
    with pytest.raises(ValueError, match=r"coords: expected shape \(N, 4\).*got \(\d+, 3\)"):
        conv(torch.randn(rows, 2), coords[:, :3])
    far = torch.tensor([[0, 2**30, 0, 0]], dtype=torch.int32)
    with pytest.raises(ValueError, match="coords: expected output coordinates within int32"):
        SparseConv3d(1, 1, 3, stride=2, transposed=True, generative=True)(torch.ones(1, 1), far)


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"generative": True}], ids=str)
def test_coordinates_may_be_int64(options):
    coords = voxels(11)
    conv = SparseConv3d(2, 3, 3, **options)
    features = torch.randn(len(coords), 2)
    narrow, wide = conv(features, coords), conv(features, coords.long())
    assert torch.equal(narrow[0], wide[0])
    assert wide[1].dtype == torch.int64 and torch.equal(narrow[1].long(), wide[1])


def test_sparse_conv_is_an_ordinary_module():
    conv = SparseConv3d(2, 3, 3, stride=2, generative=True)
    assert "kernel_size=(3, 3, 3)" in repr(conv) and "generative=True" in repr(conv)
    again = SparseConv3d(2, 3, 3, stride=2, generative=True)
    again.load_state_dict(conv.state_dict())
    coords = voxels(10)
    features = torch.randn(len(coords), 2)
    assert torch.equal(conv(features, coords)[0], again(features, coords)[0])
    assert [tuple(p.shape) for p in conv.parameters()] == [(27, 2, 3), (3,)]
