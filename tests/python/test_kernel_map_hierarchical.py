"""The hierarchical path: its probes, the arguments that it accepts, and the table it is given."""

import numpy as np
import pytest
from kernel_map_oracle import check_map, offsets_of, pairs_of, random_coords
from oracle import cpu_only

import tensorhash.coords as thc


def expected_probes(ins, outs, ratio, size, stride):
    """(coarse cells that the kernels reach, offsets that fall into occupied cells)."""
    cells = {(b, *(np.array(p) // stride)) for b, *p in ins.tolist()}
    offsets = np.array(offsets_of(size))
    coarse = fine = 0
    for batch, *place in outs.tolist():
        reached = (np.array(place) * ratio + offsets) // stride
        coarse += len(np.unique(reached, axis=0))
        fine += sum((batch, *cell) in cells for cell in reached.tolist())
    return coarse, fine


@pytest.mark.parametrize("size", [(3, 3, 3), (7, 7, 7), (1, 5, 9), (5, 1, 13)], ids=str)
@pytest.mark.parametrize("ratio", [1, 2])
def test_probes_are_the_coarse_cells_and_the_offsets_in_occupied_ones(size, ratio):
    rng = np.random.default_rng(1)
    ins = random_coords(rng, 200, 3, -20, 20)
    outs = random_coords(rng, 150, 3, -20, 20)
    made = thc.generate_kernel_map(ins, outs, ratio, size, strategy="hierarchical")
    assert made.probes == expected_probes(ins, outs, ratio, size, 4)
    flat = thc.generate_kernel_map(ins, outs, ratio, size, strategy="flat")
    assert flat.probes == (0, len(outs) * len(flat))
    check_map(made, (flat.in_maps, flat.out_maps, flat.offsets))


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"kernel_size": (3, 4, 3)}, "kernel_size: axis 1: .*odd sizes, got 4"),
        ({"kernel_dilation": (1, 1, 2)}, "kernel_dilation: axis 2: .*takes 1, got 2"),
        ({"kernel_center_offset": (0, 1, 1)}, "kernel_center_offset: axis 0: .*middle, 1, got 0"),
    ],
)
def test_unsupported_kernels_are_refused_by_axis(arguments, text):
    coords = random_coords(np.random.default_rng(2), 50, 3)
    with pytest.raises(ValueError, match=text):
        thc.generate_kernel_map(
            coords, coords, 1, **{"kernel_size": 3, "strategy": "hierarchical", **arguments}
        )


def test_it_takes_three_axes():
    coords = random_coords(np.random.default_rng(3), 50, 2)
    with pytest.raises(ValueError, match="kernel_size: .*takes 3 axes, got 2"):
        thc.generate_kernel_map(coords, coords, 1, 3, strategy="hierarchical")


def test_the_warpconvnet_strategy_is_hierarchical_from_125_offsets_on():
    coords = random_coords(np.random.default_rng(4), 50, 3)
    path = lambda size, **k: (  # noqa: E731
        thc.generate_kernel_map(coords, coords, 1, size, strategy="warpconvnet", **k).strategy
    )
    assert path((3, 3, 3)) == path((3, 3, 5)) == path((2, 2, 2)) == path((6, 6, 6)) == "flat"
    assert path((5, 5, 5)) == path((7, 7, 7)) == path((1, 13, 13)) == "hierarchical"
    assert path((5, 5, 5), skip_symmetric_kernel_map=True) == "flat"
    assert path((5, 5, 5), kernel_dilation=2) == "flat"


def tables_of(coords):
    yield thc.PackedHashTable.from_coords(coords)
    yield thc.PackedHashTable.from_coords(coords, use_double_hash=True)
    yield thc.CoordTable.from_coords(coords)


@pytest.mark.parametrize("size", [(5, 5, 5), (3, 3, 3), (1, 13, 13), (13, 1, 3)], ids=str)
@pytest.mark.parametrize("stride", [1, 2, 4, 16, 1 << 30])
def test_a_table_is_probed_with_any_coarse_stride(size, stride):
    rng = np.random.default_rng(5)
    coords = random_coords(rng, 200, 3, -9, 9)
    outs = random_coords(rng, 100, 3, -9, 9)
    expected = pairs_of(coords, outs, [1] * 3, size)
    for table in tables_of(coords):
        made = thc.kernel_map_from_size_hierarchical(table, outs, size, stride=stride)
        check_map(made, expected)
        assert made.probes == expected_probes(coords, outs, 1, size, stride)
        assert made.strategy == "hierarchical"
        assert made.identity_map_index is None
        assert table.num_entries == len(coords)


def test_eleven_cubed_and_unequal_footprints_need_no_other_stride():
    coords = random_coords(np.random.default_rng(6), 100, 3, -7, 8, batches=1)
    table = thc.PackedHashTable.from_coords(coords)
    for size in [(11, 11, 11), (15, 3, 3), (3, 3, 15), (1, 11, 13)]:
        made = thc.kernel_map_from_size_hierarchical(table, coords, size)
        check_map(made, pairs_of(coords, coords, [1] * 3, size))
        assert made.identity_map_index == len(made) // 2


