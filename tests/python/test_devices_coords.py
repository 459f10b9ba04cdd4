"""Coordinates on an emulated device: tables and free functions give the CPU's results.

Each program runs in its own process: a plugin stays loaded.
"""

import pytest
from test_devices import run_emulated  # noqa: F401  (a fixture)

COORDS = """
from tensorhash import coords
try:
    coords.CoordTable(device="emu:0")
except RuntimeError as error:
    import os
    # The plugin was built without Boost.Context: in CI that is a failure.
    assert "has no" in str(error) and "CI" not in os.environ
    raise SystemExit

rng = np.random.default_rng(1)
rows = rng.integers(-3, 4, (120, 4)).astype("int32")
rows[:, 0] %= 2
distinct = coords.unique_coords(rows)
points = rng.normal(size=(90, 3))
batch = rng.integers(0, 2, 90)

def arrays_of(result):
    if isinstance(result, coords.KernelMap):
        return [result.in_maps, result.out_maps, result.offsets]
    return list(result) if isinstance(result, tuple) else [result]

def same(got, want, home):
    '''The arrays of `got` are on `home` and have the numbers of `want`.'''
    got, want = arrays_of(got), arrays_of(want)
    assert len(got) == len(want)
    for one, other in zip(got, want):
        if home == "cpu:0":
            assert isinstance(one, np.ndarray), type(one)
        else:
            assert one.device == home
            one = np.asarray(one.cpu())
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
"""


@pytest.fixture
def run_coords(run_emulated):  # noqa: F811
    return lambda source: run_emulated(COORDS + source.replace("\n        ", "\n"))


CALLS = """
calls = [
    lambda take, **more: coords.unique_coords(take(rows), True, True, True, **more),
    lambda take, **more: coords.stride_coords(take(rows), 2, **more),
    lambda take, **more: coords.stride_coords(take(rows), 2, order="morton", **more),
    lambda take, **more: coords.expand_coords(take(rows), 3, **more),
    lambda take, **more: coords.generate_kernel_map(take(distinct), take(distinct), 1, 3, **more),
    lambda take, **more: coords.kernel_map_from_offsets(
        take(distinct), take(distinct), take(np.int32([[0, 1, 0, 0]])), **more),
    lambda take, **more: coords.voxelize(take(points), 0.5, batch=take(batch), **more),
    lambda take, **more: coords.voxelize(take(points), 0.5, reduce=["sum", "min", "last"], **more),
    lambda take, **more: coords.voxelize(
        take(points), 0.5, reduce="max", features=take(batch), **more),
    lambda take, **more: coords.voxelize(take(points), 0.9, reduce="nearest_center", **more),
    lambda take, **more: coords.voxelize(take(points), 0.9, reduce="nearest_centroid", **more),
    lambda take, **more: coords.voxelize(
        take(points), 1.5, reduce="mode", features=take(batch), ignore_label=1, **more),
    lambda take, **more: coords.voxel_downsample(take(points), 0.5, batch=take(batch), **more),
    lambda take, **more: coords.radius_search(take(points), take(points[:20]), 0.8, **more),
    lambda take, **more: coords.radius_search(
        take(points), take(points), 0.8, take(batch), take(batch), 3, **more),
]
"""


def test_free_functions_run_where_their_arrays_are(run_coords):
    run_coords(
        CALLS
        + """
        for call in calls:
            want = call(np.asarray)
            same(call(on_device), want, "emu:0")
            same(call(lambda array: on_device(array, "emu:1")), want, "emu:1")
        """
    )


def test_with_a_device_they_run_there_and_answer_where_the_arrays_are(run_coords):
    run_coords(
        CALLS
        + """
        for call in calls:
            want = call(np.asarray)
            same(call(np.asarray, device="emu:0"), want, "cpu:0")
            same(call(on_device, device="emu:0"), want, "emu:0")
            with pytest.raises(RuntimeError, match='memory of the CPU or of "emu:1", where'):
                call(on_device, device="emu:1")
            with pytest.raises(RuntimeError, match="expected memory of the CPU, where this call"):
                call(on_device, device="cpu")
        """
    )


def test_arrays_of_two_devices_are_refused(run_coords):
    run_coords("""
        here, there = on_device(distinct), on_device(distinct, "emu:1")
        with pytest.raises(RuntimeError, match="in_coords: .* got memory of"):
            coords.generate_kernel_map(there, here, 1, 3)
        with pytest.raises(RuntimeError, match="points: .* got memory of"):
            coords.radius_search(on_device(points), on_device(points, "emu:1"), 1.0)
        table = coords.CoordTable.from_coords(here)
        with pytest.raises(RuntimeError, match='query: expected memory of the CPU or of "emu:0"'):
            table.search(there)
        # Arrays of the CPU are copied to the device of the others.
        same(coords.radius_search(on_device(points), points, 0.5),
             coords.radius_search(points, points, 0.5), "cpu:0")
    """)


