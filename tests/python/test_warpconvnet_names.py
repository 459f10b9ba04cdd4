"""WarpConvNet's positional order, keyword names and members work beside ours."""

import copy
import inspect
import pathlib
import pickle

import numpy as np
import pytest

import tensorhash.coords as thc

torch = pytest.importorskip("torch")

from tensorhash.torch import STRIDED_CONV_MODE, SparseConv3d  # noqa: E402

COORDS = torch.tensor([[0, 1, 2, 3], [0, 4, 5, 6], [1, 1, 2, 3], [1, 9, 9, 9]], dtype=torch.int32)


def same(got, want):
    assert type(got) is type(want)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def same_map(got, want):
    same(got.in_maps, want.in_maps)
    same(got.out_maps, want.out_maps)
    same(got.offsets, want.offsets)
    assert (got.num_in, got.num_out, got.strategy) == (want.num_in, want.num_out, want.strategy)
    assert got.identity_map_index == want.identity_map_index


def test_sparse_conv_takes_its_arguments_in_warpconvnets_order():
    conv = SparseConv3d(2, 3, 3, 2, 1, False, True, True)
    assert (conv.bias, conv.transposed, conv.generative) == (None, True, True)
    conv = SparseConv3d(2, 3, 3, 2, 1, False, True, False)
    assert (conv.transposed, conv.generative) == (True, False)
    conv = SparseConv3d(2, 3, 3, 2, 1, True, False, False, 1, STRIDED_CONV_MODE.REDUCE_AND_STRIDE)
    assert conv.stride_mode is STRIDED_CONV_MODE.REDUCE_AND_STRIDE
    assert SparseConv3d(2, 4, 3, groups=2).weight.shape == (27, 1, 4)


def test_stride_modes_have_warpconvnets_names():
    assert [(mode.name, mode.value) for mode in STRIDED_CONV_MODE] == [
        ("STRIDE_ONLY", "stride_only"),
        ("REDUCE_AND_STRIDE", "reduce_and_stride"),
    ]
    assert STRIDED_CONV_MODE is thc.STRIDED_CONV_MODE
    for mode in STRIDED_CONV_MODE:
        by_name = thc.convolution_map(COORDS, 3, 2, stride_mode=mode.value)
        by_mode = thc.convolution_map(COORDS, 3, 2, stride_mode=mode)
        same(by_mode[0], by_name[0])
        same_map(by_mode[2], by_name[2])


def test_warpconvnets_keyword_names_mean_ours():
    table = thc.PackedHashTable.from_coords(COORDS)
    same(table.search(query_coords=COORDS), table.search(query=COORDS))
    by = torch.tensor([[0, 0, 0, 1]])
    table.expand_with_offsets(base_coords=COORDS, offsets=by)
    assert table.num_entries == 8
    sizes = {"in_to_out_stride_ratio": 1, "kernel_size": 3}
    ours = thc.generate_kernel_map(in_coords=COORDS, out_coords=COORDS, **sizes)
    theirs = thc.generate_kernel_map(
        batch_indexed_in_coords=COORDS, batch_indexed_out_coords=COORDS, **sizes
    )
    same_map(theirs, ours)
    for made, want in (
        (thc.stride_coords(batch_indexed_coords=COORDS, stride=2), thc.stride_coords(COORDS, 2)),
        (
            thc.expand_coords(batch_indexed_coords=COORDS, kernel_size=3),
            thc.expand_coords(COORDS, 3),
        ),
    ):
        same(made[0], want[0])
        same(made[1], want[1])
    batches = ours.get_batch(start_idx=3, end_idx=9, out_format="tensor")
    for got, want in zip(batches, ours.get_batch(3, 9, "tensor"), strict=True):
        same(got, want)
    rows = COORDS[:, 1:]
    coords = thc.IntCoords(batched_tensor=rows, offsets=[0, 2, 4], voxel_size=0.05)
    same(coords.expand(3, dilation=2).coordinates, coords.expand(3, 2).coordinates)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: thc.stride_coords(COORDS, 2, batch_indexed_coords=COORDS), "multiple values"),
        (
            lambda: thc.stride_coords(coords=COORDS, batch_indexed_coords=COORDS, stride=2),
            "stride_coords: coords and batch_indexed_coords are the same argument, got both",
        ),
        (lambda: thc.stride_coords(batch_coords=COORDS, stride=2), "unexpected keyword"),
        (lambda: thc.stride_coords(stride=2), "missing 1 required positional argument"),
    ],
)
def test_an_argument_is_given_once_and_under_a_known_name(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_help_shows_our_signature():
    assert list(inspect.signature(thc.stride_coords).parameters) == [
        "coords",
        "stride",
        "order",
        "num_batches",
        "device",
    ]
    assert "batch offsets" in inspect.getdoc(thc.stride_coords)


def test_the_hierarchical_map_checks_a_given_identity():
    table = thc.PackedHashTable.from_coords(COORDS)
    want = thc.kernel_map_from_size_hierarchical(table, COORDS, (5, 5, 5))
    assert want.identity_map_index == 62
    got = thc.kernel_map_from_size_hierarchical(table, COORDS, (5, 5, 5), 4, identity_map_index=62)
    same_map(got, want)
    # As many rows, but different ones: WarpConvNet would return 62 here.
    with pytest.raises(ValueError, match="identity_map_index: .*here None, got 62"):
        thc.kernel_map_from_size_hierarchical(
            table, COORDS.flip(0), (5, 5, 5), identity_map_index=62
        )


@pytest.mark.parametrize("home", ["numpy", "torch"])
def test_pickles_and_copies_of_a_kernel_map_are_equal_and_apart(home):
    rows = COORDS if home == "torch" else COORDS.numpy()
    original = thc.generate_kernel_map(rows, rows, 1, 3)
    copies = [pickle.loads(pickle.dumps(original)), copy.deepcopy(original), original.clone()]
    for made in copies:
        same_map(made, original)
        same(made.pair_table(), original.pair_table())
        assert made.probes == original.probes
        made.in_maps[0] += 1
    assert original.in_maps[0] == thc.generate_kernel_map(rows, rows, 1, 3).in_maps[0]
    strided = thc.generate_kernel_map(rows, rows, 2, 3, strategy="flat")
    same_map(copy.copy(strided), strided)


def big_table(make, home, double_hash):
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 40, (3000, 4), dtype=np.int32)
    rows = torch.from_numpy(rows) if home == "torch" else rows
    more = {} if make is thc.PackedHashTable128 else {"use_double_hash": double_hash}
    table = (make.from_keys if make is thc.PackedHashTable128 else make.from_coords)(rows, **more)
    table.insert(rows[:100])
    table.insert(rows[:3000])
    return table, rows


