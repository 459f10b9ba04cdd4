"""TorchHashTable from Python, against a dictionary."""

import numpy as np
import pytest
from oracle import needs_numpy_views, on_host

import tensorhash
from tensorhash.coords import TorchHashTable


def random_keys(count, columns, seed=0, reach=2**31 - 1):
    rng = np.random.default_rng(seed)
    return rng.integers(-reach, reach + 1, (count, columns)).astype(np.int32)


def expected(rows, queries):
    first = {}
    for number, row in enumerate(map(tuple, rows.tolist())):
        first.setdefault(row, number)
    return np.int32([first.get(row, -1) for row in map(tuple, queries.tolist())])


@pytest.mark.parametrize("columns", [1, 3, 4, 7])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_search_gives_the_first_row(columns, threads):
    tensorhash.set_num_threads(threads)
    for reach in (2, 2**31 - 1):
        rows = random_keys(9000, columns, 1, reach)
        queries = np.concatenate([rows[::-9], random_keys(1000, columns, 2, reach)])
        table = TorchHashTable.from_keys(rows)
        np.testing.assert_array_equal(table.search(queries), expected(rows, queries))
        assert table.key_dim == columns
        table.insert(queries)
        rows = np.concatenate([rows, queries])
        first = expected(rows, rows)
        np.testing.assert_array_equal(table.search(rows), first)
        np.testing.assert_array_equal(on_host(table.vector_keys), rows)
        unique = np.unique(first)
        np.testing.assert_array_equal(table.unique_index, unique)
        np.testing.assert_array_equal(table.unique_vector_keys, rows[unique])


@pytest.mark.parametrize("grows", [False, True])
def test_a_dict_round_trip_gives_the_same_table(grows):
    rows, more = random_keys(3000, 4, 3, 6), random_keys(3000, 4, 4, 6)
    table = TorchHashTable.from_keys(rows, capacity=None if grows else 8192)
    data = table.to_dict()
    assert data["table_kvs"].shape == (8192, 2)
    twin = TorchHashTable(1)
    assert twin.from_dict(data) is twin
    assert (twin.capacity, twin.key_dim, twin.num_entries) == (8192, 4, 3000)
    np.testing.assert_array_equal(twin.search(more), table.search(more))
    table.insert(more)
    twin.insert(more)
    np.testing.assert_array_equal(twin.search(more), table.search(more))
    empty = TorchHashTable(4).from_dict(TorchHashTable(16).to_dict())
    assert (empty.capacity, empty.num_entries, empty.key_dim) == (16, 0, -1)


def test_a_damaged_dict_is_refused_and_changes_nothing():
    table = TorchHashTable.from_keys(random_keys(10, 3))
    data = table.to_dict()
    for name in ("vec_keys", "capacity", "table_kvs"):
        with pytest.raises(ValueError, match=f"data: .*{name}"):
            table.from_dict({k: v for k, v in data.items() if k != name})
    for name in ("num_entries", "key_dim"):
        with pytest.raises(ValueError, match="data: .* do not belong"):
            table.from_dict({**data, name: 7})
    for name in ("num_entries", "key_dim", "capacity"):
        for wrong in ("a", None, 1.5):
            with pytest.raises(TypeError, match=rf"data\['{name}'\]: expected an int, got"):
                table.from_dict({**data, name: wrong})
    assert table.num_entries == 10


def test_slots_that_do_not_belong_to_the_keys_are_refused():
    rows = random_keys(10, 3)
    table = TorchHashTable.from_keys(np.concatenate([rows, rows]))
    data = table.to_dict()
    kvs = data["table_kvs"]
    at = int(np.flatnonzero(kvs[:, 1] == 3)[0])
    missing, later, beyond, twice, half = (kvs.copy() for _ in range(5))
    missing[at] = -1
    later[at, 1] = 13  # equal to row 3, but not the first
    beyond[at, 1] = 20
    twice[kvs[:, 1] == 4] = kvs[at]
    half[at, 0] = -1
    for wrong in (missing, later, beyond, twice, half, kvs[:-1], kvs.astype(float), "a", None):
        with pytest.raises(ValueError, match="data: .*table_kvs do not belong"):
            table.from_dict({**data, "table_kvs": wrong})
    assert table.from_dict({**data, "table_kvs": kvs.tolist()}).num_entries == 20


