"""The result types that a type checker sees. `make lint` checks this file; nothing runs it."""

import numpy as np
from typing_extensions import assert_type

import tensorhash
import tensorhash.core as o3c
from tensorhash._types import Array
from tensorhash.coords import KernelMap, PackedHashTable, generate_kernel_map, unique_coords

keys = np.arange(10)

# Results follow the framework of the keys. Array is what all frameworks have in common.
table = tensorhash.HashMap(10, "int64", (), "float32", (2,))
indices, inserted = table.insert(keys, np.zeros((10, 2), np.float32))
assert_type(indices, Array)
assert_type(table.find(keys), tuple[Array, Array])
assert_type(table.get(keys), Array | tuple[Array, ...])
assert_type(table.clone().keys(), Array)
assert_type(indices[inserted] + 1, Array)
assert_type(indices == 3, Array)
assert_type(len(indices), int)
assert_type(indices.shape[0], int)
table.value_tensor()[indices] = 0.5
np.add.at(np.zeros(10), np.asarray(indices), 1)
chosen = keys[inserted]

# An annotation names the framework once.
of_numpy: tensorhash.HashMap[np.ndarray[tuple[int, ...], np.dtype[np.int32]]]
of_numpy = tensorhash.HashMap(10, "int32", (), "int32", ())
assert_type(of_numpy.erase(keys), np.ndarray[tuple[int, ...], np.dtype[np.int32]])

# tensorhash.core always returns its own Tensors, which are Arrays too.
core_table = o3c.HashMap(10, o3c.int64, (1,), o3c.int64, (1,))
assert_type(core_table.find(keys), tuple[o3c.Tensor, o3c.Tensor])
assert_type(core_table.keys().numpy().ndim, int)
assert_type(o3c.Tensor([1]) + 1, o3c.Tensor)
assert_type(o3c.Tensor([1]) == 1, o3c.Tensor)
assert_type(o3c.Tensor([1]).add_(1), o3c.Tensor)
tensor_as_array: Array = o3c.Tensor([1])

# Subclasses keep the types of their base and add what they evict.
cache = tensorhash.BoundedHashMap(10, "int64", (), "float32", ())
assert_type(cache.activate(keys), tuple[Array, Array, tensorhash.Evicted])
sharded = tensorhash.ShardedHashMap(10, "int64", (), "float32", (), devices=["cpu:0"])
assert_type(sharded.shard_of(keys), Array)
assert_type(sharded.compact(), list[Array])

# Flags choose between overloads.
assert_type(tensorhash.unique(keys), Array)
assert_type(tensorhash.unique(keys, return_counts=True), Array | tuple[Array, ...])
assert_type(unique_coords(keys), Array)
pairs = generate_kernel_map(keys, keys, 1, 3)
assert_type(pairs, KernelMap)
assert_type(pairs.get_batch(0, 1), tuple[list[Array], list[Array]])
assert_type(pairs.get_batch(0, 1, "tensor"), tuple[Array, Array])
assert_type(PackedHashTable(10).search(keys), Array)

# The columns of an optimizer are arguments for a table.
adam = tensorhash.optim.Adam()
tensorhash.HashMap(0, "int64", (), **adam.columns("float32", (2,)))
