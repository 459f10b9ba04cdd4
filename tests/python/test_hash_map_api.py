"""HashMap: names, keyword names, and the result of each call."""

import inspect

import numpy as np
import pytest
from oracle import same, same_pair

import tensorhash
import tensorhash.core as o3c

HashMap = tensorhash.HashMap


def small(capacity=10):
    table = HashMap(capacity, "int64", (1,), "float32", (2,))
    table.insert([[1], [2], [3]], [[1, 10], [2, 20], [3, 30]])
    return table


def test_the_constructor_takes_open3ds_keyword_names():
    one = HashMap(
        init_capacity=3,
        key_dtype="int64",
        key_element_shape=(1,),
        value_dtype="float32",
        value_element_shape=(2,),
        device="cpu",
    )
    assert one.capacity() == 3
    several = HashMap(
        init_capacity=3,
        key_dtype="int64",
        key_element_shape=(1,),
        value_dtypes=("float32", "uint8"),
        value_element_shapes=((2,), ()),
        device="cpu",
    )
    assert [view.shape for view in several.value_tensors()] == [(3, 2), (3,)]


def test_several_columns_may_be_given_in_place_of_one():
    table = HashMap(10, "int64", (3), ("int64", "float64"), ((1), (1)), "cpu")
    assert [view.dtype for view in table.value_tensors()] == [np.int64, np.float64]


@pytest.mark.parametrize(
    "arguments",
    [
        {"value_dtypes": ("int64",), "value_element_shape": (1,)},
        {"value_dtype": "int64", "value_element_shapes": ((1,),)},
        {"value_dtype": "int64"},
        {"value_element_shape": (1,)},
        {"value_dtypes": ("int64",)},
        {},
        {"capacity": 3, "value_dtype": "int64", "value_element_shape": ()},
    ],
)
def test_mixed_and_missing_value_arguments_are_a_type_error(arguments):
    with pytest.raises(TypeError):
        HashMap(10, "int64", (1,), **arguments)


def test_columns_without_shapes_are_a_value_error():
    with pytest.raises(ValueError, match="value_element_shapes"):
        HashMap(10, "int64", (), value_dtypes=("int8", "int8"), value_element_shapes=((),))


def test_a_map_without_columns_is_legal():
    table = HashMap(10, "int64", (), value_dtypes=(), value_element_shapes=())
    same(table.insert([1, 2, 1], [])[0], np.int32([0, 1, 0]))
    assert table.value_tensors() == []
    assert table.get([1]) == ()
    assert table.items()[1] == ()
    with pytest.raises(IndexError, match="value_buffer_id"):
        table.value_tensor()


@pytest.mark.parametrize("capacity", [np.int64(4), np.uint8(4), True + 3])
def test_init_capacity_is_any_integer(capacity):
    assert tensorhash.HashSet(capacity, "int64", ()).capacity() == 4


@pytest.mark.parametrize("capacity", [-1, -5])
def test_a_negative_capacity_is_a_value_error(capacity):
    with pytest.raises(ValueError, match=f"init_capacity.*{capacity}"):
        tensorhash.HashSet(capacity, "int64", ())


@pytest.mark.parametrize("capacity", [1.5, "4", None, [4]])
def test_a_capacity_that_is_not_an_integer_is_a_type_error(capacity):
    with pytest.raises(TypeError, match="init_capacity"):
        tensorhash.HashSet(capacity, "int64", ())


@pytest.mark.parametrize("shape", [(0,), (2, 0), 0])
def test_an_element_without_elements_is_a_value_error(shape):
    with pytest.raises(ValueError, match="key_element_shape"):
        HashMap(1, "int64", shape, "int64", ())
    with pytest.raises(ValueError, match="value_element_shape"):
        HashMap(1, "int64", (), "int64", shape)


@pytest.mark.parametrize("shape", [(-1,), (2, -3), "3", 1.5, None, (1.5,)])
def test_an_invalid_shape_is_refused(shape):
    with pytest.raises((TypeError, ValueError), match="shape"):
        HashMap(1, "int64", shape, "int64", ())


