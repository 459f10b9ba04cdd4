"""Drop-in: scripts written for Open3D's hash map, with one import changed.

One test has over 50 lines: it follows a whole example of Open3D's documentation.
"""

import numpy as np
import pytest
from oracle import same

import tensorhash.core as o3c


def test_the_map_example_gives_what_its_comments_state(capsys):
    capacity = 10
    device = o3c.Device("cpu:0")
    hashmap = o3c.HashMap(
        capacity,
        key_dtype=o3c.int64,
        key_element_shape=(1,),
        value_dtype=o3c.int64,
        value_element_shape=(1,),
        device=device,
    )
    hashmap.reserve(capacity)
    keys = o3c.Tensor(
        [[100], [200], [400], [800], [300], [200], [100]], dtype=o3c.int64, device=device
    )
    vals = o3c.Tensor([[1], [2], [4], [8], [3], [2], [1]], dtype=o3c.int64, device=device)
    buf_indices, masks = hashmap.insert(keys, vals)
    print(masks)
    assert capsys.readouterr().out.startswith("[True True True True True False False]\n")
    assert buf_indices.dtype == o3c.int32
    assert masks.dtype == o3c.bool

    buf_indices = buf_indices[masks].to(o3c.int64)
    print(buf_indices)
    printed = capsys.readouterr().out
    assert printed.startswith("[0 1 2 3 4]\nTensor[shape={5}, stride={1}, Int64, CPU:0, 0x")

    buf_keys = hashmap.key_tensor()
    buf_vals = hashmap.value_tensor()
    same(buf_keys[buf_indices], np.array([[100], [200], [400], [800], [300]]))
    same(buf_vals[buf_indices], np.array([[1], [2], [4], [8], [3]]))

    query_keys = o3c.Tensor(
        [[1000], [100], [300], [200], [100], [0]], dtype=o3c.int64, device=device
    )
    buf_indices, masks = hashmap.find(query_keys)
    same(query_keys[masks], np.array([[100], [300], [200], [100]]))
    buf_indices = buf_indices[masks].to(o3c.int64)
    same(buf_vals[buf_indices], np.array([[1], [3], [2], [1]]))

    all_buf_indices = hashmap.active_buf_indices().to(o3c.int64)
    same(buf_keys[all_buf_indices], np.array([[100], [200], [400], [800], [300]]))
    same(buf_vals[all_buf_indices], np.array([[1], [2], [4], [8], [3]]))

    erase_keys = o3c.Tensor([[100], [1000], [100]], dtype=o3c.int64, device=device)
    masks = hashmap.erase(erase_keys)
    same(erase_keys[masks], np.array([[100]]))

    keys = o3c.Tensor([[1000], [0]], dtype=o3c.int64, device=device)
    buf_indices, masks = hashmap.activate(keys)
    same(buf_indices, np.int32([0, 5]))
    buf_vals[buf_indices[masks].to(o3c.int64)] = o3c.Tensor(
        [[10], [0]], dtype=o3c.int64, device=device
    )
    same(hashmap.get(keys), np.array([[10], [0]]))
    same(hashmap.get(o3c.Tensor([[200], [300]])), np.array([[2], [3]]))


def test_the_multi_value_example_gives_what_it_inserted():
    device = o3c.Device("cpu:0")
    mhashmap = o3c.HashMap(
        10,
        key_dtype=o3c.int32,
        key_element_shape=(3,),
        value_dtypes=(o3c.uint8, o3c.float32),
        value_element_shapes=((3,), (1,)),
        device=device,
    )
    assert len(mhashmap.value_tensors()) == 2
    voxel_coords = o3c.Tensor([[0, 1, 0], [-1, 2, 3], [3, 4, 1]], dtype=o3c.int32, device=device)
    voxel_colors = o3c.Tensor(
        [[0, 255, 0], [255, 255, 0], [255, 0, 0]], dtype=o3c.uint8, device=device
    )
    voxel_weights = o3c.Tensor([[0.9], [0.1], [0.3]], dtype=o3c.float32, device=device)
    mhashmap.insert(voxel_coords, (voxel_colors, voxel_weights))

    query_coords = o3c.Tensor([[0, 1, 0]], dtype=o3c.int32, device=device)
    buf_indices, masks = mhashmap.find(query_coords)
    same(query_coords[masks], np.int32([[0, 1, 0]]))
    buf_indices = buf_indices[masks].to(o3c.int64)
    same(mhashmap.value_tensor(0)[buf_indices], np.uint8([[0, 255, 0]]))
    same(mhashmap.value_tensor(1)[buf_indices], np.float32([[0.9]]))


