"""Whole networks under torch.compile, torch.export and torch.func."""

import pytest

pytest.importorskip("torch")

import torch
from dense_oracle import tensor
from torch import nn

from tensorhash.torch import (
    MinkUNet,
    RowWise,
    SparseAvgPool,
    SparseConv3d,
    SparseGlobalPool,
    SparseMaxPool,
    SparseReLU,
    SparseUnpool,
    plan_maps,
)
from tensorhash.torch._compiling import uncompiled


def network():
    return nn.Sequential(
        MinkUNet(3, 4, (4, 8, 16)),
        SparseMaxPool(3, 2),
        SparseReLU(),
        SparseUnpool(3, 2),
        SparseAvgPool(2),
        SparseGlobalPool("sum"),
    )


@pytest.fixture(autouse=True)
def fresh_dynamo():
    yield
    torch._dynamo.reset()


def reducing_network():
    how = {"stride_mode": "reduce_and_stride", "stride_reduce": "mean"}
    return nn.Sequential(
        SparseConv3d(3, 4, 3, 2, **how),
        SparseConv3d(4, 4, 2, 2, duplicates="first", **how),
        SparseGlobalPool("sum"),
    )


@pytest.mark.parametrize("make", [network, reducing_network])
def test_a_planned_network_compiles_without_graph_breaks(make):
    x = tensor(1, dtype=torch.float32)
    layers = make()
    plan_maps(layers, x)
    expected = layers(x)
    expected.sum().backward()
    gradients = [p.grad.clone() for p in layers.parameters()]
    layers.zero_grad()
    compiled = torch.compile(layers, backend="aot_eager", fullgraph=True)
    got = compiled(x)
    torch.testing.assert_close(got, expected)
    got.sum().backward()
    for parameter, gradient in zip(layers.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


@torch._inductor.config.patch({"cpp.cxx": (None, "c++")})  # CXX may name a compiler cache
def test_inductor_compiles_layers():
    x = tensor(2, dtype=torch.float32)
    layers = nn.Sequential(SparseConv3d(3, 4, 3), SparseReLU(), RowWise(nn.Linear(4, 2))).eval()
    plan_maps(layers, x)
    compiled = torch.compile(layers, backend="inductor", fullgraph=True)
    y = compiled(x)
    torch.testing.assert_close(y.features, layers(x).features)
    assert y.site == x.site
    # Other voxels and other features need no new graph of another kind.
    for seed in (3, 4):
        other = tensor(seed, dtype=torch.float32, count=100 + seed)
        plan_maps(layers, other)
        torch.testing.assert_close(compiled(other).features, layers(other).features)


class AtTheseVoxels(nn.Module):
    """A network at the voxels of one tensor, as a function of features."""

    def __init__(self, layers, x):
        super().__init__()
        self.layers = layers
        self.x = x

    def forward(self, features):
        return self.layers(self.x.with_features(features))


def test_a_network_at_fixed_voxels_exports():
    x = tensor(5, dtype=torch.float32).detach()
    layers = network().eval()
    plan_maps(layers, x)
    program = torch.export.export(AtTheseVoxels(layers, x), (x.features,))
    other = torch.randn_like(x.features)
    torch.testing.assert_close(program.module()(other), layers(x.with_features(other)))


def test_func_grad_goes_through_a_network():
    x = tensor(6)
    layers = network().double().eval()
    parameters = dict(layers.named_parameters())

    def loss(values):
        return torch.func.functional_call(layers, values, (x,)).square().sum()

    got = torch.func.grad(loss)(parameters)
    expected = torch.autograd.grad(loss(parameters), list(parameters.values()))
    for one, other in zip(got.values(), expected, strict=True):
        torch.testing.assert_close(one, other)


def test_what_is_left_out_of_graphs_runs_outside_of_them():
    inside = []

    @uncompiled
    def count(x):
        inside.append(torch.compiler.is_compiling())
        return int(x.sum())

    def function(x):
        return x * 2 + count(x)

    torch._dynamo.utils.counters.clear()  # the tests before have counted
    compiled = torch.compile(function, backend="aot_eager")
    for _ in range(12):  # more than torch's limit of compilations
        assert compiled(torch.ones(3)).tolist() == [5, 5, 5]
    assert inside == [False] * 12
    assert torch._dynamo.utils.counters["frames"]["total"] < 8
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(function, backend="aot_eager", fullgraph=True)(torch.ones(3))
