"""What a VoxelBlockGrid returns: named tuples of arrays."""

from __future__ import annotations

from typing import NamedTuple

from tensorhash._types import Array


class SurfacePoints(NamedTuple):
    """Points on a surface, with normals that point to the outside.

    >>> SurfacePoints(np.zeros((2, 3)), np.ones((2, 3)), None).points.shape
    (2, 3)
    """

    points: Array  #: float32 [N, 3]
    normals: Array  #: float32 [N, 3]
    colors: Array | None  #: float32 [N, 3] from 0 to 1; None if the grid has no colour


class SurfaceMesh(NamedTuple):
    """A surface made of triangles, counterclockwise for an observer outside.

    >>> mesh = SurfaceMesh(np.eye(3), np.int32([[0, 1, 2]]), np.ones((3, 3)), None)
    >>> mesh.vertices[mesh.triangles].shape  # the corners of each triangle
    (1, 3, 3)
    """

    vertices: Array  #: float32 [N, 3]
    triangles: Array  #: int32 [T, 3]: rows of the vertices
    vertex_normals: Array  #: float32 [N, 3]
    vertex_colors: Array | None  #: float32 [N, 3] from 0 to 1; None if the grid has no colour


class GridVoxels(NamedTuple):
    """Voxels of a grid, by buffer index of their block, then x fastest.

    >>> coords, points = np.array([[0, 0, 2]]), np.array([[0.0, 0.0, 0.5]])
    >>> voxels = GridVoxels(coords, points, {"tsdf": np.ones(1)})
    >>> voxels.attributes["tsdf"].tolist()
    [1.0]
    """

    coords: Array  #: int64 [N, 3]
    points: Array  #: float32 [N, 3]: coords * voxel_size
    attributes: dict[str, Array]  #: [N, *channels] of each attribute