def test_the_set_example_holds_each_key_once():
    device = o3c.Device("cpu:0")
    hashset = o3c.HashSet(10, key_dtype=o3c.int64, key_element_shape=(1,), device=device)
    keys = o3c.Tensor([1, 3, 5, 7, 5, 3, 1], dtype=o3c.int64, device=device).reshape((-1, 1))
    hashset.insert(keys)
    active_buf_indices = hashset.active_buf_indices().to(o3c.int64)
    same(hashset.key_tensor()[active_buf_indices], np.array([[1], [3], [5], [7]]))


def test_the_torch_example_shares_memory_both_ways_on_the_cpu():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.utils.dlpack")

    th_a = torch.ones((5,))
    o3_a = o3c.Tensor.from_dlpack(torch.utils.dlpack.to_dlpack(th_a))
    assert o3_a.dtype == o3c.float32
    th_a[1] = 7
    o3_a[o3c.Tensor([3])] = o3c.Tensor([9.0], dtype=o3c.float32)
    assert o3_a.numpy().tolist() == th_a.tolist() == [1, 7, 1, 9, 1]
    assert o3_a.numpy().ctypes.data == th_a.data_ptr()

    o3_a = o3c.Tensor([1, 1, 1, 1, 1], device=o3c.Device("CPU:0"))
    th_a = torch.utils.dlpack.from_dlpack(o3_a.to_dlpack())
    assert th_a.dtype == torch.int64
    assert th_a.data_ptr() == o3_a.numpy().ctypes.data
    th_a[0] = 5
    o3_a[o3c.Tensor([4])] = 6
    assert o3_a.numpy().tolist() == th_a.tolist() == [5, 1, 1, 1, 6]


def test_cuda_without_cuda_is_a_clear_error_on_use_only():
    device = o3c.Device("CUDA:0")
    assert device.get_type() == o3c.Device.DeviceType.CUDA
    for use in (
        lambda: o3c.Tensor([1], device=device),
        lambda: o3c.HashSet(1, o3c.int64, (1,), device),
        lambda: o3c.Tensor([1]).cuda(0),
        lambda: o3c.HashSet(1, o3c.int64, (1,)).cuda(0),
        lambda: o3c.HashSet(1, o3c.int64, (1,)).to(device),
    ):
        with pytest.raises(RuntimeError, match="no CUDA"):
            use()
    assert o3c.cuda.device_count() == 0
    assert o3c.sycl.get_available_devices() == []


# What Open3D's own tests of its hash map check, rewritten.

KEYS = [100, 300, 500, 700, 900, 900]
VALUES = [1, 3, 5, 7, 9, 9]
DEVICE = o3c.Device("CPU:0")


def one_column_map():
    hashmap = o3c.HashMap(10, o3c.int64, [1], o3c.int64, [1], DEVICE)
    indices, masks = hashmap.insert(
        o3c.Tensor(KEYS, dtype=o3c.int64, device=DEVICE),
        o3c.Tensor(VALUES, dtype=o3c.int64, device=DEVICE),
    )
    return hashmap, indices, masks


def active_rows(hashmap):
    places = hashmap.active_buf_indices().to(o3c.int64)
    keys = hashmap.key_tensor()[places].cpu().numpy().flatten()
    values = hashmap.value_tensor()[places].cpu().numpy().flatten()
    order = np.argsort(keys)
    return keys[order].tolist(), values[order].tolist()


def test_creation():
    assert o3c.HashMap(10, o3c.int64, [1], o3c.int64, [1], DEVICE).size() == 0


