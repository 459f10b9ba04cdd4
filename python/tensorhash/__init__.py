"""Batched, parallel hash tables for tensors.

>>> import numpy as np, tensorhash
>>> m = tensorhash.HashMap(10, "int64", (1,), "float32", (1,))
>>> indices, inserted = m.insert(np.array([[100], [200], [100]]), np.float32([[1], [2], [3]]))
>>> indices
array([0, 1, 0], dtype=int32)
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from tensorhash import data, optim
from tensorhash._config import get_num_threads, release_memory, set_num_threads, show_config
from tensorhash._core import version as __version__
from tensorhash.bounded import BoundedHashMap, Evicted
from tensorhash.data import (
    GroupBy,
    JoinIndex,
    StringIndex,
    factorize,
    group_by,
    index_of,
    isin,
    join,
)
from tensorhash.hash_map import HashMap
from tensorhash.hash_set import HashSet
from tensorhash.sharded import ShardedHashMap
from tensorhash.sharded_bounded import ShardedBoundedHashMap
from tensorhash.unique import unique

__all__ = [
    "BoundedHashMap",
    "Evicted",
    "GroupBy",
    "HashMap",
    "HashSet",
    "JoinIndex",
    "ShardedBoundedHashMap",
    "ShardedHashMap",
    "StringIndex",
    "__version__",
    "data",
    "factorize",
    "get_num_threads",
    "group_by",
    "index_of",
    "isin",
    "join",
    "optim",
    "release_memory",
    "set_num_threads",
    "show_config",
    "unique",
]

# Submodules that load on first access, and the package that each one needs.
_LAZY: dict[str, str | None] = {
    "coords": None,
    "core": None,
    "distributed": "torch",
    "geometry": None,
    "io": None,
    "tensorflow": "tensorflow",
    "torch": "torch",
    "view": None,
}

# Names that users look for here, and the part that has each one.
_ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("generate_kernel_map", "KernelMap", "PackedHashTable"), "coords"),
    **dict.fromkeys(("Device", "Tensor"), "core"),
    "DistributedHashMap": "distributed",
    **dict.fromkeys(("NeighborIndex", "VoxelBlockGrid", "knn_search", "radius_search"), "geometry"),
    **dict.fromkeys(("voxel_downsample", "voxelize"), "geometry"),
    **dict.fromkeys(("read", "read_mesh", "write", "write_mesh"), "io"),
    **dict.fromkeys(("HashEmbedding", "SparseConv3d", "SparseTensor"), "torch"),
}

if TYPE_CHECKING:
    from tensorhash import coords as coords
    from tensorhash import core as core
    from tensorhash import distributed as distributed
    from tensorhash import geometry as geometry
    from tensorhash import io as io
    from tensorhash import tensorflow as tensorflow
    from tensorhash import torch as torch
    from tensorhash import view as view
else:
    # Hidden from type checkers, which would otherwise accept any attribute.
    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            return importlib.import_module(f"tensorhash.{name}")
        way = f"; use tensorhash.{_ELSEWHERE[name]}.{name}" if name in _ELSEWHERE else ""
        raise AttributeError(f"module 'tensorhash' has no attribute {name!r}{way}")


def __dir__() -> list[str]:
    """Lists only submodules that can be imported, because tools access every listed name."""
    there = [
        name
        for name, package in _LAZY.items()
        if package is None or importlib.util.find_spec(package) is not None
    ]
    return sorted({*globals(), *there})
