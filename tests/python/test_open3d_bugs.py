"""Bugs and gaps reproduced in Open3D's hash map: we must have none of them."""

import copy
import pickle

import numpy as np
import pytest
from oracle import first_occurrence, same, same_pair, snapshot

import tensorhash
import tensorhash.core as o3c


def core_map(capacity=10, shape=(1,)):
    return o3c.HashMap(capacity, o3c.int64, shape, o3c.int64, shape)


def test_strided_keys_and_values_are_not_misread():
    grid = o3c.Tensor(np.arange(12).reshape(6, 2))
    table = core_map()
    table.insert(grid[:, 0:1], grid[:, 1:2])
    same(table.keys(), np.arange(0, 12, 2)[:, None])
    same(table.items()[1], np.arange(1, 12, 2)[:, None])
    turned = o3c.HashSet(10, o3c.int64, (6,))
    turned.insert(grid.T())
    same(turned.keys(), np.ascontiguousarray(np.arange(12).reshape(6, 2).T))
    same(core_map().insert(grid[::2, 0:1], grid[::2, 1:2])[0], np.arange(3, dtype=np.int32))


def test_an_empty_map_clones_copies_saves_and_loads(tmp_path):
    table = core_map()
    assert table.clone().size() == 0
    assert table.to(o3c.Device("CPU:0"), copy=True).size() == 0
    table.save(str(tmp_path / "empty"))
    assert o3c.HashMap.load(str(tmp_path / "empty.npz")).size() == 0


@pytest.mark.parametrize("name", ["insert", "activate", "find", "erase"])
def test_zero_rows_are_ordinary_for_every_call(name):
    empty = o3c.Tensor(np.zeros((0, 1), dtype=np.int64))
    result = getattr(core_map(), name)(*([empty, empty] if name == "insert" else [empty]))
    for tensor in result if isinstance(result, tuple) else (result,):
        assert tensor.shape == (0,)


def test_growth_does_not_count_duplicates_or_existing_keys():
    table = core_map(5)
    keys = np.arange(5)[:, None]
    table.insert(keys, keys)
    table.insert(keys[:1], keys[:1])
    table.insert(np.tile(keys, (200, 1)), np.tile(keys, (200, 1)))
    assert table.capacity() == 5


def test_a_failing_insert_changes_nothing():
    table = core_map(4)
    table.insert([[1], [2]], [[1], [2]])
    before = snapshot(table)
    with pytest.raises(TypeError):
        table.insert(np.zeros((10, 1), dtype=np.float32), np.zeros((10, 1), dtype=np.int64))
    assert snapshot(table) == before


def test_activate_after_erase_does_not_show_the_old_value():
    table = core_map()
    table.insert([[1]], [[2]])
    table.erase([[1]])
    table.activate([[3]])
    same(table.get([[3]]), np.array([[0]]))


def test_rows_that_are_not_active_hold_no_garbage():
    for _ in range(20):
        trash = np.full(4000, -1)
        del trash
        table = core_map(4000)
        assert not table.key_tensor().numpy().any()
        assert not table.value_tensor().numpy().any()


def test_the_dtype_of_keys_and_values_is_checked():
    table = core_map()
    for wrong in (np.zeros((2, 1)), np.zeros((2, 2), np.int32), np.zeros((2, 8), np.uint8)):
        with pytest.raises(TypeError, match="keys"):
            table.insert(wrong, [[1], [2]])
        with pytest.raises(TypeError, match="values"):
            table.insert([[1], [2]], wrong)
    assert table.size() == 0


@pytest.mark.timeout(120)
def test_the_hash_does_not_go_quadratic():
    keys = np.arange(300_000)[:, None] << 32
    assert core_map().insert(keys, keys)[1].all()


def test_the_keyword_values_takes_a_tuple():
    table = core_map()
    table.insert(o3c.Tensor([[1]]), values=(o3c.Tensor([[5]]),))
    table.insert(keys=o3c.Tensor([[2]]), list_values=[o3c.Tensor([[6]])])
    table.insert(keys=o3c.Tensor([[3]]), values=o3c.Tensor([[7]]))
    same(table.get([[1], [2], [3]]), np.array([[5], [6], [7]]))


def test_zeros_of_both_signs_are_one_key():
    table = o3c.HashSet(4, o3c.float32, (3,))
    same(table.insert([[0.0, 1, -0.0], [-0.0, 1, 0.0]])[1], np.array([True, False]))


def test_existing_keys_and_losing_rows_get_their_true_index():
    table = core_map()
    table.insert([[5], [6]], [[0], [0]])
    same(table.insert([[6], [7], [7]], [[0]] * 3)[0], np.int32([1, 2, 2]))


def test_missing_keys_get_index_minus_one():
    same_pair(core_map().find([[3]]), (np.int32([-1]), np.array([False])))


def test_growth_and_reserve_keep_indices():
    table = core_map(4)
    keys = np.arange(4)[:, None]
    indices, _ = table.insert(keys, keys)
    for capacity in (8, 16, 32):
        table.reserve(capacity)
        same(table.find(keys)[0], indices)


