"""SparseTensor: shared kernel maps, layers in nn.Sequential, and the maps of a network in one call."""

import copy
import gc
import pickle
import weakref

import pytest

pytest.importorskip("torch")

import torch
from dense_oracle import tensor, voxels
from torch import nn

from tensorhash.coords import generate_kernel_map
from tensorhash.torch import (
    MinkUNet,
    SparseAvgPool,
    SparseBatchNorm,
    SparseConv3d,
    SparseDropout,
    SparseGlobalPool,
    SparseLayerNorm,
    SparseMaxPool,
    SparsePrune,
    SparseReLU,
    SparseTensor,
    plan_maps,
)


def test_a_unet_of_three_levels_builds_five_kernel_maps():
    x = tensor(1, dtype=torch.float32)
    network = MinkUNet(3, 2, (4, 8, 16))
    assert sum(isinstance(layer, SparseConv3d) for layer in network.modules()) == 13
    y = network(x)
    assert len(x.maps) == 5
    assert y.maps is x.maps and y.coords is x.coords and y.stride == (1, 1, 1)
    network(x.with_features(2 * x.features))
    assert len(x.maps) == 5


def test_a_network_gives_the_same_as_layer_by_layer_with_coordinates():
    x = tensor(2, dtype=torch.float32)
    down, same = SparseConv3d(3, 4, 3, stride=2), SparseConv3d(4, 4, 3)
    up = SparseConv3d(4, 3, 3, stride=2, transposed=True)
    features, coarse = same(*down(x.features, x.coords))
    expected, where = up(features, coarse, x.coords)
    y = nn.Sequential(down, same, up)(x)
    assert torch.equal(y.features, expected) and torch.equal(y.coords, where)
    pair = nn.Sequential(down, same)((x.features, x.coords))
    assert torch.equal(pair[0], features) and torch.equal(pair[1], coarse)


def test_maps_of_equal_layers_are_shared_and_others_are_not():
    x = tensor(3, dtype=torch.float32)
    for options, built in (
        ({"kernel_size": 3}, 1),
        ({"kernel_size": 3, "groups": 3}, 1),
        ({"kernel_size": 5}, 2),
        ({"kernel_size": 3, "dilation": 2}, 3),
        ({"kernel_size": 3, "padding": 0}, 4),
        ({"kernel_size": 3, "stride": 2}, 5),
        ({"kernel_size": 3, "stride": 2, "out_sites": "reached"}, 6),
        ({"kernel_size": 2, "stride": 2}, 7),
        ({"kernel_size": 3, "stride": 2}, 7),
    ):
        SparseConv3d(3, 3, **options)(x)
        assert len(x.maps) == built, options
    SparseMaxPool(2)(x), SparseAvgPool(3, 2, padding=1)(x)
    assert len(x.maps) == 7
    # Layers with the same stride lead to the same voxels.
    assert SparseConv3d(3, 3, 3, 2)(x).site == SparseMaxPool(2)(x).site
    assert SparseConv3d(3, 3, 3, 2)(x).stride == (2, 2, 2)


def test_strides_multiply_and_a_transposed_layer_divides():
    x = tensor(4, dtype=torch.float32)
    y = SparseConv3d(3, 3, 3, (2, 1, 3))(SparseConv3d(3, 3, 2, 2)(x))
    assert y.stride == (4, 2, 6)
    made = SparseConv3d(3, 3, 2, 2, transposed=True, generative=True)(y)
    assert made.stride == (2, 1, 3)
    half = SparseConv3d(3, 3, 2, 2, transposed=True, generative=True)(made)
    assert [str(step) for step in half.stride] == ["1", "1/2", "3/2"]


def test_reduce_and_stride_takes_sparse_tensors():
    x = tensor(5, dtype=torch.float32)
    layer = SparseConv3d(3, 2, 3, 2, stride_mode="reduce_and_stride", stride_reduce="mean")
    expected, coords = layer(x.features, x.coords)
    y = layer(x)
    assert torch.equal(y.features, expected) and torch.equal(y.coords, coords)
    layer(x)
    assert len(x.maps) == 1


def test_two_ways_down_need_a_target():
    x = tensor(6, dtype=torch.float32)
    down, up = SparseConv3d(3, 3, 2, 2), SparseConv3d(3, 3, 2, 2, transposed=True)
    y = down(x)
    assert up(y).coords is x.coords
    z = SparseTensor(x.features[1:], x.coords[1:], maps=x.maps)
    SparseConv3d(3, 3, 2, 2)(z, y)
    with pytest.raises(ValueError, match="out_coords: expected .*because 2 sets of voxels"):
        up(y)
    assert up(y, x).coords is x.coords and len(up(y, z)) == len(z)


def test_plan_maps_builds_all_maps_and_changes_nothing_else():
    x = tensor(7, dtype=torch.float32)
    network = nn.Sequential(
        MinkUNet(3, 2, (4, 8, 16)), SparseDropout(0.5), SparseLayerNorm(2), SparseGlobalPool()
    )
    before = copy.deepcopy(network.state_dict())
    state = torch.get_rng_state()
    assert plan_maps(network, x) is x.maps
    assert len(x.maps) == 5
    assert torch.equal(state, torch.get_rng_state())
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name]), name
    out = network(x)
    assert len(x.maps) == 5 and torch.isfinite(out).all()