def test_tables_take_arrays_of_their_device_and_of_the_cpu(run_coords):
    run_coords("""
        queries = rows + np.int32([0, 1, 0, 0])
        offsets = np.int32([[0, 0, 0, 0], [0, 1, 0, -1]])
        for kind in (coords.PackedHashTable, coords.CoordTable):
            here = kind.from_coords(rows)
            for table in (kind.from_coords(on_device(rows)), kind.from_coords(rows, "emu:0")):
                assert table.device == "emu:0"
                same(table.search(on_device(queries)), here.search(queries), "emu:0")
                same(table.search(queries), here.search(queries), "cpu:0")
                same(table.batched_search(on_device(queries), offsets),
                     here.batched_search(queries, offsets), "emu:0")
                table.insert(rows[:5])
                same(table.vector_keys, np.concatenate([rows, rows[:5]]), "emu:0")
                same(table.unique_index, here.unique_index, "cpu:0")
                assert table.capacity == here.capacity and len(table) == 125
        wide = coords.PackedHashTable128.from_keys(on_device(rows))
        same(wide.search(on_device(queries)), here.search(queries), "emu:0")
    """)


def test_vector_tables_are_on_a_device(run_coords):
    run_coords("""
        keys = rng.integers(0, 3, (200, 6)).astype("int32")
        queries = rng.integers(0, 4, (90, 6))
        here = coords.TorchHashTable.from_keys(keys)
        for table in (coords.TorchHashTable.from_keys(on_device(keys)),
                      coords.TorchHashTable.from_keys(keys, "emu:0")):
            assert table.device == "emu:0"
            same(table.search(on_device(queries)), here.search(queries), "emu:0")
            same(table.search(queries), here.search(queries), "cpu:0")
            same(table.vector_keys, keys, "emu:0")
            described = table.to_dict()
            assert described["capacity"] == here.capacity and table.key_dim == 6
            back = coords.TorchHashTable(1).from_dict(described)
            same(back.search(queries), here.search(queries), "cpu:0")
        small = coords.TorchHashTable(2, device="emu:0")
        with pytest.raises(RuntimeError, match="takes 2 distinct keys and has 0"):
            small.insert([[1], [2], [3]])
        small.insert([[1], [2]])
        with pytest.raises(ValueError, match="vec_keys: row 1, column 0: expected a number that"):
            small.insert([[1], [2**40]])
        assert small.search([[2], [1], [3], [2**40]]).tolist() == [1, 0, -1, -1]
    """)


def test_a_kernel_map_on_a_device_has_its_forms_there(run_coords):
    run_coords("""
        want = coords.generate_kernel_map(distinct, distinct, 1, 3)
        got = coords.generate_kernel_map(on_device(distinct), on_device(distinct), 1, 3)
        assert got.device == "emu:0" and len(got) == 27
        assert got.identity_map_index == want.identity_map_index
        assert [got.numel(k) for k in range(27)] == [want.numel(k) for k in range(27)]
        for form in (lambda m: m.pair_table(), lambda m: m.pair_mask(), lambda m: m.to_csr(),
                     lambda m: m.transpose(), lambda m: m[13], lambda m: m.get_batch(3, 9, "tensor"),
                     lambda m: m.neighbor_count_per_output()):
            same(form(got), form(want), "emu:0")
        import pickle
        same(pickle.loads(pickle.dumps(coords.generate_kernel_map(
            distinct, distinct, 1, 3, device="emu:0"))), want, "cpu:0")
    """)


def test_a_kernel_map_waits_once_pair_table_included(run_coords):
    run_coords("""
        want = coords.generate_kernel_map(distinct, distinct, 1, 3)
        there = on_device(distinct)
        there.cpu()
        for strategy in ("flat", "hierarchical", None):
            before = devices.emulated_waits(0)
            made = coords.generate_kernel_map(
                there, there, 1, 3, strategy=strategy, pair_table=True)
            table = made.pair_table()
            assert devices.emulated_waits(0) - before == 1
            assert made.numel(0) == want.numel(0) and table.device == "emu:0"
            np.testing.assert_array_equal(np.asarray(table.cpu()), want.pair_table())
        for how in ({"device": "emu:0"}, {}):
            made = coords.generate_kernel_map(distinct, distinct, 1, 3, pair_table=True, **how)
            np.testing.assert_array_equal(made.pair_table(), want.pair_table())
    """)


