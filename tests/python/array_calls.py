"""Every argument that takes an array, as a call with only that array, so that tests cover all.

`torch_calls` has over 50 lines, because it is one table.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tensorhash as th
from tensorhash import coords as thc

ROWS = 5
GRID = np.arange(ROWS * 4).reshape(ROWS, 4) % 7
POINTS = np.arange(ROWS * 3, dtype=np.float64).reshape(ROWS, 3)
NUMBERS = np.arange(ROWS)


class Call(NamedTuple):
    argument: str  # its name in messages
    array: np.ndarray  # a valid argument
    run: Callable[[Any], Any]


def _set():
    return th.HashSet(4, "int64", ())


def _map(columns=1):
    return th.HashMap(
        4, "int64", (), value_dtypes=["int64"] * columns, value_element_shapes=[()] * columns
    )


def _sharded():
    return th.ShardedHashMap(4, "int64", (), "int64", (), devices=["cpu:0", "cpu:1"])


def _bounded(eviction="lru"):
    return th.BoundedHashMap(9, "int64", (), "int64", (), eviction=eviction)


def _weights():
    return th.HashMap(4, "int64", (), "float64", ())


def _table(cls, columns=4):
    return cls.from_coords(np.zeros((1, columns), np.int32))


def _update(**given):
    arguments = {"keys": NUMBERS, "gradients": np.ones(ROWS), "optimizer": th.optim.SGD(lr=0.1)}
    return _weights().update(**{**arguments, "missing": "insert", **given})


CALLS = {
    "unique": Call("array", NUMBERS, th.unique),
    "unique rows": Call("array", GRID, th.unique),
    "HashSet.insert": Call("keys", NUMBERS, lambda a: _set().insert(a)),
    "HashSet.find": Call("keys", NUMBERS, lambda a: _set().find(a)),
    "HashSet.contains": Call("keys", NUMBERS, lambda a: _set().contains(a)),
    "HashSet.erase": Call("keys", NUMBERS, lambda a: _set().erase(a)),
    "HashSet in": Call("key", NUMBERS[:4], lambda a: a in th.HashSet(4, "int64", (4,))),
    "HashSet of rows": Call("keys", GRID, lambda a: th.HashSet(4, "int64", (4,)).insert(a)),
    "HashMap.insert": Call("keys", NUMBERS, lambda a: _map().insert(a, NUMBERS)),
    "HashMap values": Call("values", NUMBERS, lambda a: _map().insert(NUMBERS, a)),
    "HashMap two values": Call(
        r"values\[1\]", NUMBERS, lambda a: _map(2).insert(NUMBERS, (NUMBERS, a))
    ),
    "HashMap.insert_or_assign": Call(
        "keys", NUMBERS, lambda a: _map().insert_or_assign(a, NUMBERS)
    ),
    "HashMap.accumulate": Call("keys", NUMBERS, lambda a: _map().accumulate(a, NUMBERS)),
    "HashMap.activate": Call("keys", NUMBERS, lambda a: _map().activate(a)),
    "HashMap.get": Call("keys", NUMBERS, lambda a: _map().get(a)),
    "HashMap.get default": Call("default", NUMBERS, lambda a: _map().get(NUMBERS, a)),
    "HashMap.update": Call("keys", NUMBERS, lambda a: _update(keys=a)),
    "HashMap.update gradients": Call("gradients", POINTS[:, 0], lambda a: _update(gradients=a)),
    "HashMap.update initial": Call("initial", POINTS[:, 0], lambda a: _update(initial=a)),
    "HashMap.from_items": Call("keys", NUMBERS, lambda a: th.HashMap.from_items(a, NUMBERS)),
    "HashMap.from_items values": Call(
        "values", NUMBERS, lambda a: th.HashMap.from_items(NUMBERS, a)
    ),
    "BoundedHashMap.insert": Call("keys", NUMBERS, lambda a: _bounded().insert(a, NUMBERS)),
    "BoundedHashMap scores": Call(
        "scores", NUMBERS, lambda a: _bounded("score").insert(NUMBERS, NUMBERS, scores=a)
    ),
    "ShardedHashMap.insert": Call("keys", NUMBERS, lambda a: _sharded().insert(a, NUMBERS)),
    "ShardedHashMap.set": Call("keys", NUMBERS, lambda a: _sharded().set(a, NUMBERS)),
    "ShardedHashMap.remove": Call("keys", NUMBERS, lambda a: _sharded().remove(a)),
    "ShardedHashMap.shard_of": Call("keys", NUMBERS, lambda a: _sharded().shard_of(a)),
    "ShardedHashMap.from_items": Call(
        "keys", NUMBERS, lambda a: th.ShardedHashMap.from_items(a, NUMBERS, devices=["cpu:0"])
    ),
    "optim.values": Call("weights", POINTS, lambda a: th.optim.Adam().values(a)[1:]),
    "PackedHashTable.from_coords": Call("coords", GRID, thc.PackedHashTable.from_coords),
    "PackedHashTable.search": Call("query", GRID, lambda a: _table(thc.PackedHashTable).search(a)),
    "CoordTable.insert": Call("coords", GRID, lambda a: _table(thc.CoordTable).insert(a)),
    "CoordTable.expand base": Call(
        "base", GRID, lambda a: _table(thc.CoordTable).expand_with_offsets(a, GRID)
    ),
    "CoordTable.expand offsets": Call(
        "offsets", GRID, lambda a: _table(thc.CoordTable).expand_with_offsets(GRID, a)
    ),
    "TorchHashTable.from_keys": Call("vec_keys", GRID, thc.TorchHashTable.from_keys),
    "TorchHashTable.search": Call(
        "search_keys", GRID, lambda a: thc.TorchHashTable.from_keys(GRID).search(a)
    ),
    "unique_coords": Call("coords", GRID, thc.unique_coords),
    "stride_coords": Call("coords", GRID, lambda a: thc.stride_coords(a, 2)),
    "expand_coords": Call("coords", GRID, lambda a: thc.expand_coords(a, 3)),
    "IntCoords": Call("coords", GRID, thc.IntCoords),
    "IntCoords offsets": Call(
        "offsets", np.array([0, 1, 2, 3, ROWS]), lambda a: thc.IntCoords(GRID, a)
    ),
    "IntCoords.from_batched": Call("coords", GRID, thc.IntCoords.from_batched),
    "generate_kernel_map in": Call(
        "in_coords", GRID, lambda a: thc.generate_kernel_map(a, GRID, 1, 3, duplicates="first")
    ),
    "generate_kernel_map out": Call(
        "out_coords", GRID, lambda a: thc.generate_kernel_map(GRID, a, 1, 3, duplicates="first")
    ),
    "kernel_map_from_size_hierarchical": Call(
        "query_coords",
        GRID,
        lambda a: thc.kernel_map_from_size_hierarchical(_table(thc.CoordTable), a, 3),
    ),
    "convolution_map": Call("coords", GRID, lambda a: thc.convolution_map(a, 3)),
    "voxelize": Call("points", POINTS, lambda a: thc.voxelize(a, 2.0)),
    "voxelize integers": Call("points", GRID, lambda a: thc.voxelize(a, 2.0)),
    "voxelize features": Call("features", GRID, lambda a: thc.voxelize(POINTS, 2.0, features=a)),
    "voxelize batch": Call("batch", NUMBERS, lambda a: thc.voxelize(POINTS, 2.0, batch=a)),
    "voxel_downsample": Call("points", POINTS, lambda a: thc.voxel_downsample(a, 2.0)),
    "radius_search points": Call("points", POINTS, lambda a: thc.radius_search(a, POINTS, 2.0)),
    "radius_search queries": Call("queries", POINTS, lambda a: thc.radius_search(POINTS, a, 2.0)),
    "radius_search batch": Call(
        "batch", NUMBERS, lambda a: thc.radius_search(POINTS, POINTS, 2.0, a, NUMBERS)
    ),
    "knn_search points": Call("points", POINTS, lambda a: thc.knn_search(a, POINTS, 2)),
    "knn_search queries": Call("queries", POINTS, lambda a: thc.knn_search(POINTS, a, 2)),
    "core.Tensor": Call("values", GRID, lambda a: th.core.Tensor(a)),
    "core.HashSet.insert": Call(
        "keys", NUMBERS, lambda a: th.core.HashSet(4, th.core.int64, ()).insert(a)
    ),
}


def torch_calls():
    """The same for `tensorhash.torch`, which takes only torch tensors. Imports torch."""
    import torch

    import tensorhash.torch as tht

    rows = torch.zeros(ROWS, 4, dtype=torch.int32)
    rows[:, 1] = torch.arange(ROWS)
    features = np.ones((ROWS, 3), np.float32)
    kernel_map = thc.generate_kernel_map(rows, rows, 1, 3)

    def module(features, *, weight=None, bias=None, **options):
        conv = tht.SparseConv3d(3, 2, 3, **options)
        for name, array in (("weight", weight), ("bias", bias)):
            if array is not None:
                setattr(conv, name, torch.nn.Parameter(array))
        return conv(features, rows)[0]

    def weight_of(array):
        return module(torch.from_numpy(features), weight=array)

    def bias_of(array):
        return module(torch.from_numpy(features), bias=array)

    weight = np.ones((27, 3, 2), np.float32)
    calls = {
        "sparse_conv features": Call(
            "features", features, lambda a: tht.sparse_conv(a, torch.from_numpy(weight), kernel_map)
        ),
        "sparse_conv weight": Call(
            "weight",
            weight,
            lambda a: tht.sparse_conv(torch.from_numpy(features), a, kernel_map),
        ),
        "SparseConv3d": Call("features", features, module),
        "SparseConv3d weight": Call("weight", weight, weight_of),
        "SparseConv3d bias": Call("bias", np.ones(2, np.float32), bias_of),
        "stride_features coords": Call(
            "coords",
            rows.numpy(),
            lambda a: tht.stride_features(torch.from_numpy(features), a, 2),
        ),
    }
    for reduce in ("max", "mean", "sum"):
        options = {"stride": 2, "stride_mode": "reduce_and_stride", "stride_reduce": reduce}
        calls[f"stride_features {reduce}"] = Call(
            "features", features, lambda a, reduce=reduce: tht.stride_features(a, rows, 2, reduce)
        )
        for duplicates in ("error", "first"):
            calls[f"SparseConv3d {reduce} {duplicates}"] = Call(
                "features",
                features,
                lambda a, options=options, duplicates=duplicates: module(
                    a, duplicates=duplicates, **options
                ),
            )
    return calls


def plain(result):
    """A result as nested lists, for comparisons."""
    if isinstance(result, (tuple, list)):
        return [plain(part) for part in result]
    if hasattr(result, "detach"):
        result = result.detach()
    if hasattr(result, "tolist"):
        return result.tolist()
    if hasattr(result, "items"):
        return plain(result.items())
    if hasattr(result, "vector_keys"):
        return plain(result.vector_keys)
    if hasattr(result, "in_maps"):
        return plain((result.in_maps, result.out_maps, result.offsets))
    if hasattr(result, "coordinates"):
        return plain((result.coordinates, result.offsets))
    return plain(result.numpy()) if hasattr(result, "numpy") else result
