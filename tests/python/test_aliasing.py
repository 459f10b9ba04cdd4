"""Views of a table's own buffers as arguments: each call reads them before it changes anything."""

import numpy as np
import pytest
from oracle import same

import tensorhash


def filled(count=1000):
    table = tensorhash.HashMap(count, "int64", (2,), "int64", (2,))
    keys = np.random.default_rng(0).integers(0, 2**40, (count, 2))
    table.insert(keys, keys * 3)
    return table, keys


def test_rule_05_a_table_finds_and_keeps_its_own_keys():
    table, keys = filled()
    same(table.find(table.key_tensor())[0], np.arange(1000, dtype=np.int32))
    assert not table.insert(table.key_tensor(), table.value_tensor())[1].any()
    same(table.get(table.key_tensor()), keys * 3)


def test_rule_05_a_table_erases_its_own_keys():
    table, _ = filled()
    assert table.erase(table.key_tensor()[::-1]).all()
    assert table.size() == 0
    table.validate()


@pytest.mark.parametrize("name", ["insert", "insert_or_assign", "accumulate"])
def test_rule_05_keys_and_values_from_the_buffers_survive_growth_and_reuse(name):
    table, keys = filled()
    table.erase(keys[::2])
    # The call reuses freed rows while it still reads the batch: keys shifted by one row.
    shifted = table.key_tensor().reshape(-1)[1:-1].reshape(-1, 2)
    values = table.value_tensor()[:-1]
    expected_keys, expected_values = shifted.copy(), values.copy()
    getattr(table, name)(shifted, values)
    indices, found = table.find(expected_keys)
    assert found.all()
    assert len(np.unique(indices)) == len(np.unique(expected_keys, axis=0))
    same(table.get(expected_keys), expected_values)
    same(table.get(keys[1::2]), keys[1::2] * 3)
    table.validate()


def test_rule_05_values_assigned_from_the_tables_own_column_do_not_overwrite_each_other():
    table, keys = filled()
    before = table.value_tensor().copy()
    table.insert_or_assign(keys[1:], table.value_tensor()[:-1])
    same(table.get(keys[1:]), before[:-1])
    table, keys = filled()
    table.accumulate(keys[1:], table.value_tensor()[:-1])
    same(table.get(keys[1:]), before[1:] + before[:-1])
    table, keys = filled()
    table.insert_or_assign(keys, table.value_tensor()[::-1])
    same(table.get(keys), np.ascontiguousarray(before[::-1]))


def test_rule_05_one_array_may_be_keys_and_values():
    array = np.arange(20).reshape(10, 2)
    table = tensorhash.HashMap(0, "int64", (2,), "int64", (2,))
    table.insert(array, array)
    same(table.get(array), array)


def test_rule_05_defaults_may_be_the_tables_own_column():
    table, keys = filled(10)
    missing = -1 - keys
    same(table.get(missing, default=table.value_tensor()), keys * 3)
