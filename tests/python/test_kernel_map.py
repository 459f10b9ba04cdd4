"""Kernel maps: every pair exactly once, in the frozen order, on every path."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_map_oracle import check_all, check_map, offsets_of, pairs_of, random_coords
from oracle import ON_CPU, cpu_only, once_on_a_device, same

import tensorhash
import tensorhash.coords as thc

KERNELS = [
    ((3, 3), None, None),
    ((2, 2), None, None),
    ((5, 4), (2, 3), None),
    ((3, 3, 3), None, None),
    ((2, 2, 2), None, None),
    ((5, 5, 5), None, None),
    ((3, 5, 7), None, None),
    ((2, 3, 1), None, None),
    ((1, 1, 1), None, None),
    ((1, 13, 13), None, None),
    ((13, 13, 1), None, None),
    ((15, 3, 3), None, None),
    ((3, 3, 3), (2, 1, 3), None),
    ((3, 3, 3), (1, 1, 9), None),
    ((4, 2, 3), (1, 2, 5), None),
    ((3, 3, 3), None, (0, 0, 0)),
    ((3, 3, 3), None, (2, 1, 0)),
    ((2, 4, 3), None, (1, 1, 1)),
    ((3, 2, 3), (2, 2, 2), (5, -3, 1)),
    ((3, 3, 3, 3), None, None),
    ((2, 3, 1, 4), (1, 2, 1, 2), None),
    ((3, 1, 3, 2, 3), None, None),
    ((3, 2, 1, 3, 1, 2), None, None),
]


@pytest.mark.parametrize("size, dilation, center", KERNELS, ids=str)
def test_every_kernel_gives_the_map_of_brute_force(size, dilation, center):
    rng = np.random.default_rng(sum(size))
    axes = len(size)
    low, high = (-8, 8) if axes < 4 else (-2, 3)
    coords = random_coords(rng, 300, axes, low, high)
    others = random_coords(rng, 200, axes, low, high)
    check_all(coords, coords, [1] * axes, size, dilation, center)
    check_all(coords, others, [1] * axes, size, dilation, center)


@pytest.mark.parametrize("size", [(3, 3, 3), (2, 2, 2), (5, 5, 5), (2, 3), (3, 3, 2, 1)], ids=str)
@pytest.mark.parametrize("ratio", [2, 4, 3])
def test_strided_maps_pair_rows_by_the_ratio(size, ratio):
    rng = np.random.default_rng(ratio)
    axes = len(size)
    coords = random_coords(rng, 400, axes, -9, 9)
    stride = [ratio] * (axes - 1) + [1]
    coarse = np.unique(coords // np.int32([1, *stride]), axis=0)
    check_all(coords, rng.permutation(coarse), stride, size)


def test_a_large_cube_has_all_its_offsets():
    coords = random_coords(np.random.default_rng(1), 150, 3, -7, 8, batches=1)
    check_all(coords, coords, [1, 1, 1], (11, 11, 11))


@pytest.mark.skipif(not ON_CPU, reason="a device looks up every offset of every row (docs/cuda.md)")
@pytest.mark.parametrize(
    ("strategy", "size", "rows"),
    [("merge", (128, 128, 64), 4096), ("blocks", (16, 16, 16), 530_000)],
)
def test_offsets_times_rows_may_exceed_32_bits(strategy, size, rows):
    """One input, which every row reaches under one offset.

    Other paths would take ten seconds, because they visit every offset of every row.
    """
    rng = np.random.default_rng(2)
    back = np.column_stack([rng.integers(0, extent, rows) for extent in size])
    outs = np.concatenate([np.zeros((rows, 1)), -back], axis=1).astype(np.int32)
    ins = np.zeros((1, 4), np.int32)
    made = thc.generate_kernel_map(ins, outs, 1, size, strategy=strategy)
    group = np.ravel_multi_index(tuple(back.T), size)
    counts = np.bincount(group, minlength=len(made))
    same(made.offsets, np.concatenate([[0], np.cumsum(counts)]))
    same(made.out_maps, np.argsort(group, kind="stable").astype(np.int32))
    assert not made.in_maps.any()
    assert len(made) * len(outs) > 2**31
    if strategy == "merge":
        return  # its mask would take half a gigabyte
    mask = made.pair_mask()  # more than 2^31 bits
    words = mask[np.arange(rows), group // 32].view(np.uint32)
    assert np.array_equal(words, np.uint32(1) << (group % 32).astype(np.uint32))
    assert np.count_nonzero(mask) == rows


@cpu_only
@pytest.mark.parametrize("strategy", ["blocks", "merge", "flat"])
def test_memory_follows_the_pairs_not_offsets_times_rows(run_program, strategy):
    run_program(
        """
        import sys
        import numpy as np
        import tensorhash
        from tensorhash.coords import generate_kernel_map

        def peak():
            with open("/proc/self/status") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))

        tensorhash.set_num_threads(2)
        cells = np.random.default_rng(4).choice(300**3, 20_000, replace=False)
        coords = np.column_stack(np.unravel_index(cells, (1, 300, 300, 300))).astype(np.int32)
        generate_kernel_map(coords[:1000], coords[:1000], 1, 3, strategy=sys.argv[1])
        before = peak()
        made = generate_kernel_map(coords, coords, 1, 16, strategy=sys.argv[1])
        grown, table = peak() - before, len(made) * len(coords) * 4 >> 10
        assert made.strategy == sys.argv[1] and 20_000 < len(made.in_maps) < 10**6
        assert grown < 32 << 10 < table // 9, f"{grown} KB more, a table has {table}"
        """,
        arguments=[strategy],
    )


@pytest.mark.parametrize("high", [8, 20])
def test_mirrored_groups_ascend_however_the_rows_are_ordered(high):
    """Rows in block order are sorted for the blocks path, but their mirrored pairs are not."""
    rng = np.random.default_rng(10)
    coords = random_coords(rng, 200, 3, 0, high)
    by_batch = coords[np.argsort(coords[:, 0], kind="stable")]
    by_block = coords[np.lexsort((coords // np.int32([1, 8, 8, 8])).T[::-1])]
    for rows in (coords[coords[:, 0] == 0], by_batch, by_block, np.unique(coords, axis=0)):
        for size in [(3, 3, 3), (1, 3, 5)]:
            check_all(rows, rows, [1, 1, 1], size)


@pytest.mark.parametrize("edge", [131071, 2**31 - 1])
def test_nothing_wraps_around_at_the_edge_of_the_range(edge):
    corners = [-edge - 1, -edge, edge - 1, edge]
    coords = np.array([[b, x, y, 0] for b in (0, 511) for x in corners for y in corners], np.int32)
    for size in [(3, 3, 3), (5, 5, 5), (2, 2, 2)]:
        check_all(coords, coords, [1, 1, 1], size)
        check_all(coords, coords, [2, 3, 1], size)
    wide = np.concatenate([coords, coords[:, 3:], coords[:, 3:], coords[:, 1:2]], axis=1)
    check_all(wide, wide, [1] * 6, (3, 3, 1, 1, 1, 3))


def test_batches_never_mix_and_may_be_empty_or_many():
    rng = np.random.default_rng(3)
    coords = random_coords(rng, 400, 3, -4, 4, batches=3)
    coords[coords[:, 0] == 1, 0] = 600  # batch 1 is empty, and one is above the packed range
    check_all(coords, coords, [1, 1, 1], (3, 3, 3))
    only_second = coords[coords[:, 0] == 2]
    check_all(coords, only_second, [1, 1, 1], (5, 5, 5))


def test_no_rows_give_empty_maps():
    none = np.empty((0, 4), np.int32)
    some = random_coords(np.random.default_rng(0), 50, 3)
    for ins, outs in [(none, some), (some, none), (none, none)]:
        for size in [(3, 3, 3), (5, 5, 5), (2, 2, 2)]:
            check_all(ins, outs, [1, 1, 1], size)
    made = thc.generate_kernel_map(none, some, 1, 3)
    assert len(made) == 27
    assert made.pair_table().shape == (27, len(some))
    assert (made.pair_table() == -1).all()
    assert made.pair_mask().shape == (len(some), 1)
    assert made.to_csr()[2].tolist() == [0]


@pytest.mark.parametrize("size", [(3, 3, 3), (2, 2, 2)], ids=str)
def test_repeated_out_rows_each_get_their_pairs(size):
    rng = np.random.default_rng(4)
    coords = random_coords(rng, 200, 3, -4, 4)
    check_all(coords, coords[rng.integers(0, len(coords), 300)], [1, 1, 1], size)


def test_repeated_in_rows_are_refused_or_the_first_counts():
    rng = np.random.default_rng(5)
    coords = random_coords(rng, 200, 3, -4, 4)
    twice = np.concatenate([coords, coords[50:90], coords[:20]])
    for strategy in ["merge", "flat", "hierarchical", "blocks", None]:
        with pytest.raises(ValueError, match=f"row {len(coords)} repeats row 50; drop repeated"):
            thc.generate_kernel_map(twice, coords, 1, 3, strategy=strategy)
    for outs in (coords, twice):
        check_all(twice, outs, [1, 1, 1], (3, 3, 3), duplicates="first")
    made = thc.generate_kernel_map(twice, twice, 1, 3, duplicates="first")
    assert made.identity_map_index is None
    with pytest.raises(ValueError, match="skip_symmetric_kernel_map.*distinct"):
        thc.generate_kernel_map(
            twice, twice, 1, 3, skip_symmetric_kernel_map=True, duplicates="first"
        )


def test_identity_is_reported_only_if_coordinates_are_truly_equal():
    rng = np.random.default_rng(6)
    coords = random_coords(rng, 100, 3)
    index = lambda *a, **k: thc.generate_kernel_map(*a, **k).identity_map_index  # noqa: E731
    assert index(coords, coords, 1, 3) == 13
    assert index(coords, coords.copy(), 1, 5) == 62
    assert index(coords, coords[::-1], 1, 3) is None
    assert index(coords, coords, 2, 3) is None
    assert index(coords, coords, 1, 2) is None
    for mixed in [(3, 2, 3), (2, 3, 3), (3, 3, 4)]:
        assert index(coords, coords, 1, mixed) is None
    assert index(coords, coords, 1, 3, kernel_center_offset=(0, 0, 0)) == 0
    # As many outputs as inputs, but no identity: each voxel has its own cell.
    sparse = np.int32([[0, 1, 1, 1], [0, 11, 11, 11]])
    made = thc.generate_kernel_map(sparse, sparse // np.int32([1, 2, 2, 2]), 2, 3)
    assert made.identity_map_index is None
    assert [made.numel(k) for k in range(27)] == [0] * 26 + [2]


@pytest.mark.parametrize("size", [(3, 3, 3), (5, 5, 5), (1, 3)], ids=str)
def test_skipping_the_symmetric_half_keeps_the_first_groups(size):
    axes = len(size)
    coords = random_coords(np.random.default_rng(7), 200, axes, -5, 5)
    full = pairs_of(coords, coords, [1] * axes, size)
    half = len(offsets_of(size)) // 2
    pairs = full[2][half]
    for strategy in ["merge", "flat", "warpconvnet", "blocks", None] + ["hierarchical"] * (
        axes == 3
    ):
        made = thc.generate_kernel_map(
            coords, coords, 1, size, skip_symmetric_kernel_map=True, strategy=strategy
        )
        check_map(made, (full[0][:pairs], full[1][:pairs], full[2][: half + 1]))
        assert made.identity_map_index == half == len(made)
    for other, stride, kernel in [
        (coords[::-1], 1, size),
        (coords, 2, size),
        (coords, 1, (2,) * axes),
    ]:
        with pytest.raises(ValueError, match="skip_symmetric_kernel_map"):
            thc.generate_kernel_map(coords, other, stride, kernel, skip_symmetric_kernel_map=True)


def test_both_methods_take_dilation_and_give_the_same_map():
    coords = random_coords(np.random.default_rng(8), 200, 3, -5, 5)
    for dilation in (1, (2, 1, 2)):
        expected = pairs_of(
            coords, coords, [1] * 3, (3, 3, 3), np.broadcast_to(dilation, 3).tolist()
        )
        for method in ("size", "offset"):
            check_map(
                thc.generate_kernel_map(coords, coords, 1, 3, dilation, method=method), expected
            )


@once_on_a_device("threads", [1, 2, 8])
def test_results_do_not_depend_on_threads(threads):
    rng = np.random.default_rng(9)
    coords = random_coords(rng, 60_000, 3, -30, 30)
    coarse = np.unique(coords // np.int32([1, 2, 2, 2]), axis=0)
    for outs, stride, size in [
        (coords, 1, (3, 3, 3)),
        (coarse, 2, (2, 2, 2)),
        (coarse, 1, (1, 1, 3)),
    ]:
        for strategy in ["merge", "flat", "blocks"]:
            tensorhash.set_num_threads(1)
            one = thc.generate_kernel_map(coords, outs, stride, size, strategy=strategy)
            tensorhash.set_num_threads(threads)
            many = thc.generate_kernel_map(coords, outs, stride, size, strategy=strategy)
            check_map(many, (one.in_maps, one.out_maps, one.offsets))
            same(many.pair_mask(), one.pair_mask())
            for got, want in zip(many.to_csr(), one.to_csr(), strict=True):
                same(got, want)


axis_sizes = st.tuples(st.integers(1, 4), st.integers(1, 3))
coords_2d = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-5, 5), st.integers(-5, 5)), max_size=30
)


@given(ins=coords_2d, outs=coords_2d, x=axis_sizes, y=axis_sizes, ratio=st.integers(1, 3))
def test_any_small_map_is_that_of_brute_force(ins, outs, x, y, ratio):
    ins = np.array(ins, np.int32).reshape(-1, 3)
    outs = np.array(outs, np.int32).reshape(-1, 3)
    size, dilation = [x[0], y[0]], [x[1], y[1]]
    check_all(ins, outs, [ratio] * 2, size, dilation, duplicates="first")
