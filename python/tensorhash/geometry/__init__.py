"""Geometry in three dimensions: TSDF volumes, voxels and neighbours of points.

>>> from tensorhash.geometry import VoxelBlockGrid
>>> names, channels = ("tsdf", "weight"), (1, 1)
>>> grid = VoxelBlockGrid(names, ("float32", "float32"), channels, voxel_size=0.25)
>>> grid.integrate(points=[[0.0, 0.0, 1.0]], origin=(0, 0, 0), trunc_voxel_multiplier=2)
>>> voxels = grid.extract_voxels()
>>> voxels.coords.tolist(), voxels.attributes["tsdf"].ravel().tolist()
([[0, 0, 2], [0, 0, 3], [0, 0, 4], [0, 0, 5], [0, 0, 6]], [1.0, 0.5, 0.0, -0.5, -1.0])
"""

from tensorhash.coords.neighbours import Neighbors, knn_search, radius_search
from tensorhash.coords.voxels import Voxels, voxel_downsample, voxelize
from tensorhash.geometry.neighbor_index import NeighborIndex
from tensorhash.geometry.results import GridVoxels, SurfaceMesh, SurfacePoints
from tensorhash.geometry.voxel_block_grid import VoxelBlockGrid

__all__ = [
    "GridVoxels",
    "NeighborIndex",
    "Neighbors",
    "SurfaceMesh",
    "SurfacePoints",
    "VoxelBlockGrid",
    "Voxels",
    "knn_search",
    "radius_search",
    "voxel_downsample",
    "voxelize",
]
