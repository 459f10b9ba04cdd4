"""Integer coordinates: tables from a coordinate to the row where it first came, and kernel maps.

>>> import numpy as np
>>> from tensorhash.coords import PackedHashTable
>>> table = PackedHashTable.from_coords(np.int32([[0, 1, 2, 3], [0, 4, 5, 6], [0, 1, 2, 3]]))
>>> table.search(np.int32([[0, 4, 5, 6], [0, 1, 2, 3], [0, 9, 9, 9]]))
array([ 1,  0, -1], dtype=int32)
"""

from tensorhash.coords._tables import CoordTable, PackedHashTable, SearchMode
from tensorhash.coords._torch_table import TorchHashTable
from tensorhash.coords.kernel_map import (
    KernelMap,
    generate_kernel_map,
    kernel_map_from_size_hierarchical,
    kernel_offsets_from_size,
)

__all__ = [
    "CoordTable",
    "KernelMap",
    "PackedHashTable",
    "SearchMode",
    "TorchHashTable",
    "generate_kernel_map",
    "kernel_map_from_size_hierarchical",
    "kernel_offsets_from_size",
]
