"""Inputs that broke the tables of other projects.

Imports and workers are in test_import_order.py and test_processes.py, large values in test_big.py.
"""

import time

import numpy as np
import pytest
from oracle import Oracle, check, same, same_pair

import tensorhash


def int64_map(capacity=10):
    return tensorhash.HashMap(capacity, "int64", (1,), "int64", (1,))


def test_extreme_int64_keys_are_ordinary():
    keys = np.array([-1, -2, 0, -(2**63), 2**63 - 1])[:, None]
    table = int64_map()
    same(table.insert(keys, keys)[0], np.arange(5, dtype=np.int32))
    same(table.get(keys[::-1]), keys[::-1])
    same(table.erase(keys[:4]), np.ones(4, dtype=bool))
    same(table.find(keys)[0], np.int32([-1, -1, -1, -1, 4]))
    same(table.insert(keys, keys)[0], np.int32([3, 2, 1, 0, 4]))
    table.validate()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_zeros_of_both_signs_are_one_key_and_all_nans_are_one_key(dtype, width):
    bits = {"float32": (np.uint32, 0x7FC00000), "float64": (np.uint64, 0x7FF8 << 48)}[dtype]
    nans = np.array([bits[1], bits[1] + 5, bits[1] | (1 << (31 if width else 63))], dtype=bits[0])
    nans = nans.view(dtype)
    column = np.concatenate([np.array([-0.0, 0.0, 1.5], dtype=dtype), nans])
    keys = np.repeat(column[:, None], width, axis=1)
    table = tensorhash.HashMap(0, dtype, (width,), "int64", ())
    indices, mask = table.insert(keys, np.arange(6))
    same(indices, np.int32([0, 0, 1, 2, 2, 2]))
    same(mask, np.array([True, False, True, True, False, False]))
    # Stored with the bits of the first row.
    assert table.keys().tobytes() == keys[[0, 2, 3]].tobytes()
    assert np.signbit(table.keys()[0]).all()
    same(table.find(keys[::-1])[0], np.int32([2, 2, 2, 1, 0, 0]))
    assert table.erase(keys[[1, 4]]).all()
    assert table.size() == 1


@pytest.mark.parametrize(
    "dtype, width",
    [("uint8", n) for n in (1, 2, 3, 5, 7, 12)]
    + [("bool", 1), ("bool", 7), ("int16", 3)]
    + [(name, 7) for name in ("int16", "int32", "int64")]
    + [("float64", 7), ("int64", 16)],
)
def test_keys_of_any_width_work(dtype, width):
    rng = np.random.default_rng(width)
    keys = rng.integers(0, 2 if dtype == "bool" else 4, (3000, width)).astype(dtype)
    table = tensorhash.HashMap(0, dtype, (width,), "int64", ())
    oracle = Oracle()
    rows = np.arange(3000)
    same_pair(table.insert(keys, rows), oracle.insert(keys, rows))
    same(table.erase(keys[:1500:3]), oracle.erase(keys[:1500:3]))
    check(table, oracle)
    same_pair(table.find(keys), oracle.find(keys))


@pytest.mark.timeout(120)
def test_a_hundred_thousand_voxels_of_the_negative_octant_are_distinct():
    axis = -1 - np.arange(47, dtype=np.int32)
    keys = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    table = tensorhash.HashSet(0, "int32", (3,))
    assert table.insert(keys)[1].all()
    same(table.find(keys)[0], np.arange(len(keys), dtype=np.int32))
    assert not table.contains(-keys).any()


def test_a_column_slice_and_a_transpose_are_read_by_their_strides():
    table = int64_map()
    table.insert(np.arange(12).reshape(6, 2)[:, 0:1], np.zeros((6, 1), dtype=np.int64))
    same(table.keys(), np.array([0, 2, 4, 6, 8, 10])[:, None])
    pairs = tensorhash.HashSet(10, "int64", (2,))
    rows = np.arange(6).reshape(2, 3).T
    pairs.insert(rows)
    same(pairs.keys(), np.array([[0, 3], [1, 4], [2, 5]]))


