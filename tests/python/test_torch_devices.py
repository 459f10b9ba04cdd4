"""SparseTensor, its layers and functions on a device: the numbers of the CPU.

They run on the device `emu:0` of torch (`emulated_torch.py`). `make test-device` runs them with the
plugin, so that tables and kernel maps are on the device. Without it, maps are made on the CPU.
"""

import copy
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import emulated_torch  # noqa: E402
from dense_oracle import tensor  # noqa: E402

from tensorhash import _core  # noqa: E402
from tensorhash.coords import generate_kernel_map  # noqa: E402
from tensorhash.torch import (  # noqa: E402
    MinkUNet,
    SparseAvgPool,
    SparseChannelToSpace,
    SparseConv3d,
    SparseGlobalPool,
    SparseInverseConv3d,
    SparseMaxPool,
    SparsePrune,
    SparseSpaceToChannel,
    SparseSubdivide,
    SparseTensor,
    SparseUnpool,
    cat,
    from_dense,
    plan_maps,
    sample_nearest,
    sample_trilinear,
    sparse_collate,
    sparse_conv,
    splat_trilinear,
    stride_features,
    to_dense,
    voxelize,
)

EMULATED = os.environ.get("TENSORHASH_TEST_DEVICE", "").startswith("emu")
if EMULATED:
    emulated_torch.install()
on_devices = pytest.mark.skipif(not EMULATED, reason="they run in a process of their own")
HAS_TABLES = EMULATED and _core.device_count("emu") > 0


@pytest.mark.skipif(EMULATED, reason="this is that process")
def test_layers_work_on_a_device_that_has_no_tables():
    environment = {**os.environ, "TENSORHASH_TEST_DEVICE": "emu:0"}
    environment.pop("TENSORHASH_PLUGINS", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, __file__], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def layer(module, *more):
    return lambda x, here: copy.deepcopy(module).to(x.device)(x, *map(here, more))


POINTS = torch.rand(30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(5)) * 8
ITEMS = torch.arange(30) % 2
down = SparseConv3d(3, 4, 2, stride=2).double()

CALLS = {
    "convolution": layer(SparseConv3d(3, 4, 3).double()),
    "groups": layer(SparseConv3d(3, 6, 3, groups=3).double()),
    "strided": layer(down),
    "padded": layer(SparseConv3d(3, 4, 3, stride=2, padding=1, out_sites="reached").double()),
    "generative": layer(SparseConv3d(3, 4, 3, generative=True).double()),
    "upsampled": layer(SparseConv3d(3, 4, 2, 2, transposed=True, generative=True).double()),
    "reduced": layer(SparseConv3d(3, 4, 3, 2, stride_mode="reduce_and_stride").double()),
    "repeats": layer(
        SparseConv3d(3, 4, 3, 2, stride_mode="reduce_and_stride", duplicates="first").double()
    ),
    "to voxels": layer(
        SparseConv3d(3, 4, 3).double(), torch.tensor([[0, 1, 1, 1], [1, 5, 5, 5]]).int()
    ),
    "undone": layer(torch.nn.Sequential(down, SparseInverseConv3d(4, 2, 2).double())),
    "network": layer(MinkUNet(3, 4, (4, 8)).double()),
    "max pool": layer(SparseMaxPool(2)),
    "mean pool": layer(torch.nn.Sequential(SparseAvgPool(3, 2), SparseUnpool(3, 2))),
    "global pool": layer(SparseGlobalPool("max")),
    "subdivide": layer(SparseSubdivide(2)),
    "blocks": layer(torch.nn.Sequential(SparseSpaceToChannel(2), SparseChannelToSpace(2))),
    "prune": lambda x, here: SparsePrune()(x, x.features[:, 0] > 0),
    "sum": lambda x, here: x + SparseMaxPool(1)(SparsePrune()(x, x.features[:, 0] > 0)),
    "union": lambda x, here: (
        x + SparseTensor(here(torch.ones(1, 3)).double(), here(torch.tensor([[1, 9, 9, 9]])).int())
    ),
    "cat": lambda x, here: cat([x, x]),
    "grid": lambda x, here: to_dense(x, 8),
    "cells": lambda x, here: from_dense(to_dense(x, 8)),
    "collate": lambda x, here: sparse_collate(*reversed(list(zip(*x.items(), strict=True)))),
    "nearest": lambda x, here: sample_nearest(x, here(POINTS), here(ITEMS)),
    "trilinear": lambda x, here: sample_trilinear(x, here(POINTS), normalize=True),
    "splat": lambda x, here: splat_trilinear(x.features[:30], here(POINTS), here(ITEMS)),
    "splat like": lambda x, here: splat_trilinear(x.features[:30], here(POINTS), like=x),
    "voxelize": lambda x, here: voxelize(x.features[:30], here(POINTS), 2.0, here(ITEMS)).tensor,
    "voxelize max": lambda x, here: voxelize(x.features[:30], here(POINTS), 2.0, None, "max"),
    "stride": lambda x, here: SparseTensor(*stride_features(x.features, x.coords, 2, "mean")),
}


