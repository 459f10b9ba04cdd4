"""The result of a kernel map: its forms, frameworks and errors, and views that were overwritten."""

import re

import numpy as np
import pytest
from kernel_map_oracle import check_map, offsets_of, pairs_of, random_coords
from oracle import same

import tensorhash.coords as thc


@pytest.fixture
def coords():
    return random_coords(np.random.default_rng(1), 150, 3, -4, 4)


def table_of(expected, rows):
    table = np.full((len(expected[2]) - 1, rows), -1, np.int32)
    for k in range(len(table)):
        group = slice(expected[2][k], expected[2][k + 1])
        table[k, expected[1][group]] = expected[0][group]
    return table


@pytest.mark.parametrize("size", [(2, 3), (3, 3, 3), (7, 7, 7)], ids=str)
def test_table_mask_and_csr_show_the_same_pairs(size):
    axes = len(size)
    rng = np.random.default_rng(2)
    ins, outs = random_coords(rng, 120, axes, -4, 4), random_coords(rng, 90, axes, -5, 5)
    made = thc.generate_kernel_map(ins, outs, 1, size)
    table = table_of(pairs_of(ins, outs, [1] * axes, size), len(outs))
    same(made.pair_table(), table)
    assert made._pair_table is made.pair_table()
    assert made.pair_mask() is made.pair_mask()
    bits = (made.pair_mask()[:, :, None] >> np.arange(32)) & 1
    assert made.pair_mask().dtype == np.int32
    np.testing.assert_array_equal(bits.reshape(len(outs), -1)[:, : len(table)].T, table >= 0)
    in_rows, out_rows, offsets = made.to_csr()
    same(out_rows, np.flatnonzero((table >= 0).any(axis=0)).astype(np.int32))
    assert offsets.dtype == np.int64
    for place, row in enumerate(out_rows):
        column = table[:, row]
        same(in_rows[offsets[place] : offsets[place + 1]], column[column >= 0])


def test_groups_are_slices(coords):
    made = thc.generate_kernel_map(coords, coords, 1, 3)
    in_maps, out_maps, offsets = pairs_of(coords, coords, [1] * 3, (3, 3, 3))
    assert len(made) == len(list(made)) == 27
    for k in range(27):
        group = slice(offsets[k], offsets[k + 1])
        for got in (made[k], made[k - 27]):
            same(got[0], in_maps[group])
            same(got[1], out_maps[group])
        assert made.numel(k) == offsets[k + 1] - offsets[k]
    for wrong in (27, -28):
        with pytest.raises(IndexError, match=f"k: expected -27 <= k < 27, got {wrong}"):
            made[wrong]
    with pytest.raises(TypeError, match="k: expected an int"):
        made["1"]


def test_get_batch_gives_lists_or_padded_arrays(coords):
    made = thc.generate_kernel_map(coords, coords, 1, 3)
    in_list, out_list = made.get_batch(3, 6)
    ins, outs = made.get_batch(3, 6, "tensor")
    assert ins.dtype == outs.dtype == np.int64
    assert ins.shape == outs.shape == (3, max(map(len, in_list)))
    for row, k in enumerate(range(3, 6)):
        same(in_list[row], made[k][0])
        same(out_list[row], made[k][1])
        count = made.numel(k)
        np.testing.assert_array_equal(ins[row, :count], made[k][0])
        np.testing.assert_array_equal(outs[row, :count], made[k][1])
        assert (ins[row, count:] == -1).all() and (outs[row, count:] == -1).all()
    assert made.get_batch(2, 2, "tensor")[0].shape == (0, 0)
    with pytest.raises(ValueError, match="start, end"):
        made.get_batch(5, 28)
    with pytest.raises(ValueError, match="out_format"):
        made.get_batch(0, 1, "dict")