def test_negative_strides_broadcast_and_fortran_order_are_read_by_their_strides():
    grid = np.arange(12).reshape(4, 3)
    for keys in (
        grid[::-1],
        grid[:, ::-1],
        np.asfortranarray(grid),
        np.broadcast_to(grid[1], (5, 3)),
    ):
        table = tensorhash.HashSet(10, "int64", (3,))
        table.insert(keys)
        expected = keys[:1] if keys.strides[0] == 0 else keys
        same(table.keys(), np.ascontiguousarray(expected))


@pytest.mark.parametrize("keys", [np.zeros((4, 1)), np.zeros((4, 2), dtype=np.int32)])
def test_keys_of_another_dtype_and_equal_bytes_are_a_type_error(keys):
    table = int64_map()
    with pytest.raises(TypeError, match="keys: expected int64"):
        table.insert(keys, np.zeros((4, 1), dtype=np.int64))
    with pytest.raises(TypeError, match="values: expected int64"):
        table.insert(np.zeros((4, 1), dtype=np.int64), keys)
    assert table.size() == 0


def test_three_columns_for_a_four_column_key_are_a_value_error():
    table = tensorhash.HashSet(10, "int32", (4,))
    with pytest.raises(ValueError, match=r"keys: expected shape \(N, 4\).*got \(5, 3\)"):
        table.insert(np.zeros((5, 3), dtype=np.int32))
    assert table.size() == 0


def test_keys_and_values_of_different_lengths_are_a_value_error():
    table = int64_map()
    with pytest.raises(ValueError, match="values: expected 3 rows.*got 2"):
        table.insert([[1], [2], [3]], [[1], [2]])
    assert table.size() == 0


def test_empty_batches_give_empty_results_everywhere(tmp_path):
    empty = np.zeros((0, 1), dtype=np.int64)
    table = int64_map(0)
    for result in (*table.insert(empty, empty), *table.find(empty), table.erase(empty)):
        assert result.shape == (0,)
    same(tensorhash.unique(empty), empty)
    table.save(tmp_path / "empty")
    same(tensorhash.HashMap.load(tmp_path / "empty").items()[1], empty)


def test_read_only_big_endian_and_bool_inputs_are_taken_and_not_changed():
    keys = np.arange(6, dtype=">i8")[:, None]
    keys.flags.writeable = False
    table = int64_map()
    same(table.insert(keys, keys)[0], np.arange(6, dtype=np.int32))
    same(table.get(keys[::-1]), np.arange(6)[::-1][:, None])
    assert keys.tolist() == np.arange(6)[:, None].tolist()
    flags = tensorhash.HashSet(4, "bool", ())
    mask = np.array([True, False, True])
    mask.flags.writeable = False
    same(flags.insert(mask)[0], np.int32([0, 1, 0]))
    same(table.erase(keys[mask[[0, 1, 2, 0, 1, 2]]]), np.ones(4, dtype=bool))


def test_a_million_copies_of_one_key_keep_row_0_on_any_thread_count():
    keys = np.full((1_000_000, 1), 5)
    values = np.arange(1_000_000)[:, None]
    for run in range(20):
        tensorhash.set_num_threads([1, 2, 3, 8, 64][run % 5])
        table = int64_map(4)
        indices, mask = table.insert(keys, values)
        assert not indices.any()
        assert mask[0]
        assert mask.sum() == 1
        same(table.get([[5]]), np.array([[0]]))
        assert table.capacity() == 4


def test_first_row_and_last_row_rules_hold_with_the_key_in_table_and_batch():
    for adding, expected in (("insert", [70, 80]), ("insert_or_assign", [3, 4])):
        table = int64_map()
        table.insert([[7]], [[70]])
        indices, mask = getattr(table, adding)([[7], [8], [7], [8]], [[1], [80], [3], [4]])
        same(indices, np.int32([0, 1, 0, 1]))
        same(mask, np.array([False, True, False, False]))
        same(table.get([[7], [8]]), np.array(expected)[:, None])


def test_a_key_reinserted_after_a_neighbour_was_erased_is_stored_once():
    # In such a full table, every key shares its probe with many others.
    rng = np.random.default_rng(17)
    table = tensorhash.HashMap(64, "int64", (), "int64", ())
    oracle = Oracle()
    for _ in range(400):
        erased, added = rng.integers(0, 96, 7), rng.integers(0, 96, 9)
        same(table.erase(erased), oracle.erase(erased))
        same_pair(table.insert(added, added), oracle.insert(added, added))
        assert len(np.unique(table.keys())) == table.size()
    check(table, oracle)