def test_in_a_table_the_first_of_repeated_rows_counts():
    coords = random_coords(np.random.default_rng(7), 100, 3, -3, 4)
    twice = np.concatenate([coords, coords[:40]])
    for table in tables_of(twice):
        for outs in (coords, twice):
            made = thc.kernel_map_from_size_hierarchical(table, outs, (5, 5, 5))
            check_map(made, pairs_of(twice, outs, [1] * 3, (5, 5, 5)))
            assert made.identity_map_index is None
            assert made.num_in == len(twice)


def test_a_table_that_grew_is_probed_as_it_is_now():
    coords = random_coords(np.random.default_rng(8), 200, 3, -5, 5)
    table = thc.PackedHashTable(1024)
    table.insert(coords[:50])
    thc.kernel_map_from_size_hierarchical(table, coords, (5, 5, 5))
    table.insert(coords[50:])
    made = thc.kernel_map_from_size_hierarchical(table, coords, (5, 5, 5))
    check_map(made, pairs_of(coords, coords, [1] * 3, (5, 5, 5)))


def test_an_empty_table_or_no_queries_give_an_empty_map():
    coords = random_coords(np.random.default_rng(9), 20, 3)
    none = np.empty((0, 4), np.int32)
    for table, outs in [
        (thc.PackedHashTable(16), coords),
        (thc.CoordTable(), coords),
        (thc.PackedHashTable.from_coords(coords), none),
        (thc.CoordTable.from_coords(none), none),
    ]:
        made = thc.kernel_map_from_size_hierarchical(table, outs, (5, 5, 5))
        check_map(made, pairs_of(none, outs, [1] * 3, (5, 5, 5)))


def test_nothing_wraps_around_at_the_edge_of_a_table():
    for low, high, table in [
        (-131072, 131071, thc.PackedHashTable),
        (-(2**31), 2**31 - 1, thc.CoordTable),
    ]:
        coords = np.int32([[0, x, y, 0] for x in (low, high) for y in (low, high)])
        made = thc.kernel_map_from_size_hierarchical(table.from_coords(coords), coords, (5, 5, 5))
        check_map(made, pairs_of(coords, coords, [1] * 3, (5, 5, 5)))


def test_errors_of_the_table_path_name_the_argument():
    coords = random_coords(np.random.default_rng(10), 20, 3)
    table = thc.PackedHashTable.from_coords(coords)
    for wrong, error, text in [
        ({"stride": 3}, ValueError, "stride: expected a power of two .*got 3"),
        ({"stride": 0}, ValueError, "stride: expected a power of two .*got 0"),
        ({"kernel_size": (5, 4, 5)}, ValueError, "kernel_size: axis 1"),
        ({"kernel_size": (5, 5)}, ValueError, "kernel_size: expected 3 numbers"),
        ({"query_coords": coords[:, :3]}, ValueError, "query_coords: expected shape"),
        ({"fine_ht": coords}, TypeError, "fine_ht: expected a PackedHashTable or a CoordTable"),
        ({"fine_ht": thc.CoordTable.from_coords(coords[:, :3])}, ValueError, "fine_ht: .*got 3"),
    ]:
        given = {"fine_ht": table, "query_coords": coords, "kernel_size": (5, 5, 5)}
        with pytest.raises(error, match=text):
            thc.kernel_map_from_size_hierarchical(**{**given, **wrong})


def test_a_query_beyond_int32_has_no_pairs():
    table = thc.CoordTable.from_coords([[0, 0, 0, 0], [0, 0, 0, 1]])
    far = 2**32  # 0 in the lower 32 bits
    queries = [[0, far, 0, 0], [0, 0, 0, 0], [far, 0, 0, 0], [0, 0, 0, -far], [0, 0, 0, 1]]
    made = thc.kernel_map_from_size_hierarchical(table, queries, 3)
    assert made.num_out == 5 and made.identity_map_index is None
    assert [made[k][0].tolist() for k in (12, 13, 14)] == [[0], [0, 1], [1]]
    assert [made[k][1].tolist() for k in (12, 13, 14)] == [[4], [1, 4], [1]]
    assert made.pair_table().shape == (27, 5) and len(made.in_maps) == 4
    nothing = thc.kernel_map_from_size_hierarchical(table, queries[:1], 3)
    assert nothing.num_out == 1 and nothing.probes == (0, 0) and len(nothing.in_maps) == 0


@cpu_only
def test_memory_follows_the_pairs_where_cells_are_many(run_program):
    source = """
import numpy as np
import tensorhash
from tensorhash.coords import CoordTable, generate_kernel_map, kernel_map_from_size_hierarchical

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))

tensorhash.set_num_threads(2)
rng = np.random.default_rng(4)
coords = np.unique(rng.integers(0, 200, (400, 4)).astype(np.int32), axis=0)
coords[:, 0] = 0
table = CoordTable.from_coords(coords)
size = (63, 63, 31)
kernel_map_from_size_hierarchical(table, coords, 3, stride=1)
before = peak()
made = kernel_map_from_size_hierarchical(table, coords, size, stride=1)
grown = peak() - before
assert grown < 24 << 10, f"{grown} KB more"
assert made.probes == (len(coords) * 63 * 63 * 31, len(made.in_maps)), made.probes
merged = generate_kernel_map(coords, coords, 1, size, strategy="merge", duplicates="first")
for one, other in zip(
    (made.in_maps, made.out_maps, made.offsets),
    (merged.in_maps, merged.out_maps, merged.offsets),
):
    assert np.array_equal(one, other)
"""
    run_program(source)