def test_reserve_does_not_shrink():
    table = core_map(50)
    table.insert([[1]] * 5, [[1]] * 5)
    table.reserve(6)
    assert table.capacity() == 50


def test_a_clone_keeps_indices():
    table = core_map()
    table.insert([[1], [2], [3]], [[1], [2], [3]])
    table.erase([[1]])
    same(table.clone().active_buf_indices(), np.int32([1, 2]))


def test_many_duplicates_keep_the_first_row():
    keys = np.random.default_rng(0).permutation(np.arange(200_000) % 1000)[:, None]
    table = core_map()
    _, mask = table.insert(keys, np.arange(200_000)[:, None])
    same(np.flatnonzero(mask), first_occurrence(keys)[0])
    assert table.capacity() < 200_000


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "uint32", "float32", "float64"])
def test_key_dtypes_and_widths_are_not_limited(dtype):
    for shape in [(1,), (7,), (2, 4), (3, 3)]:
        table = o3c.HashSet(4, getattr(o3c, dtype), shape)
        keys = np.ones((3, *shape), dtype=dtype)
        same(table.insert(keys)[1], np.array([True, False, False]))


def test_tables_have_len_contains_iteration_copies_and_clear():
    table = core_map()
    table.insert([[1], [2]], [[10], [20]])
    assert len(table) == 2
    assert [1] in table
    assert [3] not in table
    assert [int(key[0]) for key in table] == [1, 2]
    for twin in (copy.copy(table), copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
        same(twin.get([[2]]), np.array([[20]]))
    table.clear()
    assert len(table) == 0
    assert "HashMap" in repr(table)


def test_numpy_asarray_of_a_tensor_is_an_array_of_numbers():
    array = np.asarray(o3c.Tensor([[1, 2], [3, 4]]))
    same(array, np.array([[1, 2], [3, 4]]))


def test_setting_rows_of_another_shape_does_not_write_the_first_value_twice():
    tensor = o3c.Tensor([[0], [0], [0]])
    try:
        tensor[o3c.Tensor([0, 1])] = o3c.Tensor([7, 8])
    except ValueError:
        same(tensor.numpy(), np.zeros((3, 1), dtype=np.int64))
    else:
        same(tensor.numpy(), np.array([[7], [8], [0]]))


def test_a_short_mask_and_an_index_out_of_bounds_raise():
    tensor = o3c.Tensor([[1], [2], [3]])
    for bad in (o3c.Tensor([True]), o3c.Tensor([3]), o3c.Tensor([-4])):
        with pytest.raises(IndexError):
            tensor[bad]
        with pytest.raises(IndexError):
            tensor[bad] = 0


def test_error_messages_are_plain_text():
    with pytest.raises(ValueError) as error:
        core_map().insert(np.zeros((3, 2), dtype=np.int64), np.zeros((3, 1), dtype=np.int64))
    assert "\x1b" not in str(error.value)
    assert ".cpp" not in str(error.value)


def test_repeated_and_reserved_keys_need_no_spare_capacity():
    table = tensorhash.HashSet(2, "int32", ())
    keys = np.arange(20_000, dtype=np.int32) % 2
    assert table.insert(keys)[1].sum() == 2
    table.reserve(20_000)
    capacity = table.capacity()
    assert table.insert(np.arange(2, 20_000, dtype=np.int32))[1].all()
    assert (table.size(), table.capacity()) == (20_000, capacity)
    table.validate()


@pytest.mark.parametrize("capacity", [*range(1, 9), 1_000_000])
def test_filling_a_table_to_the_brim_drops_no_key(capacity):
    table = tensorhash.HashSet(capacity, "int64", ())
    keys = np.arange(capacity) * 7919
    assert table.insert(keys)[1].all()
    assert table.contains(keys).all()
    assert table.capacity() == capacity
    assert not table.contains(keys + 1).any()


def test_columns_of_odd_widths_keep_their_values():
    table = tensorhash.HashMap(
        0, "int32", (3,), value_dtypes=("uint8", "float32"), value_element_shapes=((3,), (1,))
    )
    keys = np.arange(3000, dtype=np.int32).reshape(-1, 3)
    colors = np.arange(3000).astype(np.uint8).reshape(-1, 3)
    weights = np.arange(1000, dtype=np.float32)[:, None]
    table.insert(keys, (colors, weights))
    got = table.get(keys[::-1])
    same(got[0], np.ascontiguousarray(colors[::-1]))
    same(got[1], np.ascontiguousarray(weights[::-1]))


@pytest.mark.parametrize("shape", [3, (3), (3,), [3], o3c.SizeVector([3])])
def test_shapes_are_ints_tuples_lists_and_size_vectors(shape):
    table = o3c.HashMap(2, o3c.int64, shape, o3c.int64, shape)
    assert table.key_tensor().shape == (2, 3)
