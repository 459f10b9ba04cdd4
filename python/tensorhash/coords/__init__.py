"""Coordinates: voxels and neighbours of point clouds, operations on integer coordinates, kernel maps.

>>> import numpy as np
>>> from tensorhash import coords
>>> coords.voxelize(np.array([[0.2], [0.7], [-0.1]]), 0.5).coords
array([[ 0],
       [ 1],
       [-1]], dtype=int32)
"""

from tensorhash.coords.int_coords import IntCoords
from tensorhash.coords.kernel_map import (
    KernelMap,
    generate_kernel_map,
    kernel_offsets_from_size,
)
from tensorhash.coords.neighbours import Neighbors, knn_search, radius_search
from tensorhash.coords.ops import expand_coords, stride_coords, unique_coords
from tensorhash.coords.voxels import Voxels, voxel_downsample, voxelize

__all__ = [
    "IntCoords",
    "KernelMap",
    "Neighbors",
    "Voxels",
    "expand_coords",
    "generate_kernel_map",
    "kernel_offsets_from_size",
    "knn_search",
    "radius_search",
    "stride_coords",
    "unique_coords",
    "voxel_downsample",
    "voxelize",
]
