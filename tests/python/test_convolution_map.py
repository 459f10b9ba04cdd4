"""convolution_map: every mode against brute force, its batch offsets, its errors."""

import itertools

import numpy as np
import pytest
from kernel_map_oracle import check_map, offsets_of, pairs_of, random_coords
from oracle import same

import tensorhash.coords as thc

KERNELS = [
    ((3, 3, 3), (1, 1, 1)),
    ((2, 2, 2), (1, 1, 1)),
    ((2, 3, 1), (2, 1, 3)),
    ((3, 1, 4), (2, 2, 1)),
    ((3, 2), (1, 2)),
]
STRIDES = [(1, 1, 1), (2, 2, 2), (1, 2, 3)]


def sums(rows, by):
    """The set of all sums of a row and an offset."""
    places = np.array(by, np.int64)
    return {(b, *(np.array(p) + o).tolist()) for b, *p in rows for o in places}


def strided(rows, stride):
    """The distinct cells of rows, batch by batch, in order of first occurrence."""
    cells = (np.asarray(rows) // np.array([1, *stride])).tolist()
    return sorted(dict.fromkeys(map(tuple, cells)), key=lambda row: row[0])


def turned(pairs):
    """in and out swapped, ascending by the new output row."""
    ins, outs, offsets = pairs
    order = [
        begin + np.argsort(ins[begin:end], kind="stable")
        for begin, end in itertools.pairwise(offsets)
    ]
    order = np.concatenate(order).astype(np.int64)
    return outs[order], ins[order], offsets


def check_out(out, offsets, expected):
    """Exactly these rows, without duplicates, in batches bounded by `offsets`."""
    assert len(out) == len(expected) and set(map(tuple, out.tolist())) == set(expected)
    assert offsets.dtype == np.int64 and offsets[0] == 0 and offsets[-1] == len(out)
    for batch, (begin, end) in enumerate(itertools.pairwise(offsets)):
        assert (out[begin:end, 0] == batch).all()


@pytest.fixture(params=KERNELS, ids=str)
def kernel(request):
    return request.param


@pytest.fixture(params=STRIDES, ids=str)
def stride(request, kernel):
    return request.param[: len(kernel[0])]


@pytest.fixture
def coords(kernel):
    return random_coords(np.random.default_rng(1), 60, len(kernel[0]), -5, 5)


def test_the_output_is_the_input_or_its_strided_cells(coords, kernel, stride):
    out, offsets, made = thc.convolution_map(coords, kernel[0], stride, kernel[1])
    if max(stride) == 1:
        assert out is coords and offsets is None  # in random order: its batches do not ascend
        assert thc.convolution_map(coords, kernel[0])[2].identity_map_index == (
            len(made) // 2 if all(size % 2 for size in kernel[0]) else None
        )
    else:
        check_out(out, offsets, strided(coords, stride))
        same(out, thc.stride_coords(coords, stride)[0])
    check_map(made, pairs_of(coords, out, stride, *kernel))


def test_the_output_can_be_given(coords, kernel, stride):
    given = random_coords(np.random.default_rng(2), 50, len(kernel[0]), -5, 5)
    out, _, made = thc.convolution_map(coords, kernel[0], stride, kernel[1], out_coords=given)
    assert out is given
    check_map(made, pairs_of(coords, given, stride, *kernel))


def test_a_transposed_map_undoes_the_convolution_of_the_given_output(coords, kernel, stride):
    coarse = np.array(strided(coords, stride), np.int32)
    out, _, made = thc.convolution_map(
        coarse, kernel[0], stride, kernel[1], out_coords=coords, transposed=True
    )
    assert out is coords
    check_map(made, turned(pairs_of(coords, coarse, stride, *kernel)))


def test_a_generative_map_outputs_every_position_where_the_kernel_sees_a_cell(
    coords, kernel, stride
):
    out, offsets, made = thc.convolution_map(coords, kernel[0], stride, kernel[1], generative=True)
    back = -np.array(offsets_of(*kernel))
    check_out(out, offsets, sums(strided(coords, stride), back))
    check_map(made, pairs_of(coords, out, stride, *kernel))


def test_a_transposed_generative_map_starts_from_the_input_times_the_stride(coords, kernel, stride):
    out, offsets, made = thc.convolution_map(
        coords, kernel[0], stride, kernel[1], generative=True, transposed=True
    )
    spread = (coords * np.int32([1, *stride])).tolist()
    check_out(out, offsets, sums(spread, offsets_of(*kernel)))
    check_map(made, turned(pairs_of(out, spread, [1] * len(stride), *kernel)))


@pytest.mark.parametrize("generative", [False, True])
def test_reduce_and_stride_maps_the_strided_cells(coords, kernel, stride, generative):
    out, offsets, made = thc.convolution_map(
        coords,
        *(kernel[0], stride, kernel[1]),
        generative=generative,
        stride_mode="reduce_and_stride",
    )
    if max(stride) == 1:
        plain = thc.convolution_map(coords, kernel[0], 1, kernel[1], generative=generative)
        same(out, plain[0])
        check_map(made, (plain[2].in_maps, plain[2].out_maps, plain[2].offsets))
        return
    cells = strided(coords, stride)
    ins = thc.stride_coords(coords, stride)[0]
    assert made.num_in == len(ins)
    expected = sums(cells, -np.array(offsets_of(*kernel))) if generative else cells
    check_out(out, offsets, expected)
    check_map(made, pairs_of(ins, out, [1] * len(stride), *kernel))


def test_a_point_spreads_over_a_whole_kernel():
    """WarpConvNet's reference: (1, 1, 1) at stride 2 becomes the 27 voxels around (2, 2, 2)."""
    out, offsets, made = thc.convolution_map(
        np.int32([[0, 1, 1, 1]]), 3, 2, generative=True, transposed=True
    )
    assert offsets.tolist() == [0, 27] and len(made) == 27
    assert (out[:, 1:].min(), out[:, 1:].max()) == (1, 3)
    assert all(made.numel(k) == 1 for k in range(27))
    assert not made.in_maps.any() and sorted(made.out_maps.tolist()) == list(range(27))
    assert out[made[13][1]].tolist() == [[0, 2, 2, 2]]


@pytest.mark.parametrize("step", [1, 2])
def test_the_centre_of_the_kernel_maps_a_point_to_itself(step):
    coords = np.int32([[0, 0, 0, 0], [0, 0, 0, 1]])
    out, _, made = thc.convolution_map(coords, 3, step, generative=True, transposed=True)
    ins, outs = made[13]
    assert ins[np.argsort(ins)].tolist() == [0, 1]
    same(out[outs[np.argsort(ins)]], coords * np.int32([1, step, step, step]))


def test_without_a_stride_the_centre_of_the_kernel_is_the_identity():
    coords = random_coords(np.random.default_rng(5), 50, 3)
    grown, _, made = thc.convolution_map(coords, 3, generative=True)
    same(np.unique(grown, axis=0), np.unique(thc.expand_coords(coords, 3)[0], axis=0))
    same(grown[made[13][1]], coords[made[13][0]])
    assert len(made[13][0]) == len(coords)


def test_offsets_bound_ascending_batches():
    rows = np.int32([[0, 1, 1, 1], [0, 2, 1, 1], [2, 1, 1, 1], [3, 0, 0, 0]])
    bounds = lambda *a, **k: thc.convolution_map(*a, **k)[1]  # noqa: E731
    assert bounds(rows, 3).tolist() == [0, 2, 2, 3, 4]
    assert bounds(rows, 3, num_batches=6).tolist() == [0, 2, 2, 3, 4, 4, 4]
    assert bounds(rows, 3, 2, num_batches=6).tolist() == [0, 2, 2, 3, 4, 4, 4]
    assert bounds(rows, 1, generative=True, num_batches=5).tolist() == [0, 2, 2, 3, 4, 4]
    assert bounds(rows[::-1], 3) is None
    for first in (-5, 2**24):  # here only batches that occur get an offset
        assert bounds(np.int32([[first, 0, 0, 0], [2**30, 0, 0, 0]]), 3).tolist() == [0, 1, 2]
    assert bounds(rows[:0], 3).tolist() == bounds([], 3).tolist() == [0]
    with pytest.raises(ValueError, match="coords: expected batches from 0 to 2 .*got 3 in row 3"):
        bounds(rows, 3, num_batches=3)


def test_empty_lists_are_no_rows():
    for options in (
        {},
        {"stride": 2},
        {"generative": True},
        {"generative": True, "transposed": True},
        {"stride": 2, "stride_mode": "reduce_and_stride"},
        {"out_coords": []},
    ):
        out, _, made = thc.convolution_map([], 3, **options)
        assert out.shape == (0, 4) and len(made) == 27 and len(made.in_maps) == 0
    assert thc.convolution_map([], (3, 3))[0].shape == (0, 3)
    assert thc.convolution_map([], 3, out_coords=[[0, 1, 1]])[2].num_out == 1


def test_the_framework_and_dtype_of_the_coordinates_are_kept():
    torch = pytest.importorskip("torch")
    coords = random_coords(np.random.default_rng(6), 50, 3).astype(np.int64)
    tensor = torch.from_numpy(coords)
    for options in (
        {},
        {"stride": 2},
        {"generative": True},
        {"transposed": True, "generative": True},
        {"transposed": True, "out_coords": tensor},
    ):
        out, offsets, made = thc.convolution_map(tensor, 3, **options)
        assert out.dtype == torch.int64 and isinstance(made.in_maps, torch.Tensor)
        assert offsets is None or isinstance(offsets, torch.Tensor)
        options.update(out_coords=coords) if "out_coords" in options else None
        plain, _, expected = thc.convolution_map(coords.tolist(), 3, **options)
        same(plain, out.numpy())
        check_map(made, (expected.in_maps, expected.out_maps, expected.offsets))


EVERY_MODE = [
    {},
    {"stride": 2},
    {"generative": True},
    {"stride": 2, "generative": True},
    {"transposed": True, "out_coords": np.zeros((1, 4), np.int32)},
    {"transposed": True, "generative": True},
    {"stride": 2, "stride_mode": "reduce_and_stride"},
    {"stride": 2, "stride_mode": "reduce_and_stride", "generative": True},
    {"out_coords": np.zeros((1, 4), np.int32)},
]


@pytest.mark.parametrize("options", EVERY_MODE, ids=lambda options: " ".join(options) or "plain")
def test_repeated_rows_are_refused_in_every_mode_by_their_name(options):
    twice = np.int32([[0, 1, 2, 3], [0, 4, 5, 6], [1, 1, 2, 3], [0, 4, 5, 6]])
    with pytest.raises(ValueError, match="^coords: row 3 repeats row 1; drop repeated rows"):
        thc.convolution_map(twice, 3, **options)
    if "out_coords" in options:
        with pytest.raises(ValueError, match="^out_coords: row 3 repeats row 1; drop"):
            thc.convolution_map(twice[:3], 3, **{**options, "out_coords": twice})


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"stride_mode": "both"}, ValueError, 'stride_mode: expected "stride_only" or'),
        (
            {"stride_mode": "reduce_and_stride", "transposed": True, "generative": True},
            ValueError,
            'stride_mode: expected "stride_only" with a transposed convolution',
        ),
        (
            {"stride_mode": "reduce_and_stride", "out_coords": np.zeros((1, 4), np.int32)},
            ValueError,
            'stride_mode: expected "stride_only" with out_coords',
        ),
        (
            {"transposed": True},
            ValueError,
            "out_coords: expected the output coordinates of a transposed",
        ),
        (
            {"generative": True, "out_coords": np.zeros((1, 4), np.int32)},
            ValueError,
            "out_coords: expected None, because a generative convolution",
        ),
        ({"out_coords": np.zeros((1, 3), np.int32)}, ValueError, r"out_coords: .*\(M, 4\), got"),
        ({"coords": np.zeros((1, 2), np.int32)}, ValueError, "coords: expected shape .* 2 to 6"),
        ({"coords": np.zeros((1, 4))}, TypeError, "coords: expected int32 or int64, got float64"),
        (
            {"coords": [[0, 0, 0, 0], [0, 0, 2**31, 0]]},
            ValueError,
            "coords: row 1, column 2: expected a number that fits int32, got 2147483648",
        ),
        ({"stride": 0}, ValueError, "stride: expected 1 to"),
        ({"dilation": (1, 1)}, ValueError, "dilation: expected one int or 3"),
        ({"kernel_size": "3"}, TypeError, "kernel_size: expected an int"),
        ({"num_batches": "2"}, TypeError, "num_batches: expected an int, got str"),
    ],
    ids=str,
)
def test_errors_name_the_argument(arguments, error, text):
    given = {"coords": np.zeros((1, 4), np.int32), "kernel_size": 3}
    with pytest.raises(error, match=text):
        thc.convolution_map(**{**given, **arguments})
