"""expand_coords, stride_coords, unique_coords and IntCoords against plain Python.

Over 400 lines: one file tests one module, with helpers that all tests share.
"""

import doctest
import importlib
import itertools

import numpy as np
import pytest
from oracle import once_on_a_device

import tensorhash
import tensorhash.coords as thc
from tensorhash.coords import IntCoords, expand_coords, stride_coords, unique_coords


def offsets_of(sizes, dilations):
    axes = [
        [(i - ((size - 1) // 2 if size % 2 else 0)) * dilation for i in range(size)]
        for size, dilation in zip(sizes, dilations, strict=True)
    ]
    return list(itertools.product(*axes))


def by_batch(rows, batches):
    """(rows with ascending batches, offsets) from rows in order of first occurrence."""
    distinct = list(dict.fromkeys(rows))
    groups = [[row for row in distinct if row[0] == b] for b in range(batches)]
    return list(itertools.chain(*groups)), np.cumsum([0, *map(len, groups)]).tolist()


def expanded(coords, sizes, dilations, batches):
    rows = [tuple(row) for row in coords.tolist()]
    shifted = [
        (b, *(x + d for x, d in zip(xyz, offset, strict=True)))
        for offset in offsets_of(sizes, dilations)
        for b, *xyz in rows
    ]
    return by_batch(rows + shifted, batches)


def assert_same(found, expected, dtype):
    coords, offsets = found
    assert list(map(tuple, coords.tolist())) == expected[0]
    assert offsets.tolist() == expected[1]
    assert coords.dtype == dtype and offsets.dtype == np.int64


def random_coords(rng, rows, axes, dtype="int32", batches=3, reach=4):
    """With duplicates, negative coordinates, batches in any order, and an empty middle batch."""
    coords = rng.integers(-reach, reach + 1, (rows, 1 + axes)).astype(dtype)
    coords[:, 0] = rng.choice([b for b in range(batches) if b != 1], rows)
    return coords


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("sizes", "dilations"),
    [
        ((3,), (1,)),
        ((2, 3), (1, 2)),
        ((3, 3, 3), (1, 1, 1)),
        ((2, 2, 2), (1, 1, 1)),
        ((1, 3, 4), (5, 1, 2)),
        ((1, 13, 1), (1, 1, 1)),
        ((2, 1, 3, 2), (1, 1, 1, 3)),
        ((1, 2, 1, 3, 1, 2), (1, 1, 1, 1, 1, 1)),
    ],
)
def test_expand_is_every_row_plus_every_offset_once(dtype, sizes, dilations):
    coords = random_coords(np.random.default_rng(len(sizes)), 60, len(sizes), dtype)
    expected = expanded(coords, sizes, dilations, 3)
    for kernel_batch in (None, 1, 2, 7, 10**6):
        found = expand_coords(coords, sizes, dilations, kernel_batch)
        assert_same(found, expected, dtype)


def test_expand_of_a_cube_from_one_number():
    coords = np.array([[0, 1, 1, 1]], np.int32)
    found, offsets = expand_coords(coords, 3, 1)
    assert found[0].tolist() == [0, 1, 1, 1] and offsets.tolist() == [0, 27]
    assert sorted(map(tuple, found[:, 1:].tolist())) == list(itertools.product(range(3), repeat=3))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("stride", [1, 2, 3, (2, 1, 5), 2**31 - 1])
def test_stride_rounds_down(dtype, stride):
    coords = random_coords(np.random.default_rng(1), 300, 3, dtype, reach=9)
    by = (stride,) * 3 if isinstance(stride, int) else stride
    rows = [(b, *(x // s for x, s in zip(xyz, by, strict=True))) for b, *xyz in coords.tolist()]
    assert_same(stride_coords(coords, stride), by_batch(rows, 3), dtype)


def test_stride_at_the_ends_of_the_range():
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    coords = np.array([[0, least, most], [0, least + 1, 0]], np.int32)
    for stride in (1, 2, 3, most):
        found = stride_coords(coords, stride)[0]
        assert found.tolist() == [[b, x // stride, y // stride] for b, x, y in coords.tolist()]


def test_empty_batches_are_kept():
    coords = np.array([[3, 1, 1], [0, 1, 1]], np.int32)
    assert stride_coords(coords, 1)[1].tolist() == [0, 1, 1, 1, 2]
    assert stride_coords(coords, 1, num_batches=6)[1].tolist() == [0, 1, 1, 1, 2, 2, 2]
    assert expand_coords(coords, 1, num_batches=6)[1].tolist() == [0, 1, 1, 1, 2, 2, 2]


def test_nothing_in_nothing_out():
    empty = np.zeros((0, 4), np.int64)
    for found, offsets in (expand_coords(empty, 3), stride_coords(empty, 2)):
        assert found.shape == (0, 4) and found.dtype == np.int64 and offsets.tolist() == [0]
    assert expand_coords(empty, 3, num_batches=2)[1].tolist() == [0, 0, 0]
    assert unique_coords(empty).shape == (0, 4)
    for found, offsets in (expand_coords([], 3), stride_coords([], (2, 2, 2))):
        assert found.shape == (0, 4) and offsets.tolist() == [0]
    assert expand_coords(np.empty(0, np.int32), (3, 1))[0].shape == (0, 3)
    assert IntCoords.from_batched([]).batch_size == 0


def test_any_integer_is_a_batch_number():
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    coords = np.array([[most, 5], [-1, 3], [2**24, 0], [-1, 2], [least, 7]], np.int32)
    found, offsets = stride_coords(coords, 2)
    assert found.tolist() == [[least, 3], [-1, 1], [2**24, 0], [most, 2]]
    assert offsets.tolist() == [0, 1, 2, 3, 4]
    found, offsets = expand_coords(coords.astype(np.int64), 3)
    assert offsets.tolist() == [0, 3, 7, 10, 13]
    assert found[3:7].tolist() == [[-1, 3], [-1, 2], [-1, 1], [-1, 4]]


def test_items_of_int_coords_keep_any_batch_number():
    rows = np.array([[2**24, 5], [-1, 3], [2**24, 4], [-1, 3]])
    coords = IntCoords.from_batched(rows)
    assert coords.batch_size == 2 and coords.offsets.tolist() == [0, 2, 4]
    assert coords[1].tolist() == [[5], [4]]
    assert coords.batch_indexed_coordinates[:, 0].tolist() == [-1, -1, 2**24, 2**24]
    assert coords.hashmap.search(rows[:1]).tolist() == [2]
    for made, sizes in ((coords.strided(2), [1, 1]), (coords.expand(3), [3, 4])):
        assert np.diff(made.offsets).tolist() == sizes
        assert np.unique(made.batch_indexed_coordinates[:, 0]).tolist() == [-1, 2**24]
    assert coords.unique().coordinates.tolist() == [[3], [5], [4]]
    with pytest.raises(ValueError, match="batches from 0 to 6.*num_batches.*got 16777216 in row 0"):
        IntCoords.from_batched(rows, 7)


def test_many_rows_expand_without_duplicates():
    rng = np.random.default_rng(2)
    coords = rng.integers(-20, 21, (60_000, 4)).astype(np.int32)
    coords[:, 0] = rng.integers(0, 4, 60_000)
    found, offsets = expand_coords(coords, 3)
    b, x, y, z = found.astype(np.int64).T
    numbers = ((b * 101 + x + 50) * 101 + y + 50) * 101 + z + 50
    assert len(np.unique(numbers)) == len(found) > 200_000
    assert offsets.tolist() == [0, *np.cumsum(np.bincount(b)).tolist()]


@once_on_a_device("threads", [1, 2, 8])
def test_the_result_does_not_depend_on_the_number_of_threads(threads):
    coords = random_coords(np.random.default_rng(3), 30_000, 3, reach=40)
    tensorhash.set_num_threads(3)
    expected = [*expand_coords(coords, 3), *stride_coords(coords, 2)]
    tensorhash.set_num_threads(threads)
    found = [*expand_coords(coords, 3), *stride_coords(coords, 2)]
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()


def test_coordinates_at_the_edge_of_their_dtype():
    for dtype in ("int32", "int64"):
        most = np.iinfo(dtype).max
        inside = np.array([[0, most - 1]], dtype)
        assert expand_coords(inside, 3)[0].tolist() == [[0, most - 1], [0, most - 2], [0, most]]
        with pytest.raises(ValueError, match=f"row 0, column 1: {most} plus an offset.*{dtype}"):
            expand_coords(inside + np.array([0, 1], dtype), 3)
    for dtype in ("int32", "int64"):
        with pytest.raises(ValueError, match="do not fit int32"):
            expand_coords(np.array([[0, 0]], dtype), 5, 2**31 - 1)


def test_unique_coords_keeps_first_occurrences_and_returns_the_requested_arrays():
    coords = random_coords(np.random.default_rng(4), 500, 3, reach=2)
    rows = list(map(tuple, coords.tolist()))
    distinct = list(dict.fromkeys(rows))
    assert list(map(tuple, unique_coords(coords).tolist())) == distinct
    found, index, inverse, counts = unique_coords(coords, True, True, True)
    assert index.tolist() == [rows.index(row) for row in distinct]
    assert np.array_equal(found[inverse], coords)
    assert counts.tolist() == [rows.count(row) for row in distinct]


def test_strides_and_torch():
    torch = pytest.importorskip("torch")
    base = random_coords(np.random.default_rng(5), 80, 5, "int64")
    coords = base[::-2, ::2]
    coords = np.where(np.arange(3) == 0, abs(coords), coords)
    view = np.repeat(coords, 2, axis=1)[::-1, ::2][::-1]
    for call in (lambda c: expand_coords(c, 3), lambda c: stride_coords(c, 2)):
        plain = call(coords)
        for one, other in zip(call(view), plain, strict=True):
            assert np.array_equal(one, other)
        for one, other in zip(call(torch.from_numpy(coords)), plain, strict=True):
            assert isinstance(one, torch.Tensor) and np.array_equal(one.numpy(), other)
    assert isinstance(unique_coords(torch.from_numpy(coords)), torch.Tensor)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c: expand_coords(c, (3, 3)), ValueError, "kernel_size: expected one int or 3"),
        (lambda c: expand_coords(c, 0), ValueError, "kernel_size: expected 1 to"),
        (lambda c: expand_coords(c, 1000), ValueError, "kernel_size: expected at most"),
        (lambda c: expand_coords(c, 3.0), TypeError, "kernel_size: expected an int or 3"),
        (lambda c: expand_coords(c, 3, -1), ValueError, "kernel_dilation: expected 1 to"),
        (lambda c: expand_coords(c, 3, 1, 0), ValueError, "kernel_batch: expected 1 or more"),
        (lambda c: expand_coords(c, 3, num_batches=1), ValueError, "batches from 0 to 0.*got 2"),
        (lambda c: stride_coords(c, 0), ValueError, "stride: expected 1 to"),
        (lambda c: stride_coords(c, (1, 2)), ValueError, "stride: expected one int or 3"),
        (lambda c: stride_coords(c, 2, num_batches=-1), ValueError, "num_batches: expected 0 to"),
        (
            lambda c: stride_coords(-c, 2, num_batches=3),
            ValueError,
            "batches from 0 to 2.*got -2 in row 0",
        ),
        (lambda c: stride_coords(c.astype("float32"), 2), TypeError, "coords: expected int32"),
        (lambda c: stride_coords(c[:, :1], 2), ValueError, r"coords: expected shape \(N, 1 \+ D\)"),
        (lambda c: stride_coords(c[0], 2), ValueError, r"coords: expected shape \(N, 1 \+ D\)"),
        (lambda c: unique_coords(c.astype("uint8")), TypeError, "coords: expected int32"),
        (lambda c: unique_coords(c[0]), ValueError, r"coords: expected shape \(N, columns\)"),
        (
            lambda c: IntCoords.from_batched(c, "a"),
            TypeError,
            "num_batches: expected an int, got str",
        ),
        (
            lambda c: IntCoords.from_batched(c, 2.5),
            TypeError,
            "num_batches: expected an int, got flo",
        ),
        (
            lambda c: IntCoords.from_batched(c, 2**70),
            ValueError,
            f"num_batches: expected at most 16777216, got {2**70}",
        ),
        (
            lambda c: stride_coords(c, 2, num_batches=2**25),
            ValueError,
            "num_batches: expected 0 to 16777216",
        ),
        (
            lambda c: expand_coords(c, 3, 1, 2**70),
            ValueError,
            f"kernel_batch: expected at most {2**63 - 1}, got {2**70}",
        ),
        (lambda c: IntCoords(c)[2**70], IndexError, f"item: expected -1 <= item < 1, got {2**70}"),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(np.array([[2, 1, 1, 1], [0, 1, 2, 3]], np.int32))


def test_an_empty_list_is_no_rows():
    assert unique_coords([]).shape == (0, 4) and unique_coords([]).dtype == np.int64
    parts = unique_coords([], return_index=True, return_inverse=True, return_counts=True)
    assert [part.shape for part in parts] == [(0, 4), (0,), (0,), (0,)]
    for made, axes in (
        (IntCoords([]), 3),
        (IntCoords([], tensor_stride=(2, 2)), 2),
        (IntCoords.from_batched([]), 3),
        (IntCoords.from_batched([], tensor_stride=(2, 2)), 2),
    ):
        assert (len(made), made.num_axes, made.coordinates.shape) == (0, axes, (0, axes))
        assert len(made.expand(3)) == len(made.strided(2)) == len(made.unique()) == 0
    assert IntCoords([], [0, 0, 0]).batch_size == 2


def test_no_dilation_is_dilation_one():
    coords = random_coords(np.random.default_rng(7), 20, 3)
    for one, other in zip(expand_coords(coords, 3, None), expand_coords(coords, 3), strict=True):
        assert np.array_equal(one, other)
    made = IntCoords.from_batched(coords)
    assert np.array_equal(made.expand(3, None).coordinates, made.expand(3).coordinates)


def test_int_coords_know_their_batches():
    rows = np.array([[0, 1], [2, 3], [9, -9]], np.int32)
    coords = IntCoords(rows, [0, 2, 2, 3])
    assert (len(coords), coords.batch_size, coords.num_axes) == (3, 3, 2)
    assert coords.batch_indexed_coordinates.tolist() == [[0, 0, 1], [0, 2, 3], [2, 9, -9]]
    assert [coords[i].tolist() for i in (0, 1, -1)] == [[[0, 1], [2, 3]], [], [[9, -9]]]
    assert coords.coordinates.dtype == np.int32 and coords.offsets.tolist() == [0, 2, 2, 3]
    for other in (
        IntCoords([rows[:2], rows[:0], rows[2:]]),
        IntCoords.from_batched(coords.batch_indexed_coordinates[::-1][[1, 2, 0]]),
        IntCoords.from_batched(coords.batch_indexed_coordinates.astype(">i4"), 3),
    ):
        assert sorted(other[0].tolist()) == [[0, 1], [2, 3]]
        assert other.offsets.tolist() == [0, 2, 2, 3] and other[2].tolist() == [[9, -9]]
    assert IntCoords(rows).offsets.tolist() == [0, 3]
    assert IntCoords(rows.astype(">i8")).coordinates.dtype == np.int64


def test_int_coords_expand_stride_and_unique_keep_batches_and_strides():
    rng = np.random.default_rng(6)
    given = random_coords(rng, 90, 3)
    coords = IntCoords.from_batched(given, num_batches=5)
    grown = coords.expand(3, 2, kernel_batch=4)
    expected = expanded(coords.batch_indexed_coordinates, (3,) * 3, (2,) * 3, 5)
    assert_same((grown.batch_indexed_coordinates, grown.offsets), expected, np.int32)
    coarse = coords.strided(2).strided((1, 3, 2))
    assert coarse.tensor_stride == (2, 6, 4) and grown.tensor_stride == (1, 1, 1)
    found, offsets = stride_coords(given, (2, 6, 4), num_batches=5)
    assert set(map(tuple, coarse.batch_indexed_coordinates.tolist())) == set(
        map(tuple, found.tolist())
    )
    assert coarse.offsets.tolist() == offsets.tolist() and coarse.batch_size == 5
    rows = list(map(tuple, coords.batch_indexed_coordinates.tolist()))
    assert_same(
        (coords.unique().batch_indexed_coordinates, coords.unique().offsets),
        by_batch(rows, 5),
        np.int32,
    )


def test_int_coords_keep_their_tensor_stride():
    rows = random_coords(np.random.default_rng(8), 30, 3)
    for coords in (IntCoords.from_batched(rows, 5, 4), IntCoords(rows[:, 1:], tensor_stride=4)):
        assert coords.unique().tensor_stride == coords.expand(3).tensor_stride == (4, 4, 4)
        assert coords.strided((1, 2, 3)).tensor_stride == (4, 8, 12)
        assert coords.strided(2).unique().expand(2).tensor_stride == (8, 8, 8)


@pytest.mark.parametrize("axes", [1, 2, 3, 6])
@pytest.mark.parametrize("reach", [5, 2**30])
def test_the_hashmap_of_int_coords_finds_the_first_row(axes, reach):
    given = random_coords(np.random.default_rng(axes), 200, axes, "int64", reach=reach)
    coords = IntCoords.from_batched(given)
    rows = list(map(tuple, coords.batch_indexed_coordinates.tolist()))
    assert coords.hashmap is coords.hashmap
    assert coords.hashmap.search(np.array(rows)).tolist() == [rows.index(row) for row in rows]
    assert coords.hashmap.search(np.array(rows) + 2**31).tolist() == [-1] * 200


def test_int_coords_share_no_memory():
    torch = pytest.importorskip("torch")
    for rows in (np.arange(6).reshape(3, 2), torch.arange(6).reshape(3, 2)):
        offsets = np.array([0, 1, 3])
        coords = IntCoords(rows, offsets)
        assert isinstance(coords.coordinates, type(rows))
        rows[:] = 77
        offsets[:] = 0
        for out in (coords.coordinates, coords.batch_indexed_coordinates, coords.offsets):
            out[:] = 55
        coords[1][:] = 55
        assert coords.coordinates.tolist() == [[0, 1], [2, 3], [4, 5]]
        assert coords.offsets.tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[0.5]],), TypeError, "coords: row 0: expected int64, got the float 0.5"),
        ((np.zeros((3, 1)),), TypeError, "coords: expected int32 or int64, got float64"),
        ((np.zeros(3, int),), ValueError, r"coords: expected shape \(N, D\), got \(3,\)"),
        (
            (np.zeros((3, 1), int), [0, 2]),
            ValueError,
            "offsets: expected numbers from 0 to 3.*0 to 2",
        ),
        (
            (np.zeros((3, 1), int), [1, 3]),
            ValueError,
            "offsets: expected numbers from 0 to 3.*1 to 3",
        ),
        (
            (np.zeros((3, 1), int), [0, 2, 1, 3]),
            ValueError,
            "never decrease, got 2 and then 1 at 2",
        ),
        ((np.zeros((3, 1), int), [[0, 3]]), ValueError, r"offsets: expected shape \(B \+ 1,\)"),
        ((np.zeros((3, 1), int), []), ValueError, r"offsets: expected shape \(B \+ 1,\)"),
        ((np.zeros((3, 1), int), [0.0, 3.0]), TypeError, "offsets: row 0: expected int64"),
        ((np.zeros((3, 1), int), np.array([0.0, 3.0])), TypeError, "offsets: expected integers"),
        (([np.zeros((1, 2), int)], [0, 1]), ValueError, "offsets: expected None"),
        (
            ([np.zeros((1, 2), int), np.zeros((1, 3), int)],),
            ValueError,
            r"coords\[1\]: expected shape \(N, 2\)",
        ),
        (
            ([np.zeros((1, 2), np.int32), np.zeros((1, 2), np.int64)],),
            TypeError,
            r"coords\[1\]: expected int32, got int64",
        ),
        ((np.zeros((3, 1), int), None, None, 0), ValueError, "tensor_stride: expected 1 to"),
    ],
)
def test_bad_int_coords_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        IntCoords(*arguments)


def test_an_absent_item_is_an_index_error():
    coords = IntCoords(np.zeros((3, 1), int))
    assert len(coords[0]) == len(coords[-1]) == 3
    for item in (1, -2):
        with pytest.raises(IndexError, match="item: expected -1 <= item < 1"):
            coords[item]
    with pytest.raises(TypeError, match="item: expected an int, got str"):
        coords["first"]


@pytest.mark.parametrize(
    "module", ["", ".convolution", ".int_coords", ".kernel_map", ".neighbours", ".ops", ".voxels"]
)
def test_the_examples_in_docstrings_are_true(module):
    imported = importlib.import_module("tensorhash.coords" + module)
    failed, tried = doctest.testmod(imported, extraglobs={"np": np})
    assert failed == 0 and tried > 0


def test_the_error_names_rows_without_a_batch_column_not_the_kernel():
    rows = np.zeros((1, 3), np.int32)
    pad = r"there is no batch column; np\.pad\({0}, .* adds batch 0$"
    with pytest.raises(ValueError, match="^coords: .*axes of kernel_size.*" + pad.format("coords")):
        thc.expand_coords(rows, (3, 3, 3))
    offsets = np.zeros((1, 4), np.int32)
    padded = np.pad(rows, ((0, 0), (1, 0)))
    for argument, given in (("in_coords", (rows, padded)), ("out_coords", (padded, rows))):
        text = f"^{argument}: .*axes of kernel_offsets.*" + pad.format(argument)
        with pytest.raises(ValueError, match=text):
            thc.kernel_map_from_offsets(*given, offsets)
    assert len(thc.kernel_map_from_offsets(padded, padded, offsets).in_maps) == 1
