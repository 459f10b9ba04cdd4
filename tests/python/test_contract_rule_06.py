"""Rule 6: zero rows in, zero rows out, right dtype and shape; an empty table is a table."""

import copy
import pickle

import numpy as np
import pytest
from oracle import KEY_DTYPES, same, same_pair

import tensorhash

NO_INDICES = np.zeros(0, dtype=np.int32)
NO_MASK = np.zeros(0, dtype=bool)


def tables():
    """Empty tables without and with capacity, and one with entries."""
    for capacity, rows in ((0, 0), (5, 0), (2, 3)):
        table = tensorhash.HashMap(capacity, "int32", (2,), "float32", (3,))
        table.insert(np.arange(2 * rows, dtype=np.int32).reshape(-1, 2), np.zeros((rows, 3), "f4"))
        yield table


@pytest.mark.parametrize("empty", [np.zeros((0, 2), np.int32), [], (), np.zeros((0, 1, 2), "i4")])
def test_rule_06_every_call_takes_zero_rows(empty):
    values = np.zeros((0, 3), dtype=np.float32)
    for table in tables():
        size, capacity = table.size(), table.capacity()
        same_pair(table.insert(empty, values), (NO_INDICES, NO_MASK))
        same_pair(table.insert(empty, []), (NO_INDICES, NO_MASK))
        same_pair(table.insert_or_assign(empty, values), (NO_INDICES, NO_MASK))
        same_pair(table.accumulate(empty, values, reduce="max"), (NO_INDICES, NO_MASK))
        same_pair(table.activate(empty), (NO_INDICES, NO_MASK))
        same_pair(table.find(empty), (NO_INDICES, NO_MASK))
        same(table.erase(empty), NO_MASK)
        same(table.contains(empty), NO_MASK)
        same(table.get(empty), values)
        same(table.get(empty, default=7), values)
        assert (table.size(), table.capacity()) == (size, capacity)
        table.validate()


@pytest.mark.parametrize("capacity", [0, 1, 100])
@pytest.mark.parametrize("dtype", KEY_DTYPES)
def test_rule_06_listings_of_an_empty_table_have_dtype_and_shape(capacity, dtype):
    table = tensorhash.HashMap(capacity, dtype, (2, 3), "uint16", (4,))
    same(table.active_buf_indices(), NO_INDICES)
    same(table.keys(), np.zeros((0, 2, 3), dtype=dtype))
    keys, values = table.items()
    same(keys, np.zeros((0, 2, 3), dtype=dtype))
    same(values, np.zeros((0, 4), dtype=np.uint16))
    assert list(table) == []
    assert len(table) == 0
    same(table.compact(), np.full(capacity, -1, dtype=np.int32))
    table.clear()
    table.validate()


def test_rule_06_an_empty_table_finds_nothing():
    for table in (tensorhash.HashMap(0, "int64", (), "int64", ()), tensorhash.HashSet(9, "i8", ())):
        same_pair(table.find([0, -1]), (np.int32([-1, -1]), np.array([False, False])))
        same(table.erase([0, -1]), np.array([False, False]))
        assert 0 not in table


@pytest.mark.parametrize("capacity", [0, 7])
@pytest.mark.parametrize(
    "twin_of",
    [
        lambda table: table.clone(),
        lambda table: table.to("cpu", copy=True),
        copy.copy,
        copy.deepcopy,
        lambda table: pickle.loads(pickle.dumps(table)),
    ],
)
def test_rule_06_an_empty_table_clones_and_pickles(capacity, twin_of):
    twin = twin_of(tensorhash.HashMap(capacity, "int64", (1,), "int64", (1,)))
    assert (twin.size(), twin.capacity()) == (0, capacity)
    same(twin.insert([[5]], [[6]])[0], np.int32([0]))
    same(twin.get([[5]]), np.array([[6]]))


@pytest.mark.parametrize("name", ["table.thash", "table.npz"])
@pytest.mark.parametrize("capacity", [0, 7])
def test_rule_06_an_empty_table_saves_and_loads(tmp_path, name, capacity):
    table = tensorhash.HashMap(capacity, "int16", (3,), "float64", (2, 2))
    table.save(tmp_path / name)
    loaded = tensorhash.HashMap.load(tmp_path / name)
    assert loaded.size() == 0
    same(loaded.keys(), np.zeros((0, 3), dtype=np.int16))
    same(loaded.items()[1], np.zeros((0, 2, 2)))
    same(loaded.insert(np.int16([[1, 2, 3]]), np.ones((1, 2, 2)))[0], np.int32([0]))
    loaded.validate()


def test_rule_06_a_table_emptied_by_erase_saves_and_loads(tmp_path):
    table = tensorhash.HashSet(2, "int64", ())
    table.insert([1, 2, 3])
    table.erase([1, 3, 2])
    for name in ("a.thash", "a.npz"):
        table.save(tmp_path / name)
        assert tensorhash.HashSet.load(tmp_path / name).size() == 0


def test_rule_06_from_items_of_nothing_is_an_empty_map():
    table = tensorhash.HashMap.from_items(np.zeros((0, 3), np.int32), np.zeros((0, 2), np.float32))
    assert table.size() == 0
    same(table.items()[1], np.zeros((0, 2), dtype=np.float32))


def test_rule_06_unique_of_nothing_is_nothing():
    empty = np.zeros((0, 3), dtype=np.int32)
    rows, index, inverse, counts = tensorhash.unique(empty, True, True, True)
    same(rows, empty)
    for extra in (index, inverse, counts):
        same(extra, np.zeros(0, dtype=np.int64))
