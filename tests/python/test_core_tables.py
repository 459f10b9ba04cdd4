"""HashMap and HashSet of tensorhash.core return Tensors, whatever goes in."""

import hashlib

import numpy as np
import pytest
import tsdf_loop
from oracle import same

import tensorhash.core as o3c


def results_of(table, keys, values):
    yield from table.insert(keys, values)
    yield from table.find(keys)
    yield from table.activate(keys)
    yield from table.insert_or_assign(keys, values)
    yield from table.accumulate(keys, values)
    yield table.get(keys)
    yield table.contains(keys)
    yield table.erase(keys)
    yield from (table.keys(), *table.items(), table.active_buf_indices(), table.compact())
    yield from (table.key_tensor(), table.value_tensor())


@pytest.mark.parametrize("source", ["numpy", "list", "torch", "core"])
@pytest.mark.parametrize("dtype", ["int64", np.int64, o3c.int64, "torch"])
def test_every_result_is_a_tensor(source, dtype):
    if "torch" in (source, dtype):
        torch = pytest.importorskip("torch")
    dtype = torch.int64 if dtype == "torch" else dtype
    rows = np.array([[1], [2], [1]])
    make = {"numpy": np.array, "list": np.ndarray.tolist, "core": o3c.Tensor}.get(source)
    keys = make(rows) if make else torch.tensor(rows)
    table = o3c.HashMap(4, dtype, (1,), dtype, (1,))
    for result in results_of(table, keys, keys):
        assert type(result) is o3c.Tensor
    names = o3c.HashSet(4, dtype, (1,))
    for result in (*names.insert(keys), *names.find(keys), names.erase(keys), names.keys()):
        assert type(result) is o3c.Tensor


def test_a_mask_that_came_from_numpy_keys_selects_rows():
    table = o3c.HashMap(4, o3c.int64, (1,), o3c.float32, (1,))
    indices, masks = table.insert(np.array([[5], [6], [5]]), np.float32([[1], [2], [3]]))
    same(table.value_tensor()[indices[masks].to(o3c.int64)], np.float32([[1], [2]]))


# From Open3D 0.20: (blocks, observed voxels, SHA-256 of keys, values and weights).
TSDF = {
    "float32": (
        *(173, 51725),
        "7cebf9a7d63e6f6b5865d411464cd4a0f1a3f119e9dc6da292d466f365fb877a",
    ),
    "float64": (
        *(173, 51757),
        "529e1bf2b2c65f63d8d55e2abb5a0c28bc555bec6bea139e4bab15f257cad5bc",
    ),
}


@pytest.mark.parametrize("dtype", TSDF)
def test_a_tsdf_loop_gives_the_bits_that_open3d_gave(dtype):
    keys, tsdf, weight = tsdf_loop.run(o3c, dtype)
    digest = hashlib.sha256(keys.tobytes() + tsdf.tobytes() + weight.tobytes()).hexdigest()
    assert (len(keys), int((weight > 0).sum()), digest) == TSDF[dtype]
