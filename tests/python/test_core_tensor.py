"""tensorhash.core.Tensor, Device, Dtype, SizeVector, as Open3D scripts use them."""

import copy
import pickle

import numpy as np
import pytest
from oracle import same

import tensorhash.core as o3c

Tensor = o3c.Tensor


def test_lists_become_int64_float64_or_bool_and_arrays_keep_their_dtype():
    assert Tensor([1, 2]).dtype == o3c.int64
    assert Tensor([1.0, 2]).dtype == o3c.float64
    assert Tensor([True]).dtype == o3c.bool
    assert Tensor([[1, 2], [3, 4]], dtype=o3c.float32).dtype == o3c.float32
    assert Tensor(np.zeros(3, dtype=np.uint16)).dtype == o3c.uint16
    assert Tensor([1, 2], o3c.float64).dtype == o3c.float64
    assert Tensor([1], device="CPU:0").device == o3c.Device("CPU:0")


def test_a_tensor_copies_its_source_and_from_numpy_shares_it():
    array = np.arange(4)
    copied, shared = Tensor(array), Tensor.from_numpy(array)
    array[0] = 9
    same(copied.numpy(), np.arange(4))
    assert shared.numpy()[0] == 9
    shared[o3c.Tensor([1])] = 8
    assert array[1] == 8


def test_shape_strides_length_and_kind():
    tensor = Tensor(np.zeros((2, 3, 4), dtype=np.float32))
    assert tensor.shape == (2, 3, 4) == tuple(tensor.shape)
    assert tensor.shape == [2, 3, 4]
    assert tensor.shape[0] == 2
    assert tensor.strides == (12, 4, 1)
    assert len(tensor) == 2
    assert (tensor.ndim, tensor.num_elements()) == (3, 24)
    assert tensor.is_contiguous()
    assert not Tensor(np.zeros((2, 3))).T().is_contiguous()
    assert tensor.is_cpu
    assert not tensor.is_cuda


def test_reading_by_mask_integers_slices_and_several_axes():
    array = np.arange(12).reshape(4, 3)
    tensor = Tensor(array)
    mask = np.array([True, False, True, True])
    rows = np.array([3, 0, 3])
    for index in (Tensor(mask), mask, mask.tolist()):
        same(tensor[index], array[mask])
    for index in (Tensor(rows), rows, rows.tolist(), Tensor(rows).to(o3c.int32), rows.astype("u1")):
        same(tensor[index], array[rows])
    same(tensor[1:3], array[1:3])
    same(tensor[::2, 1], array[::2, 1])
    same(tensor[Tensor(rows), :], array[rows])
    same(tensor[-1], array[-1])
    same(tensor[1, 2], array[1, 2])
    same(tensor[Tensor(2)], array[2])
    same(tensor[..., 0], array[..., 0])
    same(tensor[[]], array[[]])


def test_writing_by_mask_integers_and_slices_casts_the_dtype():
    tensor = Tensor(np.zeros((4, 1), dtype=np.int64))
    tensor[Tensor([2, 0])] = Tensor([[7], [8]])
    same(tensor.numpy(), np.array([[8], [0], [7], [0]]))
    tensor[Tensor([False, True, False, True])] = Tensor([[1.0], [2.0]])
    same(tensor.numpy(), np.array([[8], [1], [7], [2]]))
    tensor[1:3] = 5
    same(tensor.numpy(), np.array([[8], [5], [5], [2]]))
    tensor[Tensor(3)] = np.array([6])
    same(tensor.numpy(), np.array([[8], [5], [5], [6]]))


def test_slices_are_views_and_an_element_is_one_too():
    tensor = Tensor(np.arange(6).reshape(2, 3))
    row = tensor[1]
    row[0] = 100
    assert tensor.numpy()[1, 0] == 100
    element = tensor[0, 2]
    assert element.shape == ()
    assert element.item() == 2


def test_bad_indices_raise():
    tensor = Tensor([1, 2, 3])
    for bad in (3, -4, Tensor([3]), Tensor([True, False]), Tensor([0.5]), "a"):
        with pytest.raises((IndexError, TypeError)):
            tensor[bad]


def test_to_converts_and_shares_where_nothing_changes():
    tensor = Tensor([1, 2, 3])
    assert tensor.to(o3c.int64).numpy().ctypes.data == tensor.numpy().ctypes.data
    copied = tensor.to(o3c.int64, copy=True)
    assert copied.numpy().ctypes.data != tensor.numpy().ctypes.data
    assert tensor.to(o3c.float32).dtype == o3c.float32
    assert tensor.to(o3c.Device("CPU:0")).numpy().ctypes.data == tensor.numpy().ctypes.data
    assert tensor.cpu().numpy().ctypes.data == tensor.numpy().ctypes.data
    with pytest.raises(RuntimeError, match="CUDA"):
        tensor.to(o3c.Device("CUDA:0"))


def test_reshape_takes_a_tuple_or_numbers_and_views():
    tensor = Tensor([1, 2, 3, 4])
    for shaped in (tensor.reshape((-1, 1)), tensor.reshape(-1, 1)):
        assert shaped.shape == (4, 1)
        assert np.shares_memory(shaped.numpy(), tensor.numpy())
    with pytest.raises(ValueError):
        tensor.reshape((3, 2))


