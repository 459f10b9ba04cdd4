"""Tables, kernel maps and operations for integer coordinates; voxels and neighbours of points.

>>> import numpy as np
>>> from tensorhash.coords import PackedHashTable, voxelize
>>> table = PackedHashTable.from_coords(np.int32([[0, 1, 2, 3], [0, 4, 5, 6], [0, 1, 2, 3]]))
>>> table.search(np.int32([[0, 4, 5, 6], [0, 1, 2, 3], [0, 9, 9, 9]]))
array([ 1,  0, -1], dtype=int32)
>>> voxelize(np.array([[0.2], [0.7], [-0.1]]), 0.5).coords.tolist()
[[0], [1], [-1]]
"""

from tensorhash.coords._tables import CoordTable, PackedHashTable, PackedHashTable128, SearchMode
from tensorhash.coords._torch_table import TorchHashTable
from tensorhash.coords.convolution import STRIDED_CONV_MODE, convolution_map
from tensorhash.coords.int_coords import IntCoords
from tensorhash.coords.kernel_map import (
    Coverage,
    KernelMap,
    generate_kernel_map,
    kernel_map_from_offsets,
    kernel_map_from_size_hierarchical,
    kernel_offsets_from_size,
)
from tensorhash.coords.neighbours import Neighbors, knn_search, radius_search
from tensorhash.coords.ops import expand_coords, stride_coords, unique_coords
from tensorhash.coords.ordering import POINT_ORDERING
from tensorhash.coords.voxels import Voxels, voxel_downsample, voxelize

__all__ = [
    "POINT_ORDERING",
    "STRIDED_CONV_MODE",
    "CoordTable",
    "Coverage",
    "IntCoords",
    "KernelMap",
    "Neighbors",
    "PackedHashTable",
    "PackedHashTable128",
    "SearchMode",
    "TorchHashTable",
    "Voxels",
    "convolution_map",
    "expand_coords",
    "generate_kernel_map",
    "kernel_map_from_offsets",
    "kernel_map_from_size_hierarchical",
    "kernel_offsets_from_size",
    "knn_search",
    "radius_search",
    "stride_coords",
    "unique_coords",
    "voxel_downsample",
    "voxelize",
]