def test_transposed_twice_is_the_map_again():
    rng = np.random.default_rng(3)
    fine = random_coords(rng, 300, 3, -8, 8)
    coarse = np.unique(fine // np.int32([1, 2, 2, 2]), axis=0)
    made = thc.generate_kernel_map(fine, coarse, 2, 3)
    turned = made.transpose()
    assert (turned.num_in, turned.num_out) == (len(coarse), len(fine))
    for k in range(27):
        order = np.argsort(made[k][0], kind="stable")
        same(turned[k][0], made[k][1][order])
        same(turned[k][1], made[k][0][order])
    check_map(turned.transpose(), (made.in_maps, made.out_maps, made.offsets))


def test_a_transposed_map_keeps_every_pair_of_repeated_out_rows(coords):
    outs = np.concatenate([coords[:30], coords[:30], coords[10:20]])
    made = thc.generate_kernel_map(coords, outs, 1, 3)
    turned = made.transpose()
    for k in range(27):
        order = np.lexsort((made[k][1], made[k][0]))
        same(turned[k][0], made[k][1][order])
        same(turned[k][1], made[k][0][order])
    with pytest.raises(ValueError, match="pair_table: an out row has several in rows"):
        turned.pair_table()
    in_rows, out_rows, offsets = turned.to_csr()
    assert offsets[-1] == len(in_rows) == len(made.in_maps)
    assert len(out_rows) == len(np.unique(made.in_maps))


def test_torch_in_torch_out(coords):
    torch = pytest.importorskip("torch")
    expected = pairs_of(coords, coords, [1] * 3, (3, 3, 3))
    made = thc.generate_kernel_map(torch.from_numpy(coords), torch.from_numpy(coords), 1, 3)
    arrays = [made.in_maps, made.out_maps, made.offsets, made.pair_table(), made.pair_mask()]
    arrays += [*made[3], *made.to_csr(), *made.get_batch(0, 2, "tensor"), made.transpose().in_maps]
    assert all(isinstance(array, torch.Tensor) for array in arrays)
    check_map(made, expected)


def test_any_layout_of_coordinates_gives_the_same_map(coords):
    expected = pairs_of(coords, coords, [1] * 3, (3, 3, 3))
    wide = np.zeros((2 * len(coords), 9), np.int32)
    wide[::2, 1::2] = coords
    for view in (
        wide[::2, 1::2],
        np.ascontiguousarray(coords[::-1])[::-1],
        np.asfortranarray(coords),
        coords.astype(">i4"),
        coords.astype(np.int64),
        coords.astype(">i8"),
        coords.tolist(),
    ):
        check_map(thc.generate_kernel_map(view, coords, 1, 3), expected)
        check_map(thc.generate_kernel_map(coords, view, 1, 3), expected)


@pytest.mark.parametrize("form", ["pair_table", "pair_mask", "to_csr", "transpose"])
def test_overwritten_maps_are_refused_not_followed(coords, form):
    for spoil in (
        lambda made: made.in_maps.__setitem__(5, 10**9),
        lambda made: made.in_maps.__setitem__(5, -1),
        lambda made: made.out_maps.__setitem__(5, 10**9),
        lambda made: made.out_maps.__setitem__(-1, -(2**31)),
        lambda made: made.offsets.__setitem__(3, 10**12),
        lambda made: made.offsets.__setitem__(-1, 7),
        lambda made: made.offsets.__setitem__(0, -5),
    ):
        made = thc.generate_kernel_map(coords, coords, 1, 3)
        spoil(made)
        with pytest.raises(ValueError, match="written to after it was made"):
            getattr(made, form)()
        assert len(made[3][0]) == made.numel(3)


@pytest.mark.parametrize(
    "size, dilation, center",
    [((3, 3, 3), 1, None), ((2, 3, 1), (1, 2, 1), None), ((3, 2), 2, (0, 1)), ((2,) * 6, 1, None)],
    ids=str,
)
def test_offsets_of_a_kernel_run_over_the_last_axis_first(size, dilation, center):
    axes = len(size)
    got = thc.kernel_offsets_from_size(size, dilation, center)
    spread = np.broadcast_to(dilation, axes).tolist()
    want = np.array(offsets_of(size, spread, center), np.int32)
    same(got, np.concatenate([np.zeros((len(want), 1), np.int32), want], axis=1))
    assert (got[:, 0] == 0).all()


def test_known_offsets():
    cube = thc.kernel_offsets_from_size((3, 3, 3), (1, 1, 1))
    assert cube[[0, 1, 13, 26]].tolist() == [[0, -1, -1, -1], [0, -1, -1, 0], [0] * 4, [0, 1, 1, 1]]
    assert thc.kernel_offsets_from_size((2, 2, 2), 1)[1].tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"kernel_size": (3, 3)}, ValueError, "kernel_size: expected 3 numbers.*got 2"),
        ({"kernel_size": (3, 0, 3)}, ValueError, "kernel_size: axis 1: expected 1 to .*, got 0"),
        ({"kernel_size": (10**6,) * 3}, ValueError, "kernel_size: expected at most 16777216"),
        ({"kernel_size": 2.5}, TypeError, "kernel_size: expected an int or a sequence.*2.5"),
        ({"kernel_dilation": (1, -1, 1)}, ValueError, "kernel_dilation: axis 1"),
        ({"kernel_dilation": 2**31 - 1, "kernel_size": 7}, ValueError, "do not fit int32"),
        ({"kernel_center_offset": (1, 1)}, ValueError, "center_offset: expected 3 numbers"),
        ({"kernel_center_offset": 2**62}, ValueError, "do not fit int32"),
        ({"in_to_out_stride_ratio": 0}, ValueError, "in_to_out_stride_ratio: axis 0"),
        ({"in_to_out_stride_ratio": (1, 2)}, ValueError, "in_to_out_stride_ratio: expected 3"),
        ({"method": "hash"}, ValueError, 'method: expected "size" or "offset"'),
        ({"strategy": "fast"}, ValueError, 'strategy: expected "blocks"'),
        ({"strategy": 3}, TypeError, "strategy: expected a str"),
        ({"duplicates": "last"}, ValueError, "duplicates"),
        ({"in_coords": np.zeros((3, 4), np.float32)}, TypeError, "in_coords: expected int32"),
        ({"in_coords": np.zeros((3, 2), np.int32)}, ValueError, "in_coords: expected shape"),
        ({"in_coords": np.zeros(4, np.int32)}, ValueError, "in_coords: expected shape"),
        ({"out_coords": np.zeros((3, 5), np.int32)}, ValueError, "out_coords: expected shape"),
        (
            {"out_coords": [[0, 0, 2**31, 0]]},
            ValueError,
            "out_coords: row 0, column 2: .*2147483648",
        ),
        (
            {"out_coords": np.int64([[0, 0, 0, 0], [0, 0, -(2**31) - 1, 0]])},
            ValueError,
            "out_coords: row 1, column 2: .*-2147483649",
        ),
    ],
    ids=str,
)
def test_errors_name_the_argument_and_what_came(coords, arguments, error, text):
    given = {
        "in_coords": coords,
        "out_coords": coords,
        "in_to_out_stride_ratio": 1,
        "kernel_size": 3,
    }
    with pytest.raises(error, match=text):
        thc.generate_kernel_map(**{**given, **arguments})


