"""One hash table over many processes with torch.distributed. A key's hash decides its rank.

`load_hash_map` and `load_into` read checkpoints without torch.

>>> import torch.distributed as dist
>>> from tensorhash.distributed import DistributedHashMap
>>> dist.init_process_group("gloo")                                          # doctest: +SKIP
>>> table = DistributedHashMap(None, 10**6, "int64", (), "float32", (16,))   # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

from tensorhash._extras import missing
from tensorhash.distributed.checkpoint import load_hash_map, load_into

__all__ = ["DistributedHashMap", "load_hash_map", "load_into"]

if TYPE_CHECKING:
    from tensorhash.distributed.table import DistributedHashMap
else:
    # On first access, because it imports torch.
    def __getattr__(name: str) -> Any:
        if name != "DistributedHashMap":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            from tensorhash.distributed.table import DistributedHashMap
        except ImportError as error:
            raise missing(error, "torch", f"{__name__}.{name}") from error
        return DistributedHashMap