@pytest.mark.parametrize("make", [thc.PackedHashTable, thc.CoordTable, thc.PackedHashTable128])
@pytest.mark.parametrize("home", ["numpy", "torch"])
@pytest.mark.parametrize("double_hash", [False, True])
def test_pickles_and_copies_of_a_table_are_equal_and_apart(make, home, double_hash):
    original, rows = big_table(make, home, double_hash)
    for made in (pickle.loads(pickle.dumps(original)), copy.deepcopy(original)):
        assert type(made) is make
        assert repr(made) == repr(original)
        same(made.vector_keys, original.vector_keys)
        same(made.unique_index, original.unique_index)
        same(made.search(rows), original.search(rows))
        assert made.device == original.device
        made.insert(np.arange(80_000, dtype=np.int32).reshape(-1, 4) % 500)  # it grows as before
        assert original.num_entries == 6100


@pytest.mark.parametrize(
    "make",
    [
        lambda: thc.PackedHashTable(4),
        lambda: thc.CoordTable(),
        lambda: thc.CoordTable(key_dim=3),
        lambda: thc.CoordTable.from_coords(np.int32([[-(2**31), 2**31 - 1]])),
        lambda: thc.PackedHashTable128(4, key_dim=5),
        lambda: thc.TorchHashTable.from_keys(np.int32([[1, 2], [3, 4]])),
    ],
)
def test_pickles_keep_capacity_columns_and_limits(make):
    table = make()
    made = pickle.loads(pickle.dumps(table))
    assert repr(made) == repr(table)
    same(made.vector_keys, table.vector_keys)
    if isinstance(table, (thc.PackedHashTable, thc.PackedHashTable128)):
        rows = np.zeros((5, made.key_dim), np.int32)
        rows[:, 1] = np.arange(5)
        with pytest.raises(RuntimeError, match="capacity: this table takes 4 distinct keys"):
            made.insert(rows)


def test_int_coords_pickle():
    coords = thc.IntCoords(COORDS[:, 1:], [0, 2, 4], 0.5, 2, voxel_origin=[0.0, 1.0, 2.0])
    assert coords.hashmap.num_entries == 4
    for made in (pickle.loads(pickle.dumps(coords)), copy.deepcopy(coords)):
        same(made.batch_indexed_coordinates, coords.batch_indexed_coordinates)
        assert (made.stride, made.voxel_size) == ((2, 2, 2), 0.5)
        same(made.voxel_origin, coords.voxel_origin)
        same(made.hashmap.search(COORDS), coords.hashmap.search(COORDS))