def test_convolution_maps_are_made_where_the_coordinates_are(run_coords):
    run_coords("""
        few = coords.stride_coords(distinct, 2)[0]
        repeated = np.concatenate([distinct, distinct[:5]])
        calls = [
            lambda take, **more: coords.convolution_map(take(distinct), 3, **more),
            lambda take, **more: coords.convolution_map(take(distinct), 3, 2, **more),
            lambda take, **more: coords.convolution_map(take(distinct), 2, 2, padding=1, **more),
            lambda take, **more: coords.convolution_map(
                take(distinct), 3, 2, out_coords=take(few), **more),
            lambda take, **more: coords.convolution_map(
                take(few), 3, 2, transposed=True, out_coords=take(distinct), **more),
            lambda take, **more: coords.convolution_map(
                take(few), 3, 2, transposed=True, generative=True, **more),
            lambda take, **more: coords.convolution_map(
                take(distinct), 3, 2, generative=True, **more),
            lambda take, **more: coords.convolution_map(
                take(distinct), 3, 2, out_sites="reached", spatial_shape=[9, 9, 9], **more),
            lambda take, **more: coords.convolution_map(
                take(distinct), 3, 2, stride_mode="reduce_and_stride", **more),
            lambda take, **more: coords.convolution_map(
                take(repeated), 3, duplicates="first", **more),
        ]
        for number, call in enumerate(calls):
            want = call(np.asarray)
            for take, more, home in [(on_device, {}, "emu:0"), (np.asarray, {"device": "emu:0"},
                                     "cpu:0"), (on_device, {"device": "emu:0"}, "emu:0")]:
                out, offsets, pairs = call(take, **more)
                same(out, want[0], home)
                assert (offsets is None) == (want[1] is None), number
                if offsets is not None:
                    same(offsets, want[1], home)
                same(pairs, want[2], home)
        there = on_device(distinct)
        assert coords.convolution_map(there, 3)[2].device == "emu:0"
        with pytest.raises(RuntimeError, match="out_coords: .* got memory of"):
            coords.convolution_map(there, 3, out_coords=on_device(few, "emu:1"))
        with pytest.raises(ValueError, match="coords: row 120 repeats|coords: row .* repeats row"):
            coords.convolution_map(on_device(repeated), 3)
    """)


def test_int_coords_live_where_their_rows_came_from(run_coords):
    run_coords("""
        def parts(held, home):
            for got, want in [(held.coordinates, here.coordinates), (held.offsets, here.offsets),
                              (held[1], here[1]), (held.batched_tensor, here.batched_tensor),
                              (held.batch_indexed_coordinates, here.batch_indexed_coordinates)]:
                same(got, want, home)
            for change in (lambda c: c.expand(3), lambda c: c.strided(2), lambda c: c.unique(),
                           lambda c: c.sort(), lambda c: c.prune(np.arange(len(c)) % 2 == 0)):
                assert change(held).device == "emu:0"
                same(change(held).batch_indexed_coordinates,
                     change(here).batch_indexed_coordinates, home)
                same(change(held).offsets, change(here).offsets, home)
            assert held.device == "emu:0" and held.hashmap.device == "emu:0"
            same(held.hashmap.search(rows), here.hashmap.search(rows), "cpu:0")
            assert held.strided(2).tensor_stride == (2, 2, 2)

        here = coords.IntCoords(rows[:, 1:], [0, 50, 120])
        parts(coords.IntCoords(on_device(rows[:, 1:]), on_device([0, 50, 120])), "emu:0")
        parts(coords.IntCoords(rows[:, 1:], [0, 50, 120], device="emu:0"), "cpu:0")
        parts(coords.IntCoords([on_device(rows[:50, 1:]), on_device(rows[50:, 1:])]), "emu:0")
        here = coords.IntCoords.from_batched(rows)
        parts(coords.IntCoords.from_batched(on_device(rows)), "emu:0")
        import copy, pickle
        there = coords.IntCoords.from_batched(on_device(rows))
        parts(copy.deepcopy(there), "emu:0")
        restored = pickle.loads(pickle.dumps(there))  # perhaps where there is no such device
        assert restored.device == "cpu:0"
        same(np.asarray(restored.strided(2).coordinates), here.strided(2).coordinates, "cpu:0")
        with pytest.raises(RuntimeError, match='memory of the CPU or of "emu:1", where'):
            coords.IntCoords(on_device(rows[:, 1:]), device="emu:1")
        with pytest.raises(RuntimeError, match=r'coords\\[1\\]: .* memory of "emu:1"'):
            coords.IntCoords([on_device(rows[:50, 1:]), on_device(rows[50:, 1:], "emu:1")])
    """)


def test_what_needs_the_cpu_says_so(run_coords):
    run_coords("""
        there = on_device(points)
        with pytest.raises(RuntimeError, match="points: expected memory of the CPU, got memory of"):
            coords.knn_search(there, there, 3)
    """)
