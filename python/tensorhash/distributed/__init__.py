"""One hash table over many processes with torch.distributed. A key's hash decides its rank.

>>> import torch.distributed as dist
>>> from tensorhash.distributed import DistributedHashMap
>>> dist.init_process_group("gloo")                                          # doctest: +SKIP
>>> table = DistributedHashMap(None, 10**6, "int64", (), "float32", (16,))   # doctest: +SKIP
"""

from tensorhash._extras import missing

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise missing(error, "torch", __name__) from error

from tensorhash.distributed.checkpoint import load_hash_map, load_into
from tensorhash.distributed.table import DistributedHashMap

__all__ = ["DistributedHashMap", "load_hash_map", "load_into"]
