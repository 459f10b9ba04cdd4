"""Convolutions on other devices: torch's products of gathered rows, here on tensors of the CPU."""

import pytest

pytest.importorskip("torch")

import torch
from dense_oracle import tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tensorhash.coords import generate_kernel_map
from tensorhash.torch import MinkUNet, SparseConv3d, SparseTensor, _ops, sparse_conv
from tensorhash.torch.functional import map_tensors

OPERATORS = _ops.sparse_conv, _ops.input_gradient, _ops.weight_gradient


class Elsewhere(TorchDispatchMode):
    """Calls what torch calls for tensors of a device that has no kernels of its own."""

    def __init__(self):
        super().__init__()
        self.called = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in OPERATORS:
            self.called.append(func)
            return func._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *args)
        return func(*args, **(kwargs or {}))


def step(network, x):
    network.zero_grad()
    y = network(x).features
    y.square().sum().backward()
    return y.detach(), [p.grad for p in network.parameters()]


@pytest.mark.parametrize("groups", [1, 2])
def test_a_network_learns_the_same(groups):
    x = tensor(1)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        SparseConv3d(3, 4, 3), MinkUNet(4, 4, (4, 8, 16)), SparseConv3d(4, 2, 3, groups=groups)
    ).double()
    y, gradients = step(network, x)
    with Elsewhere() as elsewhere:
        other, others = step(network, x)
    assert set(elsewhere.called) == set(OPERATORS)
    torch.testing.assert_close(other, y)
    torch.testing.assert_close(others, gradients)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_summed_in_floats(dtype):
    """The product of each offset is a small integer, and only the sums need to be rounded."""
    generator = torch.Generator().manual_seed(2)
    coords = torch.cartesian_prod(*[torch.arange(n, dtype=torch.int32) for n in (1, 5, 5, 5)])
    kernel_map = generate_kernel_map(coords, coords, 1, 3)
    maps = map_tensors(kernel_map, torch.device("cpu"))

    def integers(*shape):
        return torch.randint(-2, 9, shape, generator=generator).to(dtype)

    features, weight, gradient = integers(125, 4), integers(27, 4, 4), integers(125, 4)
    arguments = (
        (features, weight, *maps, 125),
        (gradient, weight, *maps, 125),
    )
    with Elsewhere():
        got = [op(*given) for op, given in zip(OPERATORS, arguments, strict=False)]
    for mine, operator, given in zip(got, OPERATORS, arguments, strict=False):
        assert mine.dtype == dtype and mine.abs().max() > 512
        assert torch.equal(mine, operator(*given))


@pytest.mark.parametrize("of", ["torch", "numpy"])
def test_a_map_is_copied_to_a_device_once(of):
    coords = tensor(3).coords
    rows = coords if of == "torch" else coords.numpy()
    kernel_map = generate_kernel_map(rows, rows, 1, 3)
    there = torch.device("meta")
    copies = map_tensors(kernel_map, there)
    assert [side.device.type for side in copies] == ["meta", "meta", "cpu"]
    assert all(a is b for a, b in zip(copies, map_tensors(kernel_map, there), strict=True))
    here = map_tensors(kernel_map, torch.device("cpu"))
    assert all(side.device.type == "cpu" for side in here)
    here[0][0] = 0  # a write to the map makes new copies
    assert map_tensors(kernel_map, there)[0] is not copies[0]


def test_layers_take_features_without_memory():
    x = tensor(4, dtype=torch.float32)
    there = SparseTensor(x.features.detach().to("meta"), x.coords)
    network = MinkUNet(3, 5, (4, 8)).to("meta")
    for _ in range(2):
        y = network(there)
        assert y.device.type == "meta" and y.features.shape == (len(x), 5)
    y.features.sum().backward()
    assert all(p.grad.device.type == "meta" for p in network.parameters())
    pairs = generate_kernel_map(x.coords, x.coords, 1, 3)
    with pytest.raises(RuntimeError, match="weight: expected a tensor on meta as features are"):
        sparse_conv(there.features, torch.ones(27, 3, 4), pairs)