def answer(call, features, coords):
    """(result, its voxels, the gradient of the features, the tensor) of a call on a device."""
    x = SparseTensor(features.detach().clone().requires_grad_(), coords)
    out = call(x, lambda array: array.to(features.device))
    out = out if isinstance(out, (SparseTensor, torch.Tensor)) else out.tensor
    rows = out.features if isinstance(out, SparseTensor) else out
    (gradient,) = torch.autograd.grad(rows.square().sum(), x.features)
    return rows, out.coords if isinstance(out, SparseTensor) else None, gradient, x


@on_devices
@pytest.mark.parametrize("name", CALLS)
def test_everything_gives_the_numbers_of_the_cpu(name):
    x = tensor(1, count=60)
    wanted, sites, slope, _ = answer(CALLS[name], x.features, x.coords)
    for where in ("emu:0", "cpu"):  # the voxels may also stay on the CPU
        coords = x.coords.to(where)
        rows, voxels, gradient, held = answer(CALLS[name], x.features.to("emu:0"), coords)
        assert rows.device.type == gradient.device.type == "emu"
        torch.testing.assert_close(rows.detach().cpu(), wanted.detach())
        torch.testing.assert_close(gradient.cpu(), slope)
        if sites is not None:
            assert torch.equal(voxels.cpu(), sites)
        made = [one.device.type for one in held.maps._maps.values()]
        assert set(made) <= {"emu" if HAS_TABLES and where == "emu:0" else "cpu"}


@on_devices
def test_planned_maps_are_where_the_voxels_are():
    x = tensor(2, count=60)
    there = SparseTensor(x.features.detach(), x.coords.to("emu:0"))
    network = MinkUNet(3, 4, (4, 8)).double()
    assert len(plan_maps(network, there)) == 3
    made = {one.device.type for one in there.maps._maps.values()}
    assert made == {"emu" if HAS_TABLES else "cpu"}
    there = SparseTensor._at(there.features.to("emu:0"), there.site, there.maps)
    network.to("emu:0")(there)
    assert len(there.maps) == 3


@on_devices
def test_a_map_serves_features_of_both_places():
    x = tensor(3, count=60)
    weight = torch.randn(27, 3, 4, dtype=torch.float64)
    wanted = sparse_conv(x.features, weight, generate_kernel_map(x.coords, x.coords, 1, 3))
    coords = x.coords.to("emu:0") if HAS_TABLES else x.coords
    pairs = generate_kernel_map(coords, coords, 1, 3)
    for device in ("cpu", "emu:0"):
        got = sparse_conv(x.features.detach().to(device), weight.to(device), pairs)
        torch.testing.assert_close(got.cpu(), wanted.detach())
    with pytest.raises(RuntimeError, match=r"weight: expected a tensor on emu:0 as features are"):
        sparse_conv(x.features.detach().to("emu:0"), weight, pairs)
