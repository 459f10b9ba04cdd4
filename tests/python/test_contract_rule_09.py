"""Rule 9: a recycled entry is clean: `activate` of a new key shows zeros."""

import numpy as np
import pytest
from oracle import needs_numpy_views, on_host, same

import tensorhash


def dirty_table(rows=2000):
    table = tensorhash.HashMap(
        rows,
        "int64",
        (),
        value_dtypes=("int64", "uint8", "float16"),
        value_element_shapes=((2,), (3,), ()),
    )
    keys = np.arange(rows)
    table.insert(keys, [np.full((rows, 2), -1), np.full((rows, 3), 255, "u1"), np.ones(rows, "f2")])
    return table, keys


def assert_zeros(table, keys):
    for column in table.get(keys):
        same(column, np.zeros_like(column))


def test_rule_09_activate_after_erase_shows_zeros():
    table, keys = dirty_table()
    table.erase(keys[::2])
    indices, mask = table.activate(keys[::2] + 10_000)
    assert mask.all()
    assert (indices < 2000).all()
    assert_zeros(table, keys[::2] + 10_000)
    for column in table.value_tensors():
        assert not on_host(column)[indices].any()
    assert all(column.all() for column in table.get(keys[1::2]))


def test_rule_09_activate_of_the_same_key_after_erase_shows_zeros():
    table, keys = dirty_table()
    table.erase(keys[5:50])
    table.activate(keys[5:50])
    assert_zeros(table, keys[5:50])


@pytest.mark.parametrize("forget", ["clear", "compact"])
def test_rule_09_activate_after_clear_or_compact_shows_zeros(forget):
    table, keys = dirty_table()
    if forget == "compact":
        table.erase(keys[100:])
    getattr(table, forget)()
    _, mask = table.activate(keys[100:])
    assert mask.all()
    assert_zeros(table, keys[100:])


def test_rule_09_activate_beyond_the_old_capacity_shows_zeros():
    table, keys = dirty_table()
    table.activate(np.arange(50_000))
    assert_zeros(table, np.arange(2000, 50_000))
    assert all(column.all() for column in table.get(keys))


@needs_numpy_views
def test_rule_09_values_written_through_a_view_at_a_free_row_are_gone():
    table = tensorhash.HashMap(8, "int64", (), "int64", ())
    table.value_tensor()[:] = 77
    table.activate([1, 2, 3])
    same(table.get([1, 2, 3]), np.zeros(3, dtype=np.int64))
    table.erase([2])
    table.value_tensor()[:] = 88
    table.activate([9])
    same(table.get([9]), np.zeros(1, dtype=np.int64))


def test_rule_09_activate_leaves_existing_values_alone():
    table = tensorhash.HashMap(8, "int64", (), "int64", ())
    table.insert([1, 2], [10, 20])
    table.activate([2, 3, 1])
    same(table.get([1, 2, 3]), np.array([10, 20, 0]))


def test_rule_09_accumulate_starts_a_recycled_entry_from_its_first_row():
    table = tensorhash.HashMap(8, "int64", (), "int64", ())
    table.insert([1, 2], [10, 20])
    table.erase([1, 2])
    table.accumulate([5, 6, 5], [1, 2, 3])
    same(table.get([5, 6]), np.array([4, 2]))


def test_rule_09_rows_that_never_held_a_key_read_as_zeros():
    table = tensorhash.HashMap(100, "int64", (2,), "float32", (3,))
    same(on_host(table.key_tensor()), np.zeros((100, 2), dtype=np.int64))
    same(on_host(table.value_tensor()), np.zeros((100, 3), dtype=np.float32))
    table.insert([[1, 2]], [[1, 1, 1]])
    table.reserve(5000)
    assert not on_host(table.key_tensor())[1:].any()
    assert not on_host(table.value_tensor())[1:].any()
