"""Our layers beside spconv's on the CPU: the same voxels, results and gradients from its weights.

docs/porting/spconv.md says which layer replaces which, and how weights are converted.
"""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("spconv")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from torch import nn  # noqa: E402

from peers.spconv_cpu import layers as spconv  # noqa: E402
from suites.networks import WIDTHS, peer_network  # noqa: E402
from tensorhash.torch import (  # noqa: E402
    MinkUNet,
    SparseBatchNorm,
    SparseConv2d,
    SparseConv3d,
    SparseInverseConv3d,
    SparseMaxPool,
    SparseReLU,
    SparseTensor,
    SparseToDense,
    SubMConv3d,
    from_dense,
)

NATIVE = {"algo": spconv.ConvAlgo.Native}
SHAPE = (9, 12, 10)


@pytest.fixture(autouse=True)
def one_thread():
    """On several threads, spconv loses some of its sums."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def voxels(shape, count=250, seed=0):
    """Distinct voxels of two items, int32 [N, 1 + axes]."""
    generator = torch.Generator().manual_seed(seed)
    limits = torch.tensor([2, *shape])
    rows = (torch.rand(count, len(limits), generator=generator) * limits).int()
    return torch.unique(rows, dim=0)


def both(channels, shape=SHAPE, seed=0, positive=False, count=250):
    """(our tensor, spconv's) with equal features, which need gradients."""
    coords = voxels(shape, count, seed)
    torch.manual_seed(seed)
    features = torch.randn(len(coords), channels)
    features = features.abs() if positive else features
    ours, theirs = (features.clone().requires_grad_() for _ in range(2))
    return (
        SparseTensor(ours, coords, spatial_shape=shape, batch_size=2),
        spconv.SparseConvTensor(theirs, coords, list(shape), 2),
    )


def take_weights(ours, theirs):
    """Copies the parameters of spconv's layer, as the porting page says."""
    weight = theirs.weight.detach()
    outs, *kernel, ins = weight.shape
    turned = weight.permute(*range(1, weight.ndim), 0)
    if kernel == [1] * len(kernel):
        turned = weight  # spconv takes it for [in, out] then
    with torch.no_grad():
        ours.weight.copy_(turned.reshape(-1, ins, outs))
        if ours.bias is not None:
            ours.bias.copy_(theirs.bias)


def sorted_rows(coords, features):
    order = sorted(range(len(coords)), key=coords.tolist().__getitem__)
    return coords[order], features[order]


def compare(ours, theirs, x, y):
    """Voxels and features of the results, then the gradients of the inputs."""
    mine, its = ours(x), theirs(y)
    coords, features = sorted_rows(mine.coords, mine.features)
    other_coords, other = sorted_rows(its.indices, its.features)
    assert torch.equal(coords, other_coords)
    assert tuple(mine.spatial_shape) == tuple(its.spatial_shape)
    torch.testing.assert_close(features, other, rtol=1e-4, atol=1e-4)
    direction = torch.randn(features.shape, generator=torch.Generator().manual_seed(1))
    (gradient,) = torch.autograd.grad((features * direction).sum(), x.features)
    (wanted,) = torch.autograd.grad((other * direction).sum(), y.features)
    torch.testing.assert_close(gradient, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", [1, 3, (3, 1, 5)], ids=str)
def test_submanifold_convolutions(kernel):
    x, y = both(4)
    theirs = spconv.SubMConv3d(4, 6, kernel, padding=1, indice_key="a", **NATIVE)
    ours = SubMConv3d(4, 6, kernel, padding=1, indice_key="a")
    take_weights(ours, theirs)
    compare(ours, theirs, x, y)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [(3, 2, 1), (2, 2, 0), ((3, 1, 1), (2, 1, 1), 0), (3, 2, (0, 1, 1)), (3, 1, 0)],
    ids=str,
)
def test_strided_convolutions_and_their_inverse(kernel, stride, padding):
    x, y = both(4)
    theirs = spconv.SparseConv3d(4, 6, kernel, stride, padding, indice_key="down", **NATIVE)
    ours = SparseConv3d(
        4, 6, kernel, stride, padding=padding, out_sites="reached", indice_key="down"
    )
    take_weights(ours, theirs)
    compare(ours, theirs, x, y)
    its_up = spconv.SparseInverseConv3d(6, 3, kernel, indice_key="down", **NATIVE)
    up = SparseInverseConv3d(6, 3, kernel, indice_key="down")
    take_weights(up, its_up)
    compare(lambda z: up(ours(z)), lambda z: its_up(theirs(z)), x, y)


def test_convolutions_over_two_axes():
    shape = (16, 14)
    x, y = both(3, shape)
    theirs = spconv.SparseConv2d(3, 5, 3, 2, 1, **NATIVE)
    ours = SparseConv2d(3, 5, 3, 2, padding=1, out_sites="reached")
    take_weights(ours, theirs)
    compare(ours, theirs, x, y)


@pytest.mark.parametrize(("kernel", "padding"), [(2, 0), (3, 1)])
def test_transposed_convolutions(kernel, padding):
    x, y = both(4, (5, 6, 4))
    theirs = spconv.SparseConvTranspose3d(4, 6, kernel, 2, padding, **NATIVE)
    ours = SparseConv3d(4, 6, kernel, 2, transposed=True, generative=True, padding=padding)
    take_weights(ours, theirs)
    compare(ours, theirs, x, y)


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1)])
def test_max_pooling(kernel, stride, padding):
    """Of features from zero on: spconv's maximum begins at zero."""
    x, y = both(4, positive=True)
    theirs = spconv.SparseMaxPool3d(kernel, stride, padding, **NATIVE)
    ours = SparseMaxPool(kernel, stride, padding=padding, out_sites="reached")
    compare(ours, theirs, x, y)


def test_a_network_from_a_dense_image():
    """The layers of spconv's own example for handwritten digits."""
    torch.manual_seed(0)
    image = torch.relu(torch.randn(2, 1, 28, 28) - 1)
    theirs = spconv.SparseSequential(
        nn.BatchNorm1d(1),
        spconv.SparseConv2d(1, 8, 3, 1, **NATIVE),
        nn.ReLU(),
        spconv.SparseConv2d(8, 16, 3, 1, **NATIVE),
        nn.ReLU(),
        spconv.SparseMaxPool2d(2, 2, **NATIVE),
        spconv.ToDense(),
    )
    ours = nn.Sequential(
        SparseBatchNorm(1),
        SparseConv2d(1, 8, 3, 1, padding=0, out_sites="reached"),
        SparseReLU(),
        SparseConv2d(8, 16, 3, 1, padding=0, out_sites="reached"),
        SparseReLU(),
        SparseMaxPool(2, 2, out_sites="reached"),
        SparseToDense(),
    )
    for number in (1, 3):
        take_weights(ours[number], theirs[number])
    got = ours(from_dense(image))
    wanted = theirs(spconv.SparseConvTensor.from_dense(image.permute(0, 2, 3, 1)))
    assert got.shape == (2, 16, 12, 12)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_the_networks_of_the_benchmark_are_the_same():
    ours, theirs = MinkUNet(4, 10, WIDTHS), peer_network()
    pairs = [
        [one for one in network.modules() if next(one.parameters(recurse=False), None) is not None]
        for network in (ours, theirs)
    ]
    for mine, its in zip(*pairs, strict=True):
        if isinstance(mine, SparseConv3d):
            take_weights(mine, its)
        else:
            mine.load_state_dict(its.state_dict())
    x, y = both(4, (16, 24, 12), count=1500)
    compare(ours, theirs, x, y)