def test_devices_are_torch_devices_where_torch_is_used():
    here = torch.device("cpu")
    tables = [
        thc.PackedHashTable.from_coords(COORDS),
        thc.PackedHashTable(8, device=here),
        thc.CoordTable.from_coords(COORDS.tolist(), device=here),
        thc.CoordTable(device=here),
        thc.PackedHashTable128.from_keys(COORDS),
        thc.TorchHashTable.from_keys(COORDS),
        thc.TorchHashTable(8, here),
        thc.generate_kernel_map(COORDS, COORDS, 1, 3),
        thc.IntCoords(COORDS),
        thc.IntCoords(COORDS.tolist(), device=here),
    ]
    for table in tables:
        assert table.device == COORDS.device
    rows = COORDS.numpy()
    for table in (
        thc.PackedHashTable.from_coords(rows),
        thc.PackedHashTable(8),
        thc.TorchHashTable(8),
        thc.generate_kernel_map(rows, rows, 1, 3),
        thc.IntCoords(rows),
    ):
        assert table.device == "cpu:0"


def is_torch(*arrays):
    return all(isinstance(array, torch.Tensor) for array in arrays)


def test_results_use_the_callers_framework():
    here, listed = torch.device("cpu"), COORDS.tolist()
    offsets = thc.kernel_offsets_from_size((3, 3, 3), (1, 1, 1), device=here)
    assert is_torch(offsets)
    same(thc.kernel_offsets_from_size((3, 3, 3), 1, None, "cpu"), offsets.numpy())
    with pytest.raises((RuntimeError, ValueError), match="device"):
        thc.kernel_offsets_from_size((3, 3, 3), device="cuda")
    empty = torch.empty(0, 4, dtype=torch.int32)
    assert is_torch(thc.PackedHashTable.from_coords(empty).vector_keys)
    assert is_torch(thc.PackedHashTable(8, here).vector_keys)
    assert is_torch(thc.PackedHashTable.from_coords(listed, here).search(listed))
    assert is_torch(thc.TorchHashTable.from_keys(listed, here).search(listed))
    assert is_torch(thc.IntCoords(listed, device=here).coordinates)
    table = thc.PackedHashTable.from_coords(COORDS)
    assert is_torch(table.batched_search(listed, listed[:1]))
    assert is_torch(thc.PackedHashTable(8).batched_search(listed, COORDS))
    assert is_torch(thc.kernel_map_from_size_hierarchical(table, listed, 5).in_maps)
    for first, second in ((COORDS, listed), (listed, COORDS)):
        assert is_torch(thc.generate_kernel_map(first, second, 1, 3).in_maps)
        assert is_torch(thc.kernel_map_from_offsets(first, second, offsets.tolist()).in_maps)
        out, bounds, pairs = thc.convolution_map(first, 3, out_coords=second)
        assert is_torch(out, bounds, pairs.in_maps)
        assert is_torch(*thc.radius_search(first, second, 2.0))
        assert is_torch(*thc.knn_search(first, second, 2))
    assert is_torch(thc.kernel_map_from_offsets(listed, listed, offsets).in_maps)
    table = thc.PackedHashTable(8)
    table.expand_with_offsets(listed, torch.tensor([[0, 0, 0, 0]]))
    assert is_torch(table.vector_keys)


def test_neighbour_counts_per_output():
    rows = np.unique(np.random.default_rng(0).integers(0, 6, (80, 4), dtype=np.int32), axis=0)
    pairs = thc.generate_kernel_map(rows, rows[::2], 1, 3)
    want = (pairs.pair_table() >= 0).sum(axis=0)
    same(pairs.neighbor_count_per_output(), want)
    same(pairs.neighbor_count_per_output(len(want) + 2), np.append(want, [0, 0]))
    assert pairs.neighbor_count_per_output().dtype == np.int64
    with pytest.raises(ValueError, match=f"num_out: expected more than {len(want) - 1}"):
        pairs.neighbor_count_per_output(3)
    torchs = thc.generate_kernel_map(COORDS, COORDS, 1, 3).neighbor_count_per_output(4)
    assert torchs.dtype == torch.int64 and torchs.tolist() == [1, 1, 1, 1]
    empty = thc.generate_kernel_map([], [], 1, (3, 3))
    assert empty.neighbor_count_per_output().tolist() == []
    pairs.out_maps[0] = -1
    with pytest.raises(ValueError, match="this map was written to"):
        pairs.neighbor_count_per_output()


def test_the_porting_guide_begins_with_what_would_lose_rows():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "coords.md").read_text()
    table = text.split("## Coming from WarpConvNet")[1].split("|---|---|\n")[1]
    theirs, here = table.splitlines()[0].strip("|").split("|")
    assert "insert" in theirs and "replaces" in theirs
    assert "appends" in here and "clear()" in here
    table = thc.PackedHashTable.from_coords(COORDS[:2])
    table.insert(COORDS[2:])
    assert table.search(COORDS).tolist() == [0, 1, 2, 3]