@pytest.mark.parametrize("shape", [3, (3,), [3], np.int64(3), o3c.SizeVector([3])])
def test_element_shapes_are_ints_tuples_and_lists(shape):
    assert HashMap(1, "int8", shape, "int8", shape).key_tensor().shape == (1, 3)


@pytest.mark.parametrize("device", ["cpu", "CPU", "cpu:0", "CPU:0", o3c.Device("CPU:0")])
def test_the_cpu_has_many_names(device):
    table = tensorhash.HashSet(1, "int64", (), device)
    assert table.device == "cpu:0"
    assert table.is_cpu
    assert not table.is_cuda


def test_an_unknown_device_is_refused():
    for device in ("gpu:0", "", "cpu:x", "cpu:-1", "tpu"):
        with pytest.raises(ValueError, match="device"):
            tensorhash.HashSet(1, "int64", (), device)
    with pytest.raises(TypeError, match="device"):
        tensorhash.HashSet(1, "int64", (), 0)
    for device in ("cuda", "cuda:0", "CUDA:3"):
        with pytest.raises(RuntimeError, match="CUDA"):
            tensorhash.HashSet(1, "int64", (), device)


def test_values_may_be_given_as_values_or_list_values():
    for arguments in (
        {"values": np.float32([[1, 2]])},
        {"values": [np.float32([[1, 2]])]},
        {"values": (np.float32([[1, 2]]),)},
        {"list_values": [np.float32([[1, 2]])]},
        {"list_values": (np.float32([[1, 2]]),)},
        {"values": [[1, 2]]},
    ):
        for name in ("insert", "insert_or_assign", "accumulate"):
            table = HashMap(10, "int64", (1,), "float32", (2,))
            getattr(table, name)(keys=np.array([[5]]), **arguments)
            same(table.get([[5]]), np.float32([[1, 2]]))


def test_values_and_list_values_together_are_a_type_error():
    with pytest.raises(TypeError, match="values"):
        small().insert([[1]], [[1, 2]], list_values=[[[1, 2]]])


def test_contains_erase_and_in_agree():
    table = small()
    same(table.contains([[3], [4], [1]]), np.array([True, False, True]))
    assert [3] in table
    assert np.array([3]) in table
    assert 3 in table
    assert np.int64(3) in table
    assert [4] not in table
    same(table.erase([[3]]), np.array([True]))
    assert [3] not in table


def test_in_refuses_more_than_one_key():
    with pytest.raises(ValueError, match="key"):
        [[1], [2]] in small()  # noqa: B015


def test_len_size_and_truth():
    assert len(small()) == small().size() == 3
    assert isinstance(small().size(), int)
    assert small()
    assert not HashMap(10, "int64", (), "int64", ())


def test_iteration_gives_the_keys_row_by_row():
    rows = list(small())
    assert len(rows) == 3
    same(np.stack(rows), small().keys())


def test_items_of_one_column_and_of_several():
    keys, values = small().items()
    same(keys, np.array([[1], [2], [3]]))
    same(values, np.float32([[1, 10], [2, 20], [3, 30]]))
    several = HashMap.from_items(np.array([5]), (np.array([1]), np.array([2.5])))
    keys, values = several.items()
    assert isinstance(values, tuple)
    same(values[0], np.array([1]))
    same(values[1], np.array([2.5]))


def test_listings_are_copies_and_views_are_not():
    table = small()
    keys, values = table.items()
    values[:] = 0
    keys[:] = 0
    same(table.get([[2]]), np.float32([[2, 20]]))
    table.value_tensor()[1] = 5
    same(table.get([[2]]), np.float32([[5, 5]]))
    assert np.shares_memory(table.value_tensor(), table.value_tensor())


def test_from_items_takes_dtypes_and_shapes_from_the_arrays():
    keys = np.array([[1, 2], [3, 4], [1, 2]], dtype=np.int16)
    table = HashMap.from_items(keys, np.array([[1.5], [2.5], [9.5]], dtype=np.float32))
    assert table.size() == 2
    assert table.key_tensor().dtype == np.int16
    same(table.get(keys), np.float32([[1.5], [2.5], [1.5]]))
    named = HashMap.from_items(keys=[1, 2], values=[0.5, 1.5])
    same(named.get([2, 1]), np.array([1.5, 0.5]))