def test_insertion():
    hashmap, indices, masks = one_column_map()
    assert masks.to(o3c.int64).sum() == 5
    places = indices[masks].to(o3c.int64)
    assert (hashmap.key_tensor()[places] == hashmap.value_tensor()[places] * 100).all()


def test_activate():
    hashmap = o3c.HashMap(10, o3c.int64, [1], o3c.int64, [1], DEVICE)
    _, masks = hashmap.activate(o3c.Tensor(KEYS, dtype=o3c.int64, device=DEVICE))
    assert masks.to(o3c.int64).sum() == 5
    assert active_rows(hashmap)[0] == [100, 300, 500, 700, 900]


def test_find():
    hashmap, _, _ = one_column_map()
    indices, masks = hashmap.find(o3c.Tensor([100, 200, 500], dtype=o3c.int64, device=DEVICE))
    same(masks.cpu().numpy(), np.array([True, False, True]))
    places = indices[masks].to(o3c.int64)
    assert places.shape[0] == 2
    same(hashmap.key_tensor()[places].cpu().numpy().flatten(), np.array([100, 500]))
    same(hashmap.value_tensor()[places].cpu().numpy().flatten(), np.array([1, 5]))


def test_erase():
    hashmap, _, _ = one_column_map()
    masks = hashmap.erase(o3c.Tensor([100, 200, 500], dtype=o3c.int64, device=DEVICE))
    same(masks.cpu().numpy(), np.array([True, False, True]))
    assert hashmap.size() == 3
    assert active_rows(hashmap) == ([300, 700, 900], [3, 7, 9])


def test_complex_shape():
    hashmap = o3c.HashMap(10, o3c.int64, [3], o3c.int64, [1], DEVICE)
    keys = o3c.Tensor([[1, 2, 3], [2, 3, 4], [3, 4, 5]], dtype=o3c.int64, device=DEVICE)
    indices, masks = hashmap.insert(keys, o3c.Tensor([1, 2, 3], dtype=o3c.int64, device=DEVICE))
    places = indices[masks].to(o3c.int64)
    same(hashmap.key_tensor()[places, :], keys.numpy())
    same(hashmap.value_tensor()[places].numpy().flatten(), np.array([1, 2, 3]))
    query = o3c.Tensor([[1, 2, 3], [4, 5, 6]], dtype=o3c.int64, device=DEVICE)
    same(hashmap.erase(query), np.array([True, False]))


def test_multivalue():
    hashmap = o3c.HashMap(10, o3c.int64, (3), (o3c.int64, o3c.float64), ((1), (1)), DEVICE)
    keys = o3c.Tensor([[1, 2, 3], [2, 3, 4], [3, 4, 5]], dtype=o3c.int64, device=DEVICE)
    whole = o3c.Tensor([1, 2, 3], dtype=o3c.int64, device=DEVICE)
    real = o3c.Tensor([400.0, 500.0, 600.0], dtype=o3c.float64, device=DEVICE)
    indices, masks = hashmap.insert(keys, [whole, real])
    places = indices[masks].to(o3c.int64)
    same(hashmap.value_tensor(0)[places].numpy().flatten(), whole.numpy())
    same(hashmap.value_tensor(1)[places].numpy().flatten(), real.numpy())
    query = o3c.Tensor([[1, 2, 3], [4, 5, 6]], dtype=o3c.int64, device=DEVICE)
    same(hashmap.erase(query), np.array([True, False]))


def test_hashset():
    hashset = o3c.HashSet(10, o3c.int64, (3), DEVICE)
    rows = [[1, 2, 3], [2, 3, 4], [3, 4, 5], [1, 2, 3]]
    _, masks = hashset.insert(o3c.Tensor(rows, dtype=o3c.int64, device=DEVICE))
    assert masks.to(o3c.int64).sum() == 3
    query = o3c.Tensor([[1, 2, 3], [2, 3, 4], [4, 5, 6]], dtype=o3c.int64, device=DEVICE)
    same(hashset.find(query)[1], np.array([True, True, False]))
    same(hashset.erase(query[1:]), np.array([True, False]))