def test_a_batch_without_rows_sets_the_column_count():
    table = TorchHashTable.from_keys(np.empty((0, 3), np.int32))
    twin = TorchHashTable(1).from_dict(table.to_dict())
    for made in (table, twin):
        assert (made.vector_keys.shape, made.key_dim, made.num_entries) == ((0, 3), 3, 0)
        assert made.unique_vector_keys.shape == (0, 3)
        assert made.search(np.zeros((2, 3), np.int32)).tolist() == [-1, -1]
        with pytest.raises(ValueError, match=r"vec_keys: expected shape \(N, 3\)"):
            made.insert(np.zeros((1, 2), np.int32))
        made.insert(random_keys(100, 3))
        assert made.search(random_keys(100, 3)).tolist() == list(range(100))
    unsaid = TorchHashTable.from_keys([])
    assert unsaid.key_dim == -1


def test_only_none_stands_for_the_default_device():
    with pytest.raises(TypeError, match="device: expected a name such as 'cpu', got int"):
        TorchHashTable.from_keys(random_keys(2, 3), device=0)
    with pytest.raises(ValueError, match="device: expected 'cpu', .*got ''"):
        TorchHashTable.from_keys(random_keys(2, 3), device="")


def test_a_capacity_is_kept_exactly():
    table = TorchHashTable(5)
    rows = np.int32([[i, i] for i in range(9)])
    table.insert(rows[:8])
    with pytest.raises(RuntimeError, match="capacity: .*vec_keys"):
        table.insert(rows)
    np.testing.assert_array_equal(table.search(rows), [*range(8), -1])
    assert (table.capacity, table.num_entries) == (8, 8)


def test_wrong_arguments_are_named():
    table = TorchHashTable.from_keys(np.int64([[1, 2]]))
    with pytest.raises(TypeError, match="vec_keys: expected int32 or int64, got float64"):
        table.insert(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="vec_keys: row 1, column 0: .*got 4294967296"):
        table.insert(np.int64([[0, 0], [2**32, 0]]))
    with pytest.raises(ValueError, match=r"search_keys: expected shape \(N, 2\)"):
        table.search(np.zeros((1, 3), np.int32))
    with pytest.raises(ValueError, match="vec_keys: expected rows"):
        TorchHashTable.from_keys(3)
    assert table.num_entries == 1
    np.testing.assert_array_equal(table.search(np.int64([[2**32 + 1, 2], [1, 2]])), [-1, 0])


def test_a_dict_keeps_its_framework():
    torch = pytest.importorskip("torch")
    rows = random_keys(20, 3)
    for array in (torch.from_numpy(rows), rows):
        twin = TorchHashTable(1).from_dict(TorchHashTable.from_keys(array).to_dict())
        assert isinstance(twin.unique_vector_keys, type(array))
        assert isinstance(twin.search(rows.tolist()), type(array))
    data = twin.to_dict()
    for wrong in ("panda", 3, None, []):
        with pytest.raises(ValueError, match=r"data\['framework'\]: expected the name of a framew"):
            twin.from_dict({**data, "framework": wrong})
    del data["framework"]  # a dict of an older version: the framework does not change
    kept = TorchHashTable.from_keys(torch.from_numpy(rows)).from_dict(data)
    assert isinstance(kept.vector_keys, torch.Tensor)


@needs_numpy_views
def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    rows = torch.from_numpy(random_keys(100, 3, 5, 3))
    table = TorchHashTable.from_keys(rows)
    assert isinstance(table.search(rows), torch.Tensor)
    assert isinstance(table.unique_vector_keys, torch.Tensor)
    assert isinstance(table.search(rows.numpy()), np.ndarray)
    assert table.device == torch.device("cpu")
    table.vector_keys.zero_()  # a copy
    np.testing.assert_array_equal(table.vector_keys, rows)
    np.testing.assert_array_equal(table.search(rows), expected(rows, rows))
