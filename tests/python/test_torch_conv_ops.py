"""The operators of sparse convolution: torch's own checks, an oracle, groups, and what is kept."""

import gc
import itertools
import os
import signal

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import tensorhash
from tensorhash.coords import generate_kernel_map
from tensorhash.torch import SparseConv3d, _ops, sparse_conv

DTYPES = {
    torch.float64: 1e-12,
    torch.float32: 1e-4,
    torch.float16: 2e-2,
    torch.bfloat16: 1e-1,
}


@pytest.fixture(autouse=True)
def one_thread_of_torch():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def voxels(seed, count=60, width=5):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(0, width, (count, 4), generator=generator, dtype=torch.int32)
    rows[:, 0] = 0
    return torch.unique(rows, dim=0)[torch.randperm(len(torch.unique(rows, dim=0)))]


def strided_map(seed=1):
    """A map with different in and out rows."""
    fine = voxels(seed)
    coarse = torch.unique(torch.div(fine, torch.tensor([1, 2, 2, 2]), rounding_mode="floor"), dim=0)
    return generate_kernel_map(fine, coarse.to(torch.int32), 2, 3)


def tensors_of(kernel_map):
    return kernel_map.in_maps, kernel_map.out_maps, kernel_map.offsets


def inputs(kernel_map, channels=4, columns=6, groups=1, dtype=torch.float64, grad=True):
    torch.manual_seed(0)
    offsets = len(kernel_map)
    features = torch.randn(kernel_map.num_in, channels, dtype=torch.float64).to(dtype)
    weight = torch.randn(offsets, channels // groups, columns, dtype=torch.float64).to(dtype)
    return features.requires_grad_(grad), weight.requires_grad_(grad)


def oracle(features, weight, kernel_map, groups=1):
    """The definition, pair by pair and group by group."""
    channels, columns = features.shape[1] // groups, weight.shape[2] // groups
    rows = [[torch.zeros(weight.shape[2], dtype=features.dtype)] for _ in range(kernel_map.num_out)]
    for k, (ins, outs) in enumerate(kernel_map):
        for i, o in zip(ins.tolist(), outs.tolist(), strict=True):
            parts = [
                features[i, g * channels : (g + 1) * channels]
                @ weight[k, :, g * columns : (g + 1) * columns]
                for g in range(groups)
            ]
            rows[o].append(torch.cat(parts))
    return torch.stack([sum(row[1:], row[0]) for row in rows])


MAPS = {
    "submanifold": lambda: generate_kernel_map(c := voxels(2), c, 1, 3),
    "strided": strided_map,
    "offsets": lambda: generate_kernel_map(c := voxels(3), c, 1, (3, 1, 2)),
}


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_result_and_gradients_against_the_definition(make, groups, dtype):
    kernel_map = make()
    features, weight = inputs(kernel_map, groups=groups, dtype=dtype)
    wide = [array.detach().double().requires_grad_() for array in (features, weight)]
    out = sparse_conv(features, weight, kernel_map, groups)
    expected = oracle(*wide, kernel_map, groups)
    assert out.dtype == dtype and out.shape == expected.shape
    near = {"rtol": DTYPES[dtype], "atol": DTYPES[dtype]}
    torch.testing.assert_close(out.double(), expected, **near)
    direction = torch.randn_like(expected).to(dtype)
    got = torch.autograd.grad(out, (features, weight), direction)
    for mine, theirs in zip(
        got, torch.autograd.grad(expected, wide, direction.double()), strict=True
    ):
        assert mine.dtype == dtype
        near = {"rtol": DTYPES[dtype], "atol": 4 * DTYPES[dtype]}
        torch.testing.assert_close(mine.double(), theirs, **near)


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("groups", [1, 2])
def test_gradcheck_of_first_and_second_order(make, groups):
    kernel_map = make()
    call = lambda f, w: sparse_conv(f, w, kernel_map, groups)  # noqa: E731
    arguments = inputs(kernel_map, 2, 2, groups)
    assert torch.autograd.gradcheck(call, arguments, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, arguments, fast_mode=True)


@pytest.mark.parametrize("groups", [1, 2])
def test_torchs_own_checks_of_an_operator(groups):
    kernel_map = strided_map()
    maps = tensors_of(kernel_map)
    features, weight = inputs(kernel_map, groups=groups)
    gradient = torch.randn(kernel_map.num_out, 6, dtype=torch.float64, requires_grad=True)
    calls = (
        (_ops.sparse_conv, (features, weight, *maps, kernel_map.num_out, groups)),
        (_ops.input_gradient, (gradient, weight, *maps, kernel_map.num_in, groups)),
        (_ops.weight_gradient, (features, gradient, *maps, groups)),
    )
    for operator, arguments in calls:
        torch.library.opcheck(operator, arguments)


@pytest.mark.parametrize("groups", [1, 2])
def test_the_way_of_other_devices_gives_the_same(groups):
    """Without a device here, its functions run on tensors of the CPU."""
    kernel_map = strided_map()
    maps = tensors_of(kernel_map)
    features, weight = inputs(kernel_map, groups=groups, grad=False)
    gradient = torch.randn(kernel_map.num_out, 6, dtype=torch.float64)
    pairs = (
        (_ops.sparse_conv, _ops._sparse_conv_gathered, (features, weight, *maps), (9, 3)),
        (_ops.input_gradient, _ops._input_gradient_gathered, (gradient, weight, *maps), (8, 2)),
        (_ops.weight_gradient, _ops._weight_gradient_gathered, (features, gradient, *maps), ()),
    )
    rows = [(kernel_map.num_out,), (kernel_map.num_in,), ()]
    for (operator, gathered, arguments, _), more in zip(pairs, rows, strict=True):
        torch.testing.assert_close(
            operator(*arguments, *more, groups), gathered(*arguments, *more, groups)
        )
        if groups == 1:  # the default
            torch.testing.assert_close(operator(*arguments, *more), gathered(*arguments, *more))


def test_tensors_without_memory_give_shapes():
    kernel_map = strided_map()
    features, weight = (array.to("meta") for array in inputs(kernel_map, grad=False))
    out = sparse_conv(features, weight, kernel_map)
    assert out.device.type == "meta" and out.shape == (kernel_map.num_out, 6)


def test_torch_func_takes_gradients():
    kernel_map = strided_map()
    features, weight = inputs(kernel_map, grad=False)
    call = lambda f, w: sparse_conv(f, w, kernel_map).square().sum()  # noqa: E731
    got = torch.func.grad(call, argnums=(0, 1))(features, weight)
    leaves = [array.clone().requires_grad_() for array in (features, weight)]
    expected = torch.autograd.grad(call(*leaves), leaves)
    for mine, theirs in zip(got, expected, strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("of", ["torch", "numpy"])
def test_compile_has_one_graph(of):
    coords = voxels(4)
    rows = coords if of == "torch" else coords.numpy()
    kernel_map = generate_kernel_map(rows, rows, 1, 3)
    features, weight = inputs(kernel_map, dtype=torch.float32)

    def block(f, w):
        return torch.relu(sparse_conv(f, w, kernel_map) + 1).sum()

    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    got = torch.autograd.grad(compiled(features, weight), (features, weight))
    expected = torch.autograd.grad(block(features, weight), (features, weight))
    for mine, theirs in zip(got, expected, strict=True):
        assert torch.equal(mine, theirs)


class Block(nn.Module):
    """A convolution over a map that comes with the call."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(27, 4, 4))

    def forward(self, features, in_maps, out_maps, offsets):
        arguments = features, self.weight, in_maps, out_maps, offsets, features.shape[0]
        return torch.relu(torch.ops.tensorhash.sparse_conv(*arguments))


def test_export_takes_other_maps():
    block = Block()
    rows, pairs = torch.export.Dim("rows", min=2), torch.export.Dim("pairs", min=2)

    def arguments(seed, count):
        coords = voxels(seed, count)
        made = generate_kernel_map(coords, coords, 1, 3)
        return torch.randn(len(coords), 4), *tensors_of(made)

    shapes = ({0: rows}, {0: pairs}, {0: pairs}, None)
    program = torch.export.export(block, arguments(5, 40), dynamic_shapes=shapes)
    other = arguments(6, 70)
    assert torch.equal(program.module()(*other), block(*other))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_casts_the_operator(dtype):
    kernel_map = strided_map()
    features, weight = inputs(kernel_map, dtype=torch.float32)
    arguments = (*tensors_of(kernel_map), kernel_map.num_out)
    with torch.autocast("cpu", dtype=dtype):
        out = torch.ops.tensorhash.sparse_conv(features, weight, *arguments)
        assert torch.equal(out, sparse_conv(features, weight, kernel_map))
        double = [array.detach().double() for array in (features, weight)]
        assert sparse_conv(*double, kernel_map).dtype == torch.float64
    assert out.dtype == dtype
    out.float().sum().backward()
    assert features.grad.dtype == torch.float32


def test_a_write_to_the_map_is_seen():
    coords = voxels(7)
    kernel_map = generate_kernel_map(coords, coords, 1, 3)
    features, weight = inputs(kernel_map, grad=False)
    before = sparse_conv(features, weight, kernel_map)
    assert torch.equal(sparse_conv(features, weight, kernel_map), before)
    kernel_map.in_maps[0] = (kernel_map.in_maps[0] + 1) % len(coords)
    after = sparse_conv(features, weight, kernel_map)
    torch.testing.assert_close(after, oracle(features, weight, kernel_map))
    assert not torch.equal(after, before)
    kernel_map.in_maps[0] = len(coords)
    with pytest.raises(ValueError, match="kernel_map: in_maps: expected rows from 0 on, below"):
        sparse_conv(features, weight, kernel_map)


def test_plans_are_kept_with_their_maps_and_go_with_them():
    coords = voxels(8)
    features, weight = inputs(generate_kernel_map(coords, coords, 1, 3), grad=False)
    for rows in (coords, coords.numpy()):
        kernel_map = generate_kernel_map(rows, rows, 1, 3)
        gc.collect()
        before = len(_ops._plans)
        for _ in range(3):
            sparse_conv(features, weight, kernel_map)
        assert len(_ops._plans) == before + 1
        del kernel_map
        gc.collect()
        assert len(_ops._plans) == before


def test_two_maps_may_share_their_offsets():
    coords = voxels(9)
    kernel_map = generate_kernel_map(coords, coords, 1, 3)
    features, weight = inputs(kernel_map, grad=False)
    ins, outs, offsets = tensors_of(kernel_map)
    turned = torch.flip(ins, [0]).clone()
    for _ in range(2):
        for side in (ins, turned):
            arguments = features, weight, side, outs, offsets, kernel_map.num_out
            torch.testing.assert_close(
                _ops.sparse_conv(*arguments), _ops._sparse_conv_gathered(*arguments)
            )


@pytest.mark.parametrize("arrays", ["in_maps", "out_maps", "offsets"])
def test_hostile_tensors_are_refused_by_the_operator(arrays):
    kernel_map = strided_map()
    maps = dict(zip(("in_maps", "out_maps", "offsets"), tensors_of(kernel_map), strict=True))
    features, weight = inputs(kernel_map, grad=False)
    for value in (-1, 2**30, -(2**31)):
        changed = {name: array.clone() for name, array in maps.items()}
        changed[arrays][3] = value
        with pytest.raises(ValueError, match=f"kernel_map: {arrays}: expected"):
            _ops.sparse_conv(features, weight, *changed.values(), kernel_map.num_out)
    wrong = {**maps, arrays: maps[arrays].to(torch.int16)}
    with pytest.raises(TypeError, match=f"{arrays}: expected int"):
        _ops.sparse_conv(features, weight, *wrong.values(), kernel_map.num_out)


def test_groups_are_convolutions_of_their_own():
    coords = voxels(10)
    torch.manual_seed(1)
    grouped = SparseConv3d(6, 9, 3, groups=3).double()
    assert grouped.weight.shape == (27, 2, 9) and "6, 9" in repr(grouped)
    assert "groups=3" in repr(grouped)
    features = torch.randn(len(coords), 6, dtype=torch.float64)
    out, _ = grouped(features, coords)
    for g in range(3):
        alone = SparseConv3d(2, 3, 3).double()
        columns = slice(3 * g, 3 * g + 3)
        alone.load_state_dict(
            {"weight": grouped.weight[:, :, columns], "bias": grouped.bias[columns]}
        )
        expected, _ = alone(features[:, 2 * g : 2 * g + 2], coords)
        torch.testing.assert_close(out[:, columns], expected)
    for arguments, text in (
        ((6, 9, 3, 1, 1, True, False, False, 4), "divides the 6 channels of in_channels, got 4"),
        ((6, 8, 3, 1, 1, True, False, False, 3), "divides the 8 channels of out_channels, got 3"),
        ((6, 9, 3, 1, 1, True, False, False, 0), "groups: expected an int from 1 on"),
    ):
        with pytest.raises(ValueError, match=text):
            SparseConv3d(*arguments)
    kernel_map = grouped.kernel_map(coords)[1]
    with pytest.raises(ValueError, match=r"weight: expected shape \(27, 2, out channels\).*group"):
        sparse_conv(features, torch.ones(27, 6, 9, dtype=torch.float64), kernel_map, 3)


@pytest.mark.parametrize("channels", [8, 33])
def test_neither_threads_of_torch_nor_ours_change_a_bit(channels):
    coords = voxels(11, 6000, 20)
    kernel_map = generate_kernel_map(coords, coords, 1, 3)
    features, weight = inputs(kernel_map, channels, channels, dtype=torch.float32)
    results = []
    for ours, theirs in itertools.product((1, 2, 8), (1, 2)):
        tensorhash.set_num_threads(ours)
        torch.set_num_threads(theirs)
        out = sparse_conv(features, weight, kernel_map)
        grads = torch.autograd.grad(out.square().sum(), (features, weight))
        results.append([out.detach(), *grads])
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def large():
    """Enough work for all threads."""
    coords = voxels(13, 8000, 20)
    kernel_map = generate_kernel_map(coords, coords, 1, 3)
    return *inputs(kernel_map, 16, 16, dtype=torch.float32, grad=False), kernel_map


def test_a_forked_child_convolves_on_threads_of_its_own():
    """Threads of OpenMP do not live on in a child: a call that waits for them never returns."""
    arguments = large()
    torch.set_num_threads(2)
    expected = sparse_conv(*arguments)
    torch.set_num_threads(1)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        same = False
        try:
            same = np.array_equal(sparse_conv(*arguments).numpy(), expected.numpy())
        finally:
            os._exit(0 if same else 1)  # an error must not go on as a second pytest
    assert os.waitpid(child, 0)[1] == 0


def test_views_and_expanded_gradients_are_read_as_they_are():
    kernel_map = strided_map()
    features, weight = inputs(kernel_map, grad=False)
    wide = torch.randn(kernel_map.num_in, 8, dtype=torch.float64)
    wide[:, ::2] = features
    expected = sparse_conv(features, weight, kernel_map)
    assert torch.equal(sparse_conv(wide[:, ::2], weight, kernel_map), expected)
    turned = weight.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(sparse_conv(features, turned, kernel_map), expected)
    leaf = features.clone().requires_grad_()
    sparse_conv(leaf, weight, kernel_map).sum().backward()  # a gradient with strides of zero
    ones = torch.ones_like(expected)
    assert torch.equal(
        leaf.grad, _ops.input_gradient(ones, weight, *tensors_of(kernel_map), len(leaf))
    )


def test_maps_of_inference_mode_work():
    coords = voxels(12)
    with torch.inference_mode():
        kernel_map = generate_kernel_map(coords, coords, 1, 3)
        features, weight = torch.randn(len(coords), 4), torch.randn(27, 4, 6)
        out = sparse_conv(features, weight, kernel_map)
    expected = oracle(features.clone(), weight.clone(), kernel_map)
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