def test_value_tensor_takes_the_number_of_a_column():
    table = HashMap(3, "int64", (), value_dtypes=["int8", "int16"], value_element_shapes=[(), (2,)])
    assert table.value_tensor().dtype == np.int8
    assert table.value_tensor(value_buffer_id=1).shape == (3, 2)
    for bad in (2, 99, -1):
        with pytest.raises((IndexError, TypeError), match="value_buffer_id"):
            table.value_tensor(bad)


def test_clear_empties_and_keeps_the_capacity():
    table = small()
    table.erase([[2]])
    table.clear()
    assert (table.size(), table.capacity()) == (0, 10)
    assert not table.contains([[1]]).any()
    same(table.insert([[7], [8]], [[0, 0]] * 2)[0], np.int32([0, 1]))
    table.validate()


def test_clone_is_independent():
    table = small()
    twin = table.clone()
    twin.insert([[9]], [[9, 9]])
    twin.value_tensor()[0] = -1
    table.erase([[3]])
    assert [9] not in table
    assert [3] in twin
    same(table.get([[1]]), np.float32([[1, 10]]))


def test_to_and_cpu_share_unless_a_copy_is_requested():
    table = small()
    for same_table in (table.cpu(), table.to("cpu"), table.to(device="cpu:0", copy=False)):
        same_table.insert([[50]], [[5, 5]])
        assert [50] in table
        table.erase([[50]])
    twin = table.to("cpu", copy=True)
    twin.erase([[1]])
    assert [1] in table
    with pytest.raises(RuntimeError, match="CUDA"):
        table.cuda(device_id=0)


def test_memory_usage_names_its_parts():
    usage = HashMap(1000, "int64", (), "float32", (4,)).memory_usage()
    assert usage["total"] == sum(usage[name] for name in ("keys", "values", "index", "bookkeeping"))
    assert usage["keys"] >= 8000
    assert usage["values"] >= 16_000


def test_shrink_to_fit_gives_memory_back_and_moves_no_entry():
    table = HashMap(200_000, "int64", (), "int64", ())
    keys = np.arange(100_000)
    table.insert(keys, keys)
    table.erase(keys[50_000:])
    table.erase(keys[:10])
    before = table.memory_usage()["total"]
    table.shrink_to_fit()
    assert table.capacity() == 50_000
    assert table.memory_usage()["total"] < before / 3
    same_pair(
        table.find(keys[:60_000]),
        (
            np.where((keys >= 10) & (keys < 50_000), keys, -1)[:60_000].astype(np.int32),
            ((keys >= 10) & (keys < 50_000))[:60_000],
        ),
    )
    same(table.insert([7, 8], [1, 2])[0], np.int32([9, 8]))
    table.validate()


def test_a_hash_map_has_all_its_methods():
    names = """insert activate find insert_or_assign accumulate erase contains get keys items
    from_items load compact active_buf_indices key_tensor value_tensor value_tensors reserve size shrink_to_fit
    capacity clear clone to cpu cuda save device is_cpu is_cuda memory_usage validate"""
    for name in names.split():
        assert hasattr(HashMap, name), name
    parameters = inspect.signature(HashMap.value_tensor).parameters
    assert list(parameters)[1:] == ["value_buffer_id"]
    assert "file_name" in inspect.signature(HashMap.save).parameters
    assert "device_id" in inspect.signature(HashMap.cuda).parameters


def test_insert_leaves_existing_values_alone():
    table = small()
    same_pair(table.insert([[2]], [[7, 7]]), (np.int32([1]), np.array([False])))
    same(table.get([[2]]), np.float32([[2, 20]]))


@pytest.mark.parametrize(("name", "part"), tensorhash._ELSEWHERE.items())
def test_a_name_that_lives_in_a_part_is_pointed_to(name, part):
    if part in ("torch", "distributed"):
        pytest.importorskip("torch")
    assert hasattr(getattr(tensorhash, part), name)
    with pytest.raises(AttributeError, match=rf"; use tensorhash\.{part}\.{name}$"):
        getattr(tensorhash, name)
