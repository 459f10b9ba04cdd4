"""Rule 3: indices are stable; capacity is the number of buffer rows and counts distinct keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import ON_CPU, needs_numpy_views, on_host, same, same_pair, snapshot

import tensorhash


def filled(count, capacity=0):
    table = tensorhash.HashMap(capacity, "int64", (), "int64", ())
    table.insert(np.arange(count), np.arange(count) * 10)
    return table


def test_rule_03_growth_never_moves_an_entry():
    table = tensorhash.HashMap(1, "int64", (), "int64", ())
    known = []
    for start in range(0, 30_000, 1500):
        keys = np.arange(start, start + 1500)
        known.append((keys, table.insert(keys, keys * 10)[0]))
        for old_keys, old_indices in known:
            same(table.find(old_keys)[0], old_indices)
            same(on_host(table.value_tensor())[old_indices], old_keys * 10)


def test_rule_03_reserve_and_erasing_others_never_move_an_entry():
    table = filled(1000)
    kept = np.arange(0, 1000, 7)
    before = table.find(kept)
    table.erase(np.setdiff1d(np.arange(1000), kept))
    same_pair(table.find(kept), before)
    table.reserve(50_000)
    same_pair(table.find(kept), before)
    same(table.get(kept), kept * 10)


def test_rule_03_capacity_is_the_rows_of_the_buffers():
    for capacity in (0, 1, 2, 3, 10, 1000):
        table = tensorhash.HashMap(capacity, "int64", (3,), "int8", (2, 2))
        assert table.capacity() == capacity
        assert table.key_tensor().shape == (capacity, 3)
        assert table.value_tensor().shape == (capacity, 2, 2)
    table.insert(np.arange(6000).reshape(2000, 3), np.zeros((2000, 2, 2), np.int8))
    assert table.capacity() == table.key_tensor().shape[0] == table.value_tensor().shape[0]
    assert table.capacity() >= 2000


@pytest.mark.parametrize("capacity", [1, 2, 3, 4, 5, 7, 8, 16, 31, 1000, 65_537])
def test_rule_03_init_capacity_distinct_keys_fit_without_growth(capacity):
    table = tensorhash.HashSet(capacity, "int64", ())
    view = table.key_tensor()
    _, mask = table.insert(np.arange(capacity) * 3)
    assert mask.all()
    assert table.capacity() == capacity
    assert not ON_CPU or np.shares_memory(view, table.key_tensor())
    table.validate()


@given(st.lists(st.integers(0, 7), min_size=1, max_size=200))
def test_rule_03_growth_counts_distinct_new_keys_not_rows(numbers):
    table = tensorhash.HashSet(8, "int64", ())
    table.insert(numbers)
    table.insert(numbers * 20)
    assert table.capacity() == 8


def test_rule_03_a_full_table_takes_existing_keys_without_growth():
    table = filled(100, capacity=100)
    table.insert(np.tile(np.arange(100), 500), np.zeros(50_000, dtype=np.int64))
    table.activate(np.tile(np.arange(100), 500))
    table.accumulate(np.arange(100), np.ones(100, dtype=np.int64))
    assert table.capacity() == 100


def test_rule_03_the_table_does_not_keep_the_scratch_of_a_big_batch():
    table = tensorhash.HashMap(4, "int64", (), "int64", ())
    before = table.memory_usage()["total"]
    table.insert(np.full(1_000_000, 5), np.arange(1_000_000))
    assert table.memory_usage()["total"] == before


def test_rule_03_reserve_never_shrinks():
    table = filled(50, capacity=64)
    for wanted in (0, 1, 49, 50, 63, 64):
        before = snapshot(table)
        table.reserve(wanted)
        assert snapshot(table) == before
    table.reserve(65)
    assert table.capacity() >= 65
    after = table.capacity()
    table.reserve(1)
    assert table.capacity() == after


def test_rule_03_reserved_keys_fit_without_growth():
    table = filled(5)
    table.reserve(3000)
    capacity = table.capacity()
    assert capacity >= 3000
    view = table.value_tensor()
    table.insert(np.arange(3000), np.arange(3000))
    assert table.capacity() == capacity
    assert not ON_CPU or np.shares_memory(view, table.value_tensor())


@needs_numpy_views
def test_rule_03_a_view_taken_before_growth_stays_safe_to_read_and_write():
    table = filled(10, capacity=10)
    keys, values = table.key_tensor(), table.value_tensor()
    table.reserve(100_000)
    table.insert(np.arange(50_000), np.zeros(50_000, dtype=np.int64))
    same(keys, np.arange(10))
    same(values, np.arange(10) * 10)
    values[:] = -1
    same(values, np.full(10, -1))
    del table
    same(keys, np.arange(10))


def test_rule_03_only_compact_moves_entries_and_it_returns_the_map():
    table = filled(10, capacity=16)
    table.erase(np.array([0, 3, 4, 9]))
    moved = table.compact()
    expected = np.full(16, -1, dtype=np.int32)
    expected[[1, 2, 5, 6, 7, 8]] = np.arange(6)
    same(moved, expected)
    assert table.capacity() == 16
    same(table.active_buf_indices(), np.arange(6, dtype=np.int32))
    same(table.keys(), np.array([1, 2, 5, 6, 7, 8]))
    same(table.get(np.array([8, 1, 6])), np.array([80, 10, 60]))
    same(table.insert(np.array([100]), np.array([0]))[0], np.int32([6]))
    table.validate()


def test_rule_03_compact_of_a_dense_table_changes_nothing():
    table = filled(8, capacity=8)
    same(table.compact(), np.arange(8, dtype=np.int32))
    same(table.get(np.arange(8)), np.arange(8) * 10)


@needs_numpy_views
def test_rule_03_key_tensor_is_read_only_in_numpy():
    table = filled(4)
    with pytest.raises(ValueError, match="read-only"):
        table.key_tensor()[0] = 5
    with pytest.raises(ValueError):
        table.key_tensor().flags.writeable = True
    assert table.value_tensor().flags.writeable


def test_rule_03_churn_at_constant_size_never_grows_the_table():
    table = tensorhash.HashSet(128, "int64", ())
    rng = np.random.default_rng(7)
    table.insert(np.arange(128))
    slots = table.memory_usage()["index"]
    for _ in range(3000):
        keys = table.keys()
        gone = keys[rng.integers(0, 128, 9)]
        erased = int(table.erase(gone).sum())
        table.insert(rng.integers(0, 2**60, erased))
    assert table.size() == 128
    assert table.capacity() == 128
    assert table.memory_usage()["index"] == slots
    table.validate()
