"""Rule 2: the mask says what happened, the index says where; listings ascend by buffer index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import on_host, same

import tensorhash


def test_rule_02_insert_gives_the_right_index_for_existing_keys():
    table = tensorhash.HashMap(10, "int64", (1,), "int64", (1,))
    table.insert([[7], [8], [9]], [[70], [80], [90]])
    indices, mask = table.insert([[9], [6], [7], [6], [9]], [[0], [60], [0], [0], [0]])
    same(indices, np.int32([2, 3, 0, 3, 2]))
    same(mask, np.array([False, True, False, False, False]))
    same(table.get([[9], [6], [7], [8]]), np.array([[90], [60], [70], [80]]))


@pytest.mark.parametrize("name", ["insert", "insert_or_assign", "accumulate"])
def test_rule_02_every_adding_call_returns_new_keys_and_indices(name):
    table = tensorhash.HashMap(10, "int32", (), "int32", ())
    keys, values = np.int32([4, 5, 4]), np.int32([1, 2, 3])
    indices, mask = getattr(table, name)(keys, values)
    same(indices, np.int32([0, 1, 0]))
    same(mask, np.array([True, True, False]))
    indices, mask = getattr(table, name)(keys[::-1], values)
    same(indices, np.int32([0, 1, 0]))
    same(mask, np.array([False, False, False]))


def test_rule_02_activate_returns_new_keys_and_indices():
    table = tensorhash.HashMap(10, "int32", (), "int32", ())
    table.insert(np.int32([5]), np.int32([50]))
    indices, mask = table.activate(np.int32([4, 5, 4]))
    same(indices, np.int32([1, 0, 1]))
    same(mask, np.array([True, False, False]))
    same(table.get(np.int32([5])), np.int32([50]))


def test_rule_02_find_gives_minus_one_and_false_for_absent_keys():
    table = tensorhash.HashSet(10, "int64", (1,))
    table.insert([[0], [1]])
    indices, found = table.find([[1], [2], [0], [-1], [2]])
    same(indices, np.int32([1, -1, 0, -1, -1]))
    same(found, np.array([True, False, True, False, False]))


@given(st.lists(st.integers(0, 40)), st.lists(st.integers(0, 40)), st.lists(st.integers(0, 60)))
def test_rule_02_indices_and_masks_agree_with_the_buffers(inserted, erased, asked):
    table = tensorhash.HashMap(0, "int64", (), "int64", ())
    indices, _ = table.insert(inserted, [key * 10 for key in inserted])
    assert on_host(table.key_tensor())[indices].tolist() == inserted
    gone = table.erase(erased)
    assert gone.sum() == len(set(inserted) & set(erased))
    live = set(inserted) - set(erased)
    indices, found = table.find(asked)
    assert found.tolist() == [key in live for key in asked]
    assert ((indices == -1) == ~found).all()
    assert on_host(table.key_tensor())[indices[found]].tolist() == [k for k in asked if k in live]
    assert on_host(table.value_tensor())[indices[found]].tolist() == [
        10 * k for k in asked if k in live
    ]
    same(table.contains(asked), found)


def test_rule_02_all_listings_ascend_by_buffer_index():
    rng = np.random.default_rng(1)
    table = tensorhash.HashMap(0, "int64", (2,), "int64", ())
    for _ in range(5):
        keys = rng.integers(0, 60, (2000, 2))
        table.insert(keys, keys[:, 0] * 100 + keys[:, 1])
        table.erase(rng.integers(0, 60, (900, 2)))
    live = table.active_buf_indices()
    assert live.dtype == np.int32
    assert (np.diff(live) > 0).all()
    same(table.keys(), on_host(table.key_tensor())[live])
    keys, values = table.items()
    same(keys, table.keys())
    same(values, on_host(table.value_tensor())[live])
    same(values, keys[:, 0] * 100 + keys[:, 1])
    same(np.stack(list(table)), keys)


def test_rule_02_erase_is_true_once_per_key():
    table = tensorhash.HashSet(10, "int64", ())
    table.insert([1, 2, 3])
    same(table.erase([3, 9, 3, 1, 3]), np.array([True, False, False, True, False]))
    assert table.size() == 1


def test_rule_02_the_mask_of_a_batch_counts_the_growth_in_size():
    rng = np.random.default_rng(2)
    table = tensorhash.HashSet(0, "int16", ())
    for _ in range(10):
        before = table.size()
        keys = rng.integers(-900, 900, 500).astype(np.int16)
        _, mask = table.insert(keys)
        assert table.size() - before == mask.sum()
        before = table.size()
        assert before - table.erase(keys[:250]).sum() == table.size()
