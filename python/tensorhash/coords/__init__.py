"""Integer coordinates: tables from a coordinate to the row where it first came.

>>> import numpy as np
>>> from tensorhash.coords import PackedHashTable
>>> table = PackedHashTable.from_coords(np.int32([[0, 1, 2, 3], [0, 4, 5, 6], [0, 1, 2, 3]]))
>>> table.search(np.int32([[0, 4, 5, 6], [0, 1, 2, 3], [0, 9, 9, 9]]))
array([ 1,  0, -1], dtype=int32)
"""

from tensorhash.coords._tables import CoordTable, PackedHashTable, SearchMode
from tensorhash.coords._torch_table import TorchHashTable

__all__ = [
    "CoordTable",
    "PackedHashTable",
    "SearchMode",
    "TorchHashTable",
]