class Chooses(nn.Module):
    def __init__(self):
        super().__init__()
        self.prune = SparsePrune()

    def forward(self, x):
        return self.prune(x, x.features[:, 0] > 0)


def test_plan_maps_refuses_voxels_that_depend_on_features():
    with pytest.raises(ValueError, match="network: expected voxels that do not depend"):
        plan_maps(Chooses(), tensor(8))
    assert len(Chooses()(tensor(8))) < len(tensor(8))


def test_a_cache_dies_with_its_tensors():
    x = tensor(9, dtype=torch.float32)
    y = MinkUNet(3, 2, (4, 8, 16))(x)
    cache = weakref.ref(x.maps)
    gc.disable()
    try:
        del x, y
        assert cache() is None
    finally:
        gc.enable()


def test_copies_have_their_own_cache():
    x = tensor(10, dtype=torch.float32).detach()
    SparseConv3d(3, 3, 3)(x)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert torch.equal(other.features, x.features) and other.maps is not x.maps
        SparseConv3d(3, 3, 3)(other)
        assert len(other.maps) == 1


def test_norms_and_activations_are_torchs_over_the_rows():
    x = tensor(11)
    torch.manual_seed(0)
    for ours, theirs in (
        (SparseBatchNorm(3), nn.BatchNorm1d(3)),
        (SparseLayerNorm(3), nn.LayerNorm(3)),
        (SparseReLU(), nn.ReLU()),
        (SparseDropout(0.5).eval(), nn.Dropout(0.5).eval()),
    ):
        theirs.double().load_state_dict(ours.double().state_dict())
        y = ours(x)
        assert torch.equal(y.features, theirs(x.features)) and y.site == x.site
        assert torch.equal(ours(x.features, x.coords)[0], theirs(x.features))
    torch.manual_seed(5)
    dropped = SparseDropout(0.5)(x).features
    torch.manual_seed(5)
    assert torch.equal(dropped, nn.Dropout(0.5)(x.features))


def test_autocast_reaches_the_whole_network():
    x = tensor(12, dtype=torch.float32)
    network = MinkUNet(3, 2, (4, 8, 16))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = network(x)
    assert y.dtype == torch.bfloat16
    y.features.float().sum().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in network.parameters())


def test_arguments_are_checked():
    coords = voxels(13)
    features = torch.ones(len(coords), 2)
    with pytest.raises(ValueError, match="features: expected shape"):
        SparseTensor(features[1:], coords)
    with pytest.raises(TypeError, match="coords: expected a torch tensor of int32 or int64"):
        SparseTensor(features, coords.float())
    with pytest.raises(ValueError, match=r"coords: expected shape \(N, 1 \+ D\)"):
        SparseTensor(features, coords[:, :2])
    with pytest.raises(ValueError, match="stride: expected 1 to"):
        SparseTensor(features, coords, 0)
    with pytest.raises(TypeError, match="maps: expected a MapCache or None, got dict"):
        SparseTensor(features, coords, maps={})
    with pytest.raises(TypeError, match="features: expected a SparseTensor, or features and coord"):
        SparseReLU()(features)
    x = SparseTensor(features, coords)
    with pytest.raises(AttributeError, match=r"dim: expected a tensor of torch, .* in RowWise\(m"):
        torch.nn.BatchNorm1d(2)(x)
    for call in (torch.relu, torch.nn.Linear(2, 3), lambda x: torch.cat([features, x])):
        with pytest.raises(TypeError, match=r": expected a tensor of torch, got a SparseTensor"):
            call(x)
    with pytest.raises(AttributeError, match="'SparseTensor' object has no attribute 'replace_f"):
        _ = x.replace_feature
    with pytest.raises(ValueError, match="coords: row 1 repeats row 0"):
        SparseConv3d(2, 2, 3)(SparseTensor(features[:2], coords[[0, 0]]))


def test_coverage_names_the_rows_without_a_pair():
    cube = torch.cartesian_prod(*[torch.arange(16)] * 3)
    coords = torch.nn.functional.pad(cube, (1, 0)).int()
    for kernel, center in ((4, None), (3, None), (4, 2), (2, None)):
        x = SparseTensor(torch.ones(len(coords), 1), coords)
        y = SparseMaxPool(4)(x)
        pairs = generate_kernel_map(coords, y.coords, 4, kernel, None, center and [center] * 3)
        seen, filled = set(pairs.in_maps.tolist()), set(pairs.out_maps.tolist())
        coverage = pairs.coverage()
        assert coverage.unused_in.tolist() == sorted(set(range(len(coords))) - seen)
        assert coverage.empty_out.tolist() == sorted(set(range(len(y))) - filled)
        lost = {(4, None): 0, (3, None): 4096 - 11**3, (4, 2): 4096 - 14**3, (2, None): 4096 - 8**3}
        assert len(coverage.unused_in) == lost[kernel, center]
    pairs.in_maps[0] = -1
    with pytest.raises(ValueError, match="in_maps: expected rows below 4096; this map was written"):
        pairs.coverage()
