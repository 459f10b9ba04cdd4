"""PackedHashTable and CoordTable from Python, against a dictionary.

Over 400 lines: one file tests one module, with helpers that all tests share.
"""

import threading

import numpy as np
import pytest
from oracle import DEVICE, needs_numpy_views, on_host

import tensorhash
from tensorhash.coords import CoordTable, IntCoords, PackedHashTable, SearchMode

TABLES = [PackedHashTable, CoordTable]


def random_coords(count, seed=0, reach=30, batches=3):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-reach, reach + 1, (count, 4))
    rows[:, 0] = rng.integers(0, batches, count)
    return rows.astype(np.int32)


def first_rows(rows):
    """Maps each row to its first position."""
    first = {}
    for number, row in enumerate(map(tuple, np.asarray(rows).tolist())):
        first.setdefault(row, number)
    return first


def expected(first, queries):
    found = [first.get(row, -1) for row in map(tuple, np.asarray(queries).tolist())]
    return np.array(found, np.int32)


def same(got, want):
    got = on_host(got)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("make", TABLES)
@pytest.mark.parametrize("double_hash", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_search_gives_the_first_row_in_every_mode(make, double_hash, threads):
    tensorhash.set_num_threads(threads)
    rows, queries = random_coords(10000, 1, 12), random_coords(10000, 2, 13, 5)
    table = make.from_coords(rows, use_double_hash=double_hash)
    first = first_rows(rows)
    there, missing_or_not = expected(first, rows), expected(first, queries)
    for mode in SearchMode:
        same(table.search(queries, mode), missing_or_not)
        same(table.search(rows, mode=int(mode)), there)


def test_search_mode_is_an_int_enum():
    assert [(mode.name, int(mode)) for mode in SearchMode] == [
        ("LINEAR", 0),
        ("DOUBLE_HASH", 1),
        ("WARP_COOP", 2),
    ]


def test_limits():
    limits = (PackedHashTable.BATCH_MAX, PackedHashTable.COORD_MIN, PackedHashTable.COORD_MAX)
    assert limits == (511, -131072, 131071)


@pytest.mark.parametrize("make", TABLES)
def test_row_numbers_continue_and_duplicates_are_kept(make):
    batches = [random_coords(4000, seed, 7) for seed in range(3)]
    table = make.from_coords(batches[0])
    for batch in batches[1:]:
        table.insert(batch)
    rows = np.concatenate(batches)
    first = first_rows(rows)
    same(table.vector_keys, rows)
    assert table.num_entries == len(table) == len(rows)
    same(table.search(rows), expected(first, rows))
    same(table.unique_index, np.array(sorted(first.values()), np.int32))
    assert table.key_dim == 4
    assert table.device == DEVICE


@needs_numpy_views
def test_slots_are_int64_keys_and_int32_rows():
    rows = random_coords(100, 3)
    table = PackedHashTable(1000)
    assert table.capacity == 1024
    table.insert(rows)
    keys, values = table.keys_tensor, table.values_tensor
    assert (keys.dtype, keys.shape) == (np.int64, (1024,))
    assert (values.dtype, values.shape) == (np.int32, (1024,))
    assert not keys.flags.writeable
    used = keys != 0
    assert used.sum() == len(first_rows(rows))
    assert (keys[used] < 0).all()
    assert (values[~used] == -1).all()
    bits = (
        keys.view(np.uint64)[used] if keys.flags.c_contiguous else keys.copy().view(np.uint64)[used]
    )
    b = (bits >> np.uint64(54)) & np.uint64(511)
    axes = [(bits >> np.uint64(s)) & np.uint64(0x3FFFF) for s in (36, 18, 0)]
    axes = [a.astype(np.int64) - ((a.astype(np.int64) >> 17) << 18) for a in axes]
    same(np.stack([b.astype(np.int64), *axes], 1).astype(np.int32), rows[values[used]])


@pytest.mark.parametrize("make", TABLES)
@pytest.mark.parametrize("double_hash", [False, True])
def test_a_capacity_is_kept_exactly(make, double_hash):
    table = make(10, use_double_hash=double_hash)
    rows = np.int32([[0, i, 0, 0] for i in range(17)])
    table.insert(rows[:16])
    table.insert(rows[:16])
    with pytest.raises(RuntimeError, match="capacity: this table takes 16 distinct keys"):
        table.insert(rows)
    assert table.num_entries == 32
    assert table.capacity == 16
    same(table.search(rows), np.int32([*range(16), -1]))
    with pytest.raises(RuntimeError, match="capacity"):
        table.expand_with_offsets(rows[:1], np.int32([[0, 0, 0, 1]]))
    assert table.num_entries == 32


def test_from_coords_without_capacity_grows():
    table = PackedHashTable.from_coords(random_coords(10))
    assert table.capacity == 32
    table.insert(random_coords(5000, 1))
    assert table.capacity >= 8192
    explicit = PackedHashTable.from_coords(random_coords(10), None, 16)
    assert explicit.capacity == 16


@pytest.mark.parametrize(
    ("column", "value"),
    [(0, -1), (0, 512), (1, 131072), (2, -131073), (3, 131072), (0, 2**32), (2, -(2**40))],
)
def test_out_of_range_is_refused_by_row_column_and_value(column, value):
    table = PackedHashTable.from_coords(random_coords(20))
    before = on_host(table.vector_keys).copy()
    rows = random_coords(50, 4).astype(np.int64)
    rows[33, column] = value
    with pytest.raises(ValueError, match=f"coords: row 33, column {column}: .*got {value}"):
        table.insert(rows)
    same(table.vector_keys, before)
    assert table.search(rows)[33] == -1
    if value in range(-(2**31), 2**31):
        assert table.search(rows.astype(np.int32))[33] == -1
        wide = CoordTable.from_coords(rows)
        assert wide.key == "packed128"
        same(wide.search(rows), expected(first_rows(rows), rows))


def test_exact_bounds_are_in_range():
    rows = np.int32(
        [[0, -131072, -131072, -131072], [511, 131071, 131071, 131071], [511, -1, -1, -1]]
    )
    same(PackedHashTable.from_coords(rows).search(rows), np.int32([0, 1, 2]))


def test_a_query_out_of_range_never_wraps_around():
    rows = np.int32([[0, 0, 0, 0], [511, 0, 0, 0], [0, -131072, 0, 0], [0, 131071, 0, 0]])
    queries = np.int32([[512, 0, 0, 0], [-1, 0, 0, 0], [0, 131072, 0, 0], [0, -131073, 0, 0]])
    for double_hash in (False, True):
        table = PackedHashTable.from_coords(rows, use_double_hash=double_hash)
        for mode in SearchMode:
            same(table.search(queries, mode), np.full(4, -1, np.int32))
    same(table.search(queries.astype(np.int64) + 2**32), np.full(4, -1, np.int32))


@pytest.mark.parametrize("columns", range(1, 8))
def test_coord_table_takes_one_to_seven_columns(columns):
    rng = np.random.default_rng(columns)
    for reach in (3, 2**31 - 1):
        rows = rng.integers(-reach, reach + 1, (3000, columns)).astype(np.int32)
        table = CoordTable.from_coords(rows)
        queries = np.concatenate([rows[::-1], rows[:100] ^ 1])
        same(table.search(queries), expected(first_rows(rows), queries))
        assert table.key_dim == columns


def test_coord_table_refuses_what_int32_cannot_hold():
    table = CoordTable.from_coords(np.int64([[0, 2**31 - 1]]))
    with pytest.raises(ValueError, match="coords: row 0, column 1: .*int32, got 2147483648"):
        table.insert(np.int64([[0, 2**31]]))
    with pytest.raises(ValueError, match=r"expected shape \(N, 2\)"):
        table.insert(np.int64([[0, 1, 2]]))
    with pytest.raises(ValueError, match="key_dim: expected 1 to 7, got 8"):
        CoordTable(key_dim=8)
    for wide in ([[0] * 6], [[600, 0, 0, 0]]):
        table = CoordTable.from_coords(np.int32(wide))
        with pytest.raises(ValueError, match="keys_tensor: expected a table of 64-bit keys"):
            table.keys_tensor  # noqa: B018
        with pytest.raises(ValueError, match="values_tensor: expected a table of 64-bit keys"):
            table.values_tensor  # noqa: B018


def test_expand_appends_new_keys_offset_by_offset():
    table = PackedHashTable.from_coords(np.int32([[0, 0, 0, 0], [0, 1, 0, 0]]))
    table.expand_with_offsets(table.vector_keys, np.int32([[0, 1, 0, 0]]))
    same(table.vector_keys, np.int32([[0, 0, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0]]))


@pytest.mark.parametrize("make", TABLES)
@pytest.mark.parametrize("double_hash", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_expand_agrees_with_a_dictionary(make, double_hash, threads):
    tensorhash.set_num_threads(threads)
    start, base = random_coords(300, 5, 9), random_coords(2000, 6, 9)
    offsets = np.int32([[0, x, y, z] for x in (-1, 0, 1) for y in (0, 1) for z in (0, 2)])
    table = make.from_coords(start, use_double_hash=double_hash)
    table.expand_with_offsets(base, offsets)
    seen = dict.fromkeys(map(tuple, start.tolist()))
    want = start.tolist()
    for row in (base[None] + offsets[:, None]).reshape(-1, 4).tolist():
        if tuple(row) not in seen:
            seen[tuple(row)] = None
            want.append(row)
    same(table.vector_keys, np.int32(want))
    same(table.search(np.int32(want)), expected(first_rows(want), want))


def test_expand_out_of_range_changes_nothing():
    table = PackedHashTable.from_coords(np.int32([[0, 131071, 0, 0]]))
    with pytest.raises(ValueError, match="base: row 0 plus row 1 of offsets, column 1"):
        table.expand_with_offsets(table.vector_keys, np.int32([[0, 0, 1, 0], [0, 1, 0, 0]]))
    assert table.num_entries == 1


@pytest.mark.parametrize("make", TABLES)
def test_empty_is_ordinary(make):
    none = np.empty((0, 4), np.int32)
    table = make.from_coords(none)
    assert table.num_entries == 0
    same(table.search(random_coords(5)), np.full(5, -1, np.int32))
    same(table.search(none), np.empty(0, np.int32))
    assert np.asarray(table.search([])).shape == (0,)
    table.insert([])
    table.expand_with_offsets(none, none)
    same(table.unique_index, np.empty(0, np.int32))
    table.insert([[0, 1, 2, 3]])
    same(table.vector_keys, np.int32([[0, 1, 2, 3]]))


@pytest.mark.parametrize("columns", [1, 3, 4, 7])
def test_a_batch_without_rows_sets_the_column_count(columns):
    none = np.empty((0, columns), np.int64)
    table = CoordTable.from_coords(none)
    assert (table.vector_keys.shape, table.key_dim) == ((0, columns), columns)
    same(table.search(np.zeros((2, columns), np.int32)), np.int32([-1, -1]))
    with pytest.raises(ValueError, match=rf"coords: expected shape \(N, {columns}\)"):
        table.insert(np.zeros((1, columns + 1 if columns < 7 else 6), np.int32))
    table.insert(np.ones((2, columns), np.int32))
    same(table.search(np.ones((1, columns), np.int32)), np.int32([0]))


@pytest.mark.parametrize("capacity", [None, 32])
def test_a_table_without_a_column_count_has_empty_slots(capacity):
    table = CoordTable(capacity)
    table.insert([])
    assert table.key_dim == 0
    same(table.keys_tensor, np.zeros(table.capacity, np.int64))
    same(table.values_tensor, np.full(table.capacity, -1, np.int32))
    table.insert([[1, 2]])
    assert (table.key_dim, table.num_entries) == (2, 1)


@pytest.mark.parametrize("make", TABLES)
def test_strides_and_byte_order(make):
    rows = random_coords(2000, 8)
    want = expected(first_rows(rows), rows)
    wide = np.zeros((2000, 9), np.int32)
    wide[:, 1::2] = rows
    forms = [wide[:, 1::2], rows[::-1].copy()[::-1], np.asfortranarray(rows), rows.astype(">i4")]
    forms += [rows.astype(">i8"), rows.astype(np.int64)]
    for form in forms:
        table = make.from_coords(form)
        same(table.search(form), want)
        same(table.vector_keys, rows)


@needs_numpy_views
@pytest.mark.parametrize("make", TABLES)
def test_torch_in_torch_out(make):
    torch = pytest.importorskip("torch")
    rows = torch.from_numpy(random_coords(500, 9))
    table = make.from_coords(rows)
    found = table.search(rows)
    assert isinstance(found, torch.Tensor)
    assert found.dtype == torch.int32
    same(found, expected(first_rows(rows), rows))
    assert isinstance(table.vector_keys, torch.Tensor)
    assert isinstance(table.unique_index, torch.Tensor)
    assert isinstance(table.search(rows.numpy()), np.ndarray)
    if make is PackedHashTable:
        assert table.keys_tensor.dtype == torch.int64
        assert table.values_tensor.dtype == torch.int32
        assert int((table.keys_tensor != 0).sum()) == len(table.unique_index)


@needs_numpy_views
@pytest.mark.parametrize("make", TABLES)
def test_writing_to_a_torch_result_does_not_change_the_table(make):
    torch = pytest.importorskip("torch")
    rows = torch.from_numpy(random_coords(500, 9))
    table = make.from_coords(rows)
    want = expected(first_rows(rows), rows)
    table.vector_keys[:, 1:] *= 2
    table.keys_tensor.fill_(-1)
    table.values_tensor.fill_(7)
    table.unique_index.fill_(7)
    same(table.vector_keys, rows.numpy())
    same(table.search(rows), want)
    table.insert(rows)
    same(table.search(rows), want)
    hashmap = IntCoords(rows[:, 1:]).hashmap
    hashmap.vector_keys.zero_()
    hashmap.keys_tensor.zero_()
    assert (hashmap.search(hashmap.vector_keys) >= 0).all()
    table.insert(rows.numpy())  # from now on, results are NumPy's, as read-only views
    for view in (table.vector_keys, table.keys_tensor, table.values_tensor):
        assert not view.flags.writeable
        assert not view.flags.owndata


@needs_numpy_views
def test_a_view_of_the_rows_stays_as_it_was():
    table = PackedHashTable(1 << 14)
    table.insert(random_coords(1000, 10))
    view = table.vector_keys
    before = view.copy()
    for seed in range(5):
        table.insert(view)
        table.insert(random_coords(1000, 11 + seed))
    same(view, before)
    same(table.search(before), expected(first_rows(before), before))


@pytest.mark.parametrize("make", TABLES)
def test_the_callers_array_is_copied(make):
    rows = random_coords(100, 12)
    before = rows.copy()
    table = make.from_coords(rows)
    rows[:] = 7
    same(table.vector_keys, before)
    same(table.search(before), expected(first_rows(before), before))


def test_an_expansion_of_many_rows_has_no_duplicates():
    table = PackedHashTable.from_coords(random_coords(60000, 13, 60, 4))
    entries = table.num_entries
    offsets = np.int32([[0, x, y, 0] for x in (-1, 0, 1) for y in (-1, 0, 1)])
    table.expand_with_offsets(table.vector_keys, offsets)
    fresh = on_host(table.vector_keys)[entries:]
    assert len(fresh) > 100000
    assert len(np.unique(fresh, axis=0)) == len(fresh)
    same(table.search(fresh), np.arange(entries, entries + len(fresh), dtype=np.int32))


def test_a_failed_expansion_changes_nothing():
    table = PackedHashTable(1 << 13)
    rows = np.unique(random_coords(5000, 14), axis=0)[:4000]
    table.insert(rows)
    slots = np.sort(on_host(table.keys_tensor))
    offsets = np.int32([[0, x, 0, 0] for x in range(1, 9)])
    with pytest.raises(RuntimeError, match="capacity"):
        table.expand_with_offsets(rows, offsets)
    assert table.num_entries == 4000
    same(np.sort(on_host(table.keys_tensor)), slots)
    same(table.unique_index, np.arange(4000, dtype=np.int32))


def test_wrong_arguments_are_named():
    table = PackedHashTable(16)
    with pytest.raises(TypeError, match="coords: expected int32 or int64, got float32"):
        table.insert(np.float32([[0, 0, 0, 0]]))
    with pytest.raises(ValueError, match=r"query: expected shape \(N, 4\), got \(2, 3\)"):
        table.search(np.zeros((2, 3), np.int32))
    with pytest.raises(ValueError, match="mode: expected LINEAR"):
        table.search(random_coords(2), 7)
    for mode in (2**31, 2**40, 2**70, -(2**40), -(2**70)):
        with pytest.raises(ValueError, match=f"mode: expected .*got {mode}"):
            table.search(random_coords(2), mode=mode)
    with pytest.raises(ValueError, match="capacity: expected 0 or more, got -"):
        PackedHashTable(-(2**70))
    with pytest.raises(ValueError, match="capacity: expected 0 to"):
        PackedHashTable(-1)
    with pytest.raises(TypeError, match="capacity: expected an int"):
        PackedHashTable("many")
    with pytest.raises(RuntimeError, match="device"):
        PackedHashTable(16, "cuda")
    with pytest.raises(ValueError, match="offsets: expected shape"):
        table.expand_with_offsets(random_coords(2), np.zeros((2, 3), np.int32))


@pytest.mark.parametrize("make", TABLES)
def test_arguments_can_be_given_by_name(make):
    table = make.from_coords(coords=[[0, 1, 2, 3]], device=None)
    table.expand_with_offsets(base=[[0, 1, 2, 3]], offsets=[[0, 0, 0, 1]])
    same(table.search(query=[[0, 1, 2, 4]], mode=SearchMode.LINEAR), np.int32([1]))
    with pytest.raises(TypeError, match="base: expected int32 or int64"):
        table.expand_with_offsets(np.zeros((1, 4)), [[0, 0, 0, 1]])


@pytest.mark.parametrize("make", TABLES)
def test_only_none_stands_for_the_default_device(make):
    with pytest.raises(TypeError, match="device: expected a name such as 'cpu', got int"):
        make.from_coords(random_coords(2), device=0)
    with pytest.raises(ValueError, match="device: expected 'cpu', .*got ''"):
        make.from_coords(random_coords(2), device="")


def test_four_threads_at_once_find_what_one_finds():
    rows = random_coords(10000, 20)
    table = PackedHashTable.from_coords(rows)
    want = expected(first_rows(rows), rows)
    wrong = []

    def read():
        for _ in range(5):
            if not np.array_equal(table.search(rows), want):
                wrong.append(True)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for seed in range(5):
        table.insert(random_coords(5000, 21 + seed, 100000, 400))
    for reader in readers:
        reader.join()
    assert not wrong


@pytest.mark.parametrize("load", [0.05, 0.25, 0.49, 0.9, 1.0])
@pytest.mark.parametrize("double_hash", [False, True])
def test_any_load_is_right(load, double_hash):
    rows = np.unique(random_coords(30000, 30, 60), axis=0)
    rows = rows[np.random.default_rng(0).permutation(len(rows))][: int(16384 * load)]
    table = PackedHashTable(16384, use_double_hash=double_hash)
    table.insert(rows)
    missing = rows[:500] + np.int32([0, 500, 0, 0])
    for mode in SearchMode:
        same(table.search(rows, mode), np.arange(len(rows), dtype=np.int32))
        same(table.search(missing, mode), np.full(500, -1, np.int32)[: len(missing)])


@pytest.mark.parametrize("make", TABLES)
def test_every_public_name_has_a_docstring(make):
    for name in dir(make):
        if not name.startswith("_") and not name.isupper():
            assert getattr(make, name).__doc__, name
    assert "num_entries=3" in repr(make.from_coords([[0, 0, 0, 0]] * 3))
