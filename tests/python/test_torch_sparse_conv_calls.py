"""Calls of SparseConv3d: new voxels each time, repeated voxels, any number of threads."""

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from kernel_map_oracle import pairs_of, random_coords

import tensorhash
from tensorhash.torch import SparseConv3d, sparse_conv

MODES = [
    {},
    {"stride": 2},
    {"generative": True},
    {"stride": 2, "generative": True},
    {"stride": 2, "transposed": True},
    {"stride": 2, "transposed": True, "generative": True},
    {"stride": 2, "stride_mode": "reduce_and_stride"},
]


@pytest.fixture(autouse=True)
def threads_of_torch_are_restored():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def voxels(seed, count=150, reach=5):
    return torch.from_numpy(random_coords(np.random.default_rng(seed), count, 3, -reach, reach))


def test_a_second_call_with_equally_many_other_voxels_gets_its_own_map():
    """No map is cached between calls: a cache keyed by counts would return the first map again."""
    conv = SparseConv3d(2, 3, 3, bias=False).double()
    weight = conv.weight.detach()
    first = voxels(1)
    for coords in (first, first + torch.tensor([0, 0, 0, 9], dtype=torch.int32), first.flip(0)):
        rows = coords.clone()
        rows[:, 3] *= 1 + (len(rows) + int(coords[0, 3])) % 2  # different neighbours, too
        features = torch.randn(len(rows), 2, dtype=torch.float64)
        ins, outs, offsets = pairs_of(rows, rows, [1] * 3, (3, 3, 3))
        expected = torch.zeros(len(rows), 3, dtype=torch.float64)
        for k in range(27):
            for i, o in zip(ins[offsets[k] : offsets[k + 1]], outs[offsets[k] :], strict=False):
                expected[o] += features[i] @ weight[k]
        torch.testing.assert_close(conv(features, rows)[0], expected)


@pytest.mark.parametrize("options", MODES, ids=str)
def test_repeated_voxels_are_refused_by_the_name_that_the_user_gave(options):
    conv = SparseConv3d(1, 1, 3, **options)
    given = options.get("transposed") and not options.get("generative")
    coords, others = voxels(2, 20), voxels(3, 30)
    out_coords = others if given else None
    twice = torch.cat([coords, coords[4:6]])
    text = f"^coords: row {len(coords)} repeats row 4; drop repeated rows"
    with pytest.raises(ValueError, match=text):
        conv(torch.ones(len(twice), 1), twice, out_coords)
    if options.get("generative") or "stride_mode" in options:
        return
    with pytest.raises(ValueError, match=f"^out_coords: row {len(others)} repeats row 7; drop"):
        conv(torch.ones(len(coords), 1), coords, torch.cat([others, others[7:8]]))


@pytest.mark.parametrize("options", [MODES[0], MODES[4], MODES[5], MODES[6]], ids=str)
@pytest.mark.parametrize("of_torch", [1, 2, 8])
def test_the_same_bits_on_any_number_of_threads(options, of_torch):
    coords, fine = voxels(4, 1500, 8), voxels(5, 1200, 12)
    given = options.get("transposed") and not options.get("generative")
    torch.manual_seed(3)
    conv = SparseConv3d(8, 12, 3, **options)
    features = torch.randn(len(coords), 8, requires_grad=True)
    torch.set_num_threads(of_torch)

    def run(own):
        tensorhash.set_num_threads(own)
        out, where = conv(features, coords, fine if given else None)
        grads = torch.autograd.grad(out.square().sum(), [features, *conv.parameters()])
        return [out.detach(), where, *grads]

    one = run(1)
    for own in (1, 2, 8):
        for first, other in zip(one, run(own), strict=True):
            assert torch.equal(first, other), own


@pytest.mark.parametrize("of_torch", [1, 2, 8])
def test_torchs_threads_affect_only_torchs_product(of_torch):
    """Products may round differently on other thread counts; the order of additions must not."""
    coords = voxels(6, 3000, 10)
    torch.manual_seed(4)
    conv = SparseConv3d(8, 12, 3, bias=False)
    kernel_map = conv.kernel_map(coords)[1]
    features = torch.randn(len(coords), 8)
    torch.set_num_threads(of_torch)
    expected = torch.zeros(len(coords), 12)
    with torch.no_grad():
        for k, (ins, outs) in enumerate(kernel_map):
            expected[outs.long()] += features[ins.long()] @ conv.weight[k]
        assert torch.equal(sparse_conv(features, conv.weight, kernel_map), expected)
        # Small integers are exact, so the result is the same on any number of threads.
        whole = torch.randint(-8, 8, (len(coords), 8)).float()
        weight = torch.randint(-8, 8, (27, 8, 12)).float()
        got = sparse_conv(whole, weight, kernel_map)
        exact = sparse_conv(whole.double(), weight.double(), kernel_map)
        assert torch.equal(got.double(), exact)
