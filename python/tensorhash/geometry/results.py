"""What a VoxelBlockGrid returns: named tuples of arrays."""

from __future__ import annotations

from typing import NamedTuple

from tensorhash._types import Array


class PointCloud(NamedTuple):
    """Points on a surface, with normals that point to the outside."""

    points: Array  #: float32 [N, 3]
    normals: Array  #: float32 [N, 3]
    colors: Array | None  #: float32 [N, 3] from 0 to 1; None if the grid has no colour


class TriangleMesh(NamedTuple):
    """A surface made of triangles, counterclockwise for an observer outside."""

    vertices: Array  #: float32 [N, 3]
    triangles: Array  #: int32 [T, 3]: rows of the vertices
    vertex_normals: Array  #: float32 [N, 3]
    vertex_colors: Array | None  #: float32 [N, 3] from 0 to 1; None if the grid has no colour


class GridVoxels(NamedTuple):
    """Voxels of a grid, by buffer index of their block, then x fastest."""

    coords: Array  #: int64 [N, 3]
    points: Array  #: float32 [N, 3]: coords * voxel_size
    attributes: dict[str, Array]  #: [N, *channels] of each attribute