def test_coordinates_without_a_batch_column_say_so(coords):
    bare, size = coords[:, 1:], (3, 3, 3)
    calls = {
        "in_coords": lambda c: thc.generate_kernel_map(c, coords, 1, size),
        "out_coords": lambda c: thc.generate_kernel_map(coords, c, 1, size),
        "coords": lambda c: thc.convolution_map(c, size),
    }
    for argument, call in calls.items():
        text = rf"^{argument}: expected shape \(N, 4\), the batch in column 0.*no batch column; (np.*) adds"
        with pytest.raises(ValueError, match=text) as error:
            call(bare)
        code = re.search(text, str(error.value))[1]
        call(eval(code, {"np": np, argument: thc.unique_coords(bare)}))
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="no batch column; torch.nn.functional.pad"):
        thc.generate_kernel_map(torch.tensor(bare), torch.tensor(bare), 1, size)


def test_kernels_have_two_to_six_axes():
    for axes in (1, 7):
        with pytest.raises(ValueError, match=f"kernel_size: expected 2 to 6 axes, got {axes}"):
            thc.kernel_offsets_from_size((3,) * axes, 1)


def test_empty_lists_are_no_rows():
    coords = np.int32([[0, 1, 2, 3], [0, 1, 2, 4]])
    nothing = np.empty(0, np.int32)
    for ins, outs in (([], []), ([], coords), (coords, []), (nothing, coords), (nothing, nothing)):
        for size in (3, (3, 3, 3)):
            for strategy in ("merge", "flat", "hierarchical", "blocks"):
                made = thc.generate_kernel_map(ins, outs, 1, size, strategy=strategy)
                assert made.offsets.tolist() == [0] * 28 and len(made.in_maps) == 0
                assert (made.num_in, made.num_out) == (len(ins), len(outs))
    assert len(thc.generate_kernel_map([], [], 1, (3, 5))) == 15
    assert len(thc.generate_kernel_map([], [], (1, 1), 3)) == 9


def test_numbers_beyond_64_bits_and_group_indices_that_are_not_ints_are_named():
    coords = np.int32([[0, 1, 2, 3]])
    for name in ("kernel_size", "in_to_out_stride_ratio", "kernel_dilation"):
        for number in (2**70, (1, 2**70, 1)):
            arguments = {"in_to_out_stride_ratio": 1, "kernel_size": 3, name: number}
            with pytest.raises(ValueError, match=f"{name}: .*64 bits, got {2**70}"):
                thc.generate_kernel_map(coords, coords, **arguments)
    made = thc.generate_kernel_map(coords, coords, 1, 3)
    with pytest.raises(TypeError, match="start: expected an int, got float"):
        made.get_batch(0.5, 1)
    with pytest.raises(TypeError, match="end: expected an int, got str"):
        made.get_batch(0, "1")