def test_numpy_shares_memory_and_asarray_works():
    tensor = Tensor([[1, 2]])
    array = np.asarray(tensor)
    assert array.dtype == np.int64
    array[0, 0] = 5
    assert tensor.numpy()[0, 0] == 5
    assert np.asarray(tensor, dtype=np.float32).dtype == np.float32
    same(np.array([tensor.numpy(), tensor.numpy()]), np.array([[[5, 2]], [[5, 2]]]))
    assert np.add(np.asarray(tensor), 1).tolist() == [[6, 3]]


def test_sums_comparisons_and_truth():
    mask = Tensor([True, True, False])
    assert mask.to(o3c.int64).sum() == 2
    assert bool(mask.to(o3c.int64).sum() == 2) is True
    assert (Tensor([1, 2]) == Tensor([1, 2])).all()
    assert not (Tensor([1, 2]) == Tensor([1, 3])).all()
    assert int(Tensor([5])[0]) == 5
    assert float(Tensor([0.5])[0]) == 0.5
    with pytest.raises(ValueError):
        bool(Tensor([1, 2]))


def test_print_shows_elements_then_shape_stride_dtype_and_device():
    text = str(Tensor([0, 1, 2, 3, 4]))
    assert text.startswith("[0 1 2 3 4]\nTensor[shape={5}, stride={1}, Int64, CPU:0, 0x")
    text = str(Tensor([[True], [False]]))
    assert "True" in text.splitlines()[0]
    assert "shape={2, 1}, stride={1, 1}, Bool, CPU:0" in text
    assert "shape={0}" in str(Tensor(np.zeros(0)))
    assert len(str(Tensor(np.zeros(100_000)))) < 500


def test_clone_copy_and_pickle_are_independent():
    tensor = Tensor([1, 2, 3])
    for twin in (
        tensor.clone(),
        copy.copy(tensor),
        copy.deepcopy(tensor),
        pickle.loads(pickle.dumps(tensor)),
    ):
        twin[0] = 9
        assert twin.dtype == tensor.dtype
    same(tensor.numpy(), np.array([1, 2, 3]))


@pytest.mark.parametrize("version", [None, (1, 0), (1, 1), (0, 8)])
def test_dlpack_is_exported_under_the_name_that_the_consumer_requests(version):
    capsule = Tensor([1, 2, 3]).__dlpack__(max_version=version)
    expected = "dltensor" if version is None or version[0] < 1 else "dltensor_versioned"
    assert f'"{expected}"' in repr(capsule)
    same(Tensor.from_dlpack(capsule).numpy(), np.array([1, 2, 3]))


def test_a_capsule_is_used_once():
    capsule = Tensor([1, 2, 3]).to_dlpack()
    Tensor.from_dlpack(capsule)
    with pytest.raises((ValueError, TypeError, RuntimeError, BufferError)):
        Tensor.from_dlpack(capsule)


@pytest.mark.parametrize("bad", [None, 5, "abc", [1, 2], object()])
def test_from_dlpack_refuses_other_objects(bad):
    with pytest.raises(TypeError):
        Tensor.from_dlpack(bad)


def test_strides_are_kept_through_dlpack_without_a_copy():
    array = np.arange(24).reshape(4, 6)
    for view in (array[:, ::2], array.T, array[::-1], array[1:3, 2:5]):
        tensor = Tensor.from_dlpack(Tensor.from_numpy(view).__dlpack__())
        same(tensor.numpy(), view)
        assert tensor.numpy().ctypes.data == view.ctypes.data
        assert tensor.numpy().strides == view.strides


def test_numpy_takes_a_tensor_by_dlpack():
    tensor = Tensor([[1, 2], [3, 4]])
    array = np.from_dlpack(tensor)
    assert array.ctypes.data == tensor.numpy().ctypes.data
    assert tensor.__dlpack_device__() == (1, 0)


def test_devices_have_kind_number_and_equality():
    device = o3c.Device("cuda:1")
    assert (device.get_type(), device.get_id()) == (o3c.Device.DeviceType.CUDA, 1)
    assert str(o3c.Device("cpu:0")) == "CPU:0"
    assert o3c.Device("CPU:0") == o3c.Device("cpu")
    assert o3c.Device("CPU:0") != device
    assert o3c.Device(o3c.Device.DeviceType.CPU, 0) == o3c.Device("CPU:0")
    for bad in ("gpu:0", "cpu:x", ""):
        with pytest.raises(ValueError, match="device"):
            o3c.Device(bad)


def test_dtypes_have_open3ds_names():
    assert repr(o3c.int64) == "Int64"
    assert repr(o3c.float32) == "Float32"
    assert repr(o3c.uint8) == "UInt8"
    assert o3c.Dtype.Int64 == o3c.int64
    assert o3c.int64 != o3c.int32
    assert o3c.int64.byte_size() == 8
    assert len({o3c.int64, o3c.Dtype.Int64}) == 1


def test_values_out_of_range_for_the_dtype_are_refused():
    with pytest.raises((ValueError, OverflowError, TypeError)):
        Tensor([300], dtype=o3c.uint8)
    with pytest.raises((ValueError, OverflowError, TypeError)):
        Tensor([2**70])
