"""Kernel maps for any list of offsets, compared with all pairs of rows."""

import numpy as np
import pytest

import tensorhash
from tensorhash.coords import (
    generate_kernel_map,
    kernel_map_from_offsets,
    kernel_offsets_from_size,
)

torch = pytest.importorskip("torch")


def random_rows(count, axes=3, seed=0, reach=6, batches=2):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-reach, reach + 1, (count, axes + 1), dtype=np.int32)
    rows[:, 0] = rng.integers(0, batches, count)
    return np.unique(rows, axis=0)[rng.permutation(len(np.unique(rows, axis=0)))]


def every_pair(rows_in, rows_out, offsets, stride):
    """The groups in plain Python."""
    first = {}
    for i, row in enumerate(rows_in.tolist()):
        first.setdefault(tuple(row), i)
    scale = [1, *np.broadcast_to(stride, rows_in.shape[1] - 1).tolist()]
    groups = []
    for by in np.asarray(offsets).tolist():
        sought = [
            tuple(c * s + d for c, s, d in zip(row, scale, by, strict=True))
            for row in rows_out.tolist()
        ]
        groups.append([(first[row], o) for o, row in enumerate(sought) if row in first])
    return groups


def check(pairs, want):
    assert len(pairs) == len(want)
    for (ins, outs), group in zip(pairs, want, strict=True):
        assert list(zip(ins.tolist(), outs.tolist(), strict=True)) == group


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("axes", [2, 3, 6])
@pytest.mark.parametrize("stride", [1, 2])
def test_every_offset_gets_its_pairs(threads, axes, stride):
    tensorhash.set_num_threads(threads)
    rows_in, rows_out = random_rows(600, axes, reach=3), random_rows(500, axes, 1, reach=3)
    offsets = np.random.default_rng(2).integers(-3, 4, (23, axes + 1))
    offsets[:, 0] = 0
    offsets[5] = offsets[11]  # offsets may repeat
    made = kernel_map_from_offsets(rows_in, rows_out, offsets, stride)
    check(made, every_pair(rows_in, rows_out, offsets, stride))
    assert (made.num_in, made.num_out) == (len(rows_in), len(rows_out))
    assert made.in_maps.dtype == np.int32 and made.offsets.dtype == np.int64
    assert made.strategy == "flat"


def test_a_box_of_offsets_gives_the_map_of_the_kernel():
    rows = random_rows(2000)
    for size in ((3, 3, 3), (2, 3, 1)):
        box = generate_kernel_map(rows, rows, 1, size)
        made = kernel_map_from_offsets(rows, rows, kernel_offsets_from_size(size))
        for one, other in (
            (made.in_maps, box.in_maps),
            (made.out_maps, box.out_maps),
            (made.offsets, box.offsets),
        ):
            np.testing.assert_array_equal(one, other)


def test_the_identity_is_the_first_zero_offset_over_equal_rows():
    rows = random_rows(50)
    offsets = [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert kernel_map_from_offsets(rows, rows, offsets).identity_map_index == 1
    assert kernel_map_from_offsets(rows, rows[::-1], offsets).identity_map_index is None
    assert kernel_map_from_offsets(rows, rows, offsets, 2).identity_map_index is None
    assert kernel_map_from_offsets(rows, rows, offsets[:1]).identity_map_index is None


def test_no_rows_and_no_offsets():
    rows = random_rows(5)
    none = kernel_map_from_offsets(rows, rows, np.empty((0, 4), np.int32))
    assert (len(none), none.offsets.tolist(), none.num_out) == (0, [0], len(rows))
    assert len(kernel_map_from_offsets(rows, rows, [])) == 0
    offsets = [[0, 1, 1]]
    for made in (
        kernel_map_from_offsets([], [[0, 1, 1]], offsets),
        kernel_map_from_offsets([[0, 1, 1]], [], offsets),
        kernel_map_from_offsets([], [], offsets),
    ):
        assert made.offsets.tolist() == [0, 0]


def test_repeated_rows_and_their_first():
    rows = np.repeat(random_rows(40), 2, axis=0)
    offsets = [[0, 0, 0, 0], [0, 1, 0, 0]]
    with pytest.raises(ValueError, match="in_coords: row 1 repeats row 0"):
        kernel_map_from_offsets(rows, rows, offsets)
    made = kernel_map_from_offsets(rows, rows, offsets, duplicates="first")
    check(made, every_pair(rows, rows, offsets, 1))
    assert made.identity_map_index is None


def test_offsets_at_the_ends_of_int32_do_not_wrap():
    least, most = -(2**31), 2**31 - 1
    rows = np.int32([[0, least, 0], [0, most, 0], [0, 0, 0]])
    offsets = [[0, most, 0], [0, least, 0], [0, 1, 0], [0, -1, 0]]
    check(kernel_map_from_offsets(rows, rows, offsets), every_pair(rows, rows, offsets, 1))
    check(kernel_map_from_offsets(rows, rows, offsets, 5), every_pair(rows, rows, offsets, 5))


def test_a_torch_convolution_over_a_cross():
    from tensorhash.torch import sparse_conv

    coords = torch.from_numpy(random_rows(200))
    cross = torch.zeros(7, 4, dtype=torch.int32)
    for axis in range(3):
        cross[2 * axis + 1, axis + 1], cross[2 * axis + 2, axis + 1] = 1, -1
    pairs = kernel_map_from_offsets(coords, coords, cross)
    assert isinstance(pairs.in_maps, torch.Tensor)
    out = sparse_conv(torch.ones(len(coords), 1), torch.ones(7, 1, 1), pairs)
    assert torch.equal(out[:, 0], pairs.neighbor_count_per_output().float())


@pytest.mark.parametrize(
    ("offsets", "options", "text"),
    [
        (
            [[1, 0, 0, 0]],
            {},
            "kernel_offsets: row 0, column 0: expected 0, because a map joins",
        ),
        ([[0, 0, 0]], {}, r"kernel_offsets: expected shape \(N, 4\), got \(1, 3\)"),
        ([[0.5, 0, 0, 0]], {}, "kernel_offsets"),
        ([[0, 2**31, 0, 0]], {}, "kernel_offsets: row 0, column 1: expected a number that fits"),
        ([[0, 0, 0, 0]], {"in_to_out_stride_ratio": 0}, "in_to_out_stride_ratio: axis 0"),
        ([[0, 0, 0, 0]], {"in_to_out_stride_ratio": (1, 2)}, "in_to_out_stride_ratio: expected 3"),
        ([[0, 0, 0, 0]], {"duplicates": "last"}, 'duplicates: expected "error" or "first"'),
    ],
)
def test_errors_name_the_argument(offsets, options, text):
    rows = random_rows(5)
    with pytest.raises((TypeError, ValueError), match=text):
        kernel_map_from_offsets(rows, rows, offsets, **options)
