"""HashSet: a map without values and without the calls that need them."""

import numpy as np
import pytest
from oracle import Oracle, same, same_pair

import tensorhash
import tensorhash.core as o3c


def test_the_constructor_takes_open3ds_keyword_names():
    table = tensorhash.HashSet(
        init_capacity=3, key_dtype="int64", key_element_shape=(2,), device="cpu"
    )
    assert table.capacity() == 3
    assert table.key_tensor().shape == (3, 2)


@pytest.mark.parametrize("module", [tensorhash, o3c])
def test_a_set_has_no_calls_that_need_values(module):
    for name in ("activate", "value_tensor", "value_tensors", "get", "items", "accumulate"):
        assert not hasattr(module.HashSet, name), name
    with pytest.raises(TypeError):
        module.HashSet(1, "int64", ()).insert([1], [2])


def test_a_set_does_what_a_dict_does():
    rng = np.random.default_rng(0)
    table = tensorhash.HashSet(0, "int16", (2,))
    oracle = Oracle()
    for _ in range(30):
        keys = rng.integers(-9, 9, (150, 2)).astype(np.int16)
        same_pair(table.insert(keys), oracle.insert(keys, np.zeros(150)))
        gone = rng.integers(-9, 9, (80, 2)).astype(np.int16)
        same(table.erase(gone), oracle.erase(gone))
        same_pair(table.find(keys), oracle.find(keys))
    same(table.active_buf_indices(), oracle.live())
    table.validate()


def test_membership_length_iteration_and_clear():
    table = tensorhash.HashSet(4, "int32", (3,))
    table.insert([[0, 0, 1], [2, 0, 0], [0, 0, 1]])
    assert len(table) == 2
    assert [2, 0, 0] in table
    assert (2, 0, 0) in table
    assert np.int32([2, 0, 0]) in table
    assert [2, 0, 1] not in table
    same(np.stack(list(table)), np.int32([[0, 0, 1], [2, 0, 0]]))
    table.clear()
    assert len(table) == 0
    assert list(table) == []


def test_compact_reserve_clone_and_to():
    table = tensorhash.HashSet(4, "int64", ())
    table.insert([5, 6, 7, 8])
    table.erase([5, 7])
    twin = table.clone()
    same(table.compact(), np.int32([-1, 0, -1, 1]))
    same(twin.active_buf_indices(), np.int32([1, 3]))
    table.reserve(100)
    assert table.capacity() >= 100
    same(table.to("cpu", copy=True).keys(), np.array([6, 8]))
    assert table.cpu().size() == 2
    assert table.memory_usage()["values"] == 0


@pytest.mark.parametrize("suffix", [".thash", ".npz"])
def test_files_of_sets_and_maps(tmp_path, suffix):
    table = tensorhash.HashSet(4, "int64", ())
    table.insert([5, 6, 7])
    table.save(tmp_path / f"set{suffix}")
    same(tensorhash.HashSet.load(tmp_path / f"set{suffix}").keys(), np.array([5, 6, 7]))
    same(tensorhash.HashMap.load(tmp_path / f"set{suffix}").keys(), np.array([5, 6, 7]))
    tensorhash.HashMap.from_items([1], [2]).save(tmp_path / f"map{suffix}")
    with pytest.raises(ValueError, match="HashMap"):
        tensorhash.HashSet.load(tmp_path / f"map{suffix}")