@pytest.mark.parametrize("dtype, width", [("int64", 1), ("int32", 4)])
def test_a_hundred_thousand_random_operations_agree_with_a_dict(dtype, width):
    rng = np.random.default_rng(18)
    table = tensorhash.HashSet(0, dtype, (width,))
    model = {}
    for _ in range(500):
        numbers = rng.integers(0, 5000, 200)
        keys = np.repeat(numbers[:, None], width, axis=1).astype(dtype)
        if rng.random() < 0.5:
            _, mask = table.insert(keys)
            assert mask.sum() == len(set(numbers.tolist()) - model.keys())
            model.update(dict.fromkeys(numbers.tolist()))
        else:
            mask = table.erase(keys)
            assert mask.sum() == len(set(numbers.tolist()) & model.keys())
            for number in numbers.tolist():
                model.pop(number, None)
        assert table.size() == len(model)
    assert sorted(table.keys()[:, 0].tolist()) == sorted(model)
    table.validate()


@pytest.mark.timeout(60)
def test_after_erasing_everything_lookups_end_and_find_nothing():
    for capacity in (1, 4, 1000):
        table = tensorhash.HashSet(capacity, "int64", ())
        for turn in range(50):
            keys = np.arange(capacity) + turn * capacity
            table.insert(keys)
            assert table.erase(keys).all()
        keys = np.arange(2000)
        assert not table.contains(keys).any()
        assert not table.erase(keys).any()
        assert (table.find(keys)[0] == -1).all()
        table.validate()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("capacity", [0, 1, 4])
def test_five_inserts_into_a_tiny_table_are_all_kept(capacity):
    table = int64_map(capacity)
    for key in range(5):
        assert table.insert([[key]], [[key * 10]])[1].all()
        table.reserve(0)
        assert not table.contains([[99]]).any()
    same(table.get(np.arange(5)[:, None]), np.arange(0, 50, 10)[:, None])
    table.validate()


def test_erase_of_a_repeated_and_a_missing_key():
    table = int64_map(4)
    table.insert([[1], [2], [3], [4]], [[0]] * 4)
    same(table.erase([[3], [3], [999]]), np.array([True, False, False]))
    assert table.size() == 3
    same(table.insert([[5]], [[0]])[0], np.int32([2]))
    assert table.capacity() == 4


def test_indices_survive_reserve_and_growth_and_old_views_stay_safe():
    table = int64_map(10)
    keys = np.arange(10)[:, None]
    indices, _ = table.insert(keys, keys * 2)
    view = table.value_tensor()
    table.reserve(5000)
    same(table.find(keys)[0], indices)
    table.insert(np.arange(100, 20_000)[:, None], np.zeros((19_900, 1), dtype=np.int64))
    same(table.find(keys)[0], indices)
    same(table.value_tensor()[indices], keys * 2)
    same(view[indices], keys * 2)


def test_a_batch_of_refused_keys_does_not_grow_the_table():
    table = int64_map(2)
    before = table.memory_usage()
    with pytest.raises(ValueError):
        table.insert([[i] for i in range(1000)] + [[2**63]], [[0]] * 1001)
    with pytest.raises(TypeError):
        table.insert(np.zeros((1000, 1)), np.zeros((1000, 1), dtype=np.int64))
    assert table.capacity() == 2
    assert table.memory_usage() == before


def test_eight_threads_find_during_insert_and_growth():
    import threading

    table = int64_map(0)
    keys = np.arange(40_000)[:, None]
    wrong = []
    done = threading.Event()

    def read():
        while not done.is_set():
            indices, found = table.find(keys)
            if not (indices[found] == keys[found][:, 0]).all():
                wrong.append(indices)
            listed, values = table.items()
            if not (listed * 2 == values).all():
                wrong.append(listed)

    readers = [threading.Thread(target=read) for _ in range(8)]
    for reader in readers:
        reader.start()
    for start in range(0, 40_000, 400):
        table.insert(keys[start : start + 400], keys[start : start + 400] * 2)
        time.sleep(0)
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    table.validate()
