"""Parallel hash tables for tensors: a batch of keys in, a batch of buffer indices out.

>>> import numpy as np, tensorhash
>>> m = tensorhash.HashMap(10, "int64", (1,), "float32", (1,))
>>> indices, inserted = m.insert(np.array([[100], [200], [100]]), np.float32([[1], [2], [3]]))
>>> indices
array([0, 1, 0], dtype=int32)
"""

from tensorhash import optim
from tensorhash._config import get_num_threads, release_memory, set_num_threads, show_config
from tensorhash._core import version as __version__
from tensorhash.bounded import BoundedHashMap, Evicted
from tensorhash.hash_map import HashMap
from tensorhash.hash_set import HashSet
from tensorhash.sharded import ShardedHashMap
from tensorhash.sharded_bounded import ShardedBoundedHashMap
from tensorhash.unique import unique

__all__ = [
    "BoundedHashMap",
    "Evicted",
    "HashMap",
    "HashSet",
    "ShardedBoundedHashMap",
    "ShardedHashMap",
    "__version__",
    "get_num_threads",
    "optim",
    "release_memory",
    "set_num_threads",
    "show_config",
    "unique",
]
