"""clear, batched_search and PackedHashTable128 against a dictionary."""

import threading

import numpy as np
import pytest
from oracle import on_host

import tensorhash
from tensorhash.coords import CoordTable, PackedHashTable, PackedHashTable128

torch = pytest.importorskip("torch")


def random_rows(count, columns=4, seed=0, low=-6, high=6):
    rows = np.random.default_rng(seed).integers(low, high + 1, (count, columns), dtype=np.int32)
    rows[:, 0] = np.abs(rows[:, 0])
    return rows


def expected(rows, queries):
    first = {}
    for number, row in enumerate(map(tuple, np.asarray(rows).tolist())):
        first.setdefault(row, number)
    found = [first.get(row, -1) for row in map(tuple, np.asarray(queries).tolist())]
    return np.array(found, np.int32)


def batched(rows, queries, offsets):
    sums = [np.asarray(queries, dtype=object) + np.asarray(by, dtype=object) for by in offsets]
    found = [expected(rows, one) for one in sums]
    return np.stack(found) if found else np.empty((0, len(queries)), np.int32)


def same(got, want):
    got = on_host(got)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


TABLES = {
    "packed": lambda rows: PackedHashTable.from_coords(rows),
    "packed, double": lambda rows: PackedHashTable.from_coords(rows, use_double_hash=True),
    "packed, fixed": lambda rows: PackedHashTable.from_coords(rows, capacity=16384),
    "coord": lambda rows: CoordTable.from_coords(rows),
    "128": lambda rows: PackedHashTable128.from_keys(rows),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_a_cleared_table_starts_anew(make):
    rows, others = random_rows(3000), random_rows(2000, seed=1)
    table = make(rows)
    keys, capacity = table.vector_keys, table.capacity
    slots = table.keys_tensor if isinstance(table, PackedHashTable) else None
    before = None if slots is None else on_host(slots).copy()
    table.clear()
    assert (table.num_entries, len(table), table.key_dim) == (0, 0, 4)
    assert table.vector_keys.shape == (0, 4)
    assert table.unique_index.shape == (0,)
    same(table.search(rows), np.full(3000, -1, np.int32))
    same(keys, rows)  # views keep their contents
    if slots is not None:
        same(slots, before)
    table.insert(others)
    same(table.search(rows), expected(others, rows))
    same(table.vector_keys, others)
    fresh = make(others)
    assert table.capacity == fresh.capacity
    if capacity == 16384:
        assert table.capacity == 16384
    table.clear()
    table.clear()
    assert table.num_entries == 0


def test_clear_of_a_table_without_columns_and_of_wide_keys():
    table = CoordTable()
    table.clear()
    assert table.key_dim == 0
    table.insert(np.int32([[0, 2**31 - 1, 0, 0]]))
    assert table.key == "packed128"
    table.clear()
    assert (table.key, table.key_dim) == ("packed64", 4)
    with pytest.raises(ValueError, match=r"coords: expected shape \(N, 4\)"):
        table.insert(np.zeros((1, 3), np.int32))
    fixed = PackedHashTable(2)
    for value in range(5):
        fixed.clear()
        fixed.insert(np.int32([[0, value, 0, 0], [0, value, 1, 0]]))
        assert (fixed.num_entries, fixed.capacity) == (2, 2)


def test_replacing_is_clear_and_insert_as_the_porting_guide_says():
    table = PackedHashTable(64)
    for seed in range(4):
        rows = random_rows(30, seed=seed)
        table.clear()
        table.insert(rows)
        same(table.search(rows), expected(rows, rows))


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_batched_search_is_a_search_for_every_offset(make, threads):
    tensorhash.set_num_threads(threads)
    rows, queries = random_rows(2000), random_rows(5000, seed=2)
    table = make(rows)
    for count in (0, 1, 12):
        offsets = random_rows(count, seed=3, low=-2, high=2)
        want = batched(rows, queries, offsets)
        same(table.batched_search(queries, offsets), want)
        same(table.batched_search(queries.astype(np.int64), offsets.tolist() or offsets), want)
    assert table.batched_search(queries[:0], offsets).shape == (12, 0)
    got = table.batched_search(torch.from_numpy(queries), torch.from_numpy(offsets))
    assert isinstance(got, torch.Tensor)
    same(got, want)


@pytest.mark.parametrize("columns", range(1, 8))
def test_batched_search_takes_every_width_and_adds_to_every_column(columns):
    rows, queries = random_rows(500, columns), random_rows(500, columns, 1)
    offsets = random_rows(9, columns, 2, -1, 1)
    for make in (CoordTable.from_coords, PackedHashTable128.from_keys):
        same(make(rows).batched_search(queries, offsets), batched(rows, queries, offsets))


def test_sums_outside_int32_are_absent_and_sums_back_inside_are_found():
    least, most = -(2**31), 2**31 - 1
    rows = np.int32([[0, most, least, 0], [0, least, 5, 0], [0, 0, 0, 0]])
    table = CoordTable.from_coords(rows)
    queries = [
        [0, most, least, 0],
        [0, most + 1, least - 1, 0],
        [0, 2**62, 0, 0],
        [0, -(2**63), 2**63 - 1, 0],
        [0, most, 0, 0],
    ]
    offsets = [[0, 0, 0, 0], [0, -1, 1, 0], [0, 1, 0, 0], [0, -most, 0, 0]]
    want = batched(rows, queries, offsets)
    assert want[1, 1] == 0
    assert (want >= 0).sum() == 3
    same(table.batched_search(np.array(queries), offsets), want)
    packed = PackedHashTable.from_coords(np.int32([[0, 131071, 0, 0]]))
    edge = np.int32([[0, 131071, 0, 0], [0, -131072, 0, 0], [511, 131071, 0, 0]])
    same(
        packed.batched_search(edge, np.int32([[0, 0, 0, 0], [0, -1, 0, 0], [1, 0, 0, 0]])),
        np.int32([[0, -1, -1], [-1, -1, -1], [-1, -1, -1]]),
    )


def test_batched_search_of_a_table_without_rows():
    assert CoordTable().batched_search([[1, 2]], [[0, 0]]).tolist() == [[-1]]
    assert PackedHashTable(4).batched_search([[0, 1, 2, 3]], [[0, 0, 0, 0]]).tolist() == [[-1]]


def test_batched_search_names_the_argument():
    table = PackedHashTable.from_coords(random_rows(5))
    rows = random_rows(3)
    for queries, offsets, text in (
        (rows[:, :3], rows, r"queries: expected shape \(N, 4\), got \(3, 3\)"),
        (rows, rows[:, :3], r"offsets: expected shape \(N, 4\), got \(3, 3\)"),
        (rows.astype("f"), rows, "queries: expected int32 or int64, got float32"),
        (rows, [[0, 2**31, 0, 0]], "offsets: row 0, column 1: expected a number that fits int32"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            table.batched_search(queries, offsets)


def test_many_threads_search_in_batches_at_once():
    rows = random_rows(4000)
    table = CoordTable.from_coords(rows)
    offsets = random_rows(10, seed=4, low=-1, high=1)
    want = batched(rows, rows, offsets)
    found = []
    work = [
        threading.Thread(target=lambda: found.append(table.batched_search(rows, offsets)))
        for _ in range(6)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(found) == 6
    for got in found:
        same(got, want)


def test_the_128_table_has_warpconvnets_limits():
    table = PackedHashTable128
    assert (table.DIM, table.COORD_BITS, table.COORD_MIN, table.COORD_MAX) == (7, 17, -65536, 65535)
    assert PackedHashTable128(100).key_dim == 7
    assert PackedHashTable128(100).capacity == 128


@pytest.mark.parametrize("columns", range(1, 8))
def test_the_128_table_finds_rows_of_every_width(columns):
    rng = np.random.default_rng(columns)
    rows = rng.integers(-65536, 65536, (20_000, columns), dtype=np.int32)
    rows[0], rows[1] = -65536, 65535
    table = PackedHashTable128.from_keys(torch.from_numpy(rows))
    assert table.key_dim == columns
    same(table.search(torch.from_numpy(rows)), expected(rows, rows))
    others = rng.integers(-65536, 65536, (5000, columns))
    same(table.search(queries=others), expected(rows, others))
    table.insert(rows[:7])  # repeated rows are allowed
    same(table.search(rows), expected(rows, rows))


@pytest.mark.parametrize("value", [65536, -65537, 2**31 - 1, -(2**31)])
def test_the_128_table_refuses_what_it_cannot_hold(value):
    table = PackedHashTable128.from_keys(random_rows(20, 6))
    rows = random_rows(9, 6)
    rows[4, 3] = value
    with pytest.raises(
        ValueError, match=f"coords: row 4, column 3: .*-65536 to 65535, got {value}"
    ):
        table.insert(rows)
    base, by = np.zeros((1, 6), np.int64), np.zeros((1, 6), np.int64)
    base[0, 2], by[0, 2] = (1 if value > 0 else -1), value - (1 if value > 0 else -1)
    with pytest.raises(ValueError, match=f"base: .*expected -65536 to 65535, got {value}"):
        table.expand_with_offsets(base, by)
    assert table.num_entries == 20
    assert table.search(rows)[4] == -1


def test_the_128_table_checks_its_columns_and_capacity():
    with pytest.raises(ValueError, match=r"coords: expected shape \(N, 5\), got \(3, 4\)"):
        PackedHashTable128.from_keys(random_rows(3), key_dim=5)
    for wrong in (0, 8):
        with pytest.raises(ValueError, match=f"key_dim: expected 1 to 7, got {wrong}"):
            PackedHashTable128(8, key_dim=wrong)
    full = PackedHashTable128(4, "cpu", 2)
    full.insert([[0, 1], [0, 2], [0, 3], [0, 4]])
    with pytest.raises(RuntimeError, match="capacity: this table takes 4 distinct keys"):
        full.insert([[0, 5]])
    with pytest.raises(ValueError, match="keys_tensor: expected a table of 64-bit keys"):
        PackedHashTable128.from_keys(random_rows(3, 7)).keys_tensor  # noqa: B018
