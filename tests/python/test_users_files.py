"""Inputs that broke the files and memory exchange of other projects."""

import gc

import numpy as np
import pytest
from oracle import next_indices, same

import tensorhash
import tensorhash.core as o3c


@pytest.mark.parametrize("suffix", [".thash", ".npz"])
def test_a_table_with_erased_and_negative_keys_comes_back(tmp_path, suffix):
    table = tensorhash.HashMap(4, "int32", (3,), "float32", (2,))
    keys = np.random.default_rng(0).integers(-50, -1, (500, 3)).astype(np.int32)
    values = np.random.default_rng(1).standard_normal((500, 2)).astype(np.float32)
    table.insert(keys, values)
    table.erase(keys[::3])
    table.save(tmp_path / f"map{suffix}")
    loaded = tensorhash.HashMap.load(tmp_path / f"map{suffix}")
    loaded.validate()
    same(loaded.active_buf_indices(), table.active_buf_indices())
    for got, expected in zip(loaded.items(), table.items(), strict=True):
        same(got, expected)
    # Then insert beyond the capacity, where another project crashed.
    more = np.arange(9000, dtype=np.int32).reshape(-1, 3)
    assert loaded.insert(more, np.zeros((3000, 2), dtype=np.float32))[1].all()
    loaded.validate()


@pytest.mark.parametrize("suffix", [".thash", ".npz"])
def test_two_tables_in_two_files_do_not_mix(tmp_path, suffix):
    for number in range(2):
        table = tensorhash.HashMap.from_items(np.array([number]), np.array([number * 10]))
        table.save(tmp_path / f"{number}{suffix}")
    for number in range(2):
        same(
            tensorhash.HashMap.load(tmp_path / f"{number}{suffix}").get(np.array([0, 1]), -1),
            np.array([[0, -1], [-1, 10]][number]),
        )


def test_every_value_row_differs_after_a_restore(tmp_path):
    table = tensorhash.HashMap.from_items(np.arange(1000), np.arange(4000).reshape(1000, 4))
    for name in ("a.thash", "a.npz"):
        table.save(tmp_path / name)
        values = tensorhash.HashMap.load(tmp_path / name).get(np.arange(1000))
        same(values, np.arange(4000).reshape(1000, 4))


def test_saving_over_a_file_replaces_it(tmp_path):
    for name in ("a.thash", "a.npz"):
        tensorhash.HashMap.from_items(np.arange(1000), np.arange(1000)).save(tmp_path / name)
        tensorhash.HashMap.from_items(np.array([7]), np.array([70])).save(tmp_path / name)
        loaded = tensorhash.HashMap.load(tmp_path / name)
        same(loaded.keys(), np.array([7]))


def test_dlpack_of_empty_scalar_strided_bool_and_bfloat16_tensors():
    torch = pytest.importorskip("torch")
    grid = torch.arange(12).reshape(3, 4)
    cases = [torch.zeros((0, 3)), torch.tensor(5), grid.T, grid[:, ::2], grid > 5]
    for tensor in cases:
        same(o3c.Tensor.from_dlpack(tensor).numpy(), tensor.numpy())
    assert o3c.Tensor.from_dlpack(grid.T).strides == (1, 4)
    half = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    back = torch.from_dlpack(o3c.Tensor.from_dlpack(half))
    assert back.dtype == torch.bfloat16
    assert torch.equal(back, half)


def test_the_memory_outlives_its_producer():
    torch = pytest.importorskip("torch")
    source = torch.arange(100_000)
    shared = o3c.Tensor.from_dlpack(source)
    del source
    gc.collect()
    same(shared.numpy(), np.arange(100_000))
    back = torch.from_dlpack(shared)
    del shared
    gc.collect()
    assert torch.equal(back, torch.arange(100_000))
    table = tensorhash.HashMap(3, torch.int64, (), torch.int64, ())
    table.insert(torch.arange(3), torch.arange(3) * 2)
    view = table.value_tensor()
    del table
    gc.collect()
    assert view.tolist() == [0, 2, 4]


def test_an_unused_capsule_frees_its_memory():
    import weakref

    array = np.arange(10)
    alive = weakref.ref(array)
    tensor = o3c.Tensor.from_numpy(array)
    capsules = [tensor.to_dlpack(), tensor.__dlpack__(max_version=(1, 0))]
    del array, tensor
    gc.collect()
    assert alive() is not None
    del capsules
    gc.collect()
    assert alive() is None


def test_a_refused_export_does_not_leak():
    import weakref

    array = np.arange(10)
    alive = weakref.ref(array)
    tensor = o3c.Tensor.from_numpy(array)
    with pytest.raises((BufferError, ValueError, RuntimeError)):
        tensor.__dlpack__(dl_device=(2, 0))
    del array, tensor
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("device", ["cpu:1", "CUDA:1", "cuda:0", o3c.Device("CUDA:1")])
def test_a_missing_device_is_a_runtime_error_on_use(device):
    with pytest.raises(RuntimeError, match="device"):
        tensorhash.HashSet(1, "int64", (), device=device)


def test_a_clone_and_a_loaded_table_continue_with_the_same_indices(tmp_path):
    table = tensorhash.HashSet(4, "int64", ())
    table.insert(np.arange(40))
    table.erase(np.array([5, 30, 12, 0]))
    table.save(tmp_path / "set.thash")
    assert next_indices(tensorhash.HashSet.load(tmp_path / "set.thash")) == next_indices(table)
    assert next_indices(table)[:5] == [0, 12, 30, 5, 40]
