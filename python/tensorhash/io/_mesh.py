"""Triangle meshes in PLY files."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from tensorhash._disk import open_regular, replacing, size_of
from tensorhash._types import ArrayLike, NumPyArray
from tensorhash.geometry.results import SurfaceMesh
from tensorhash.io import _ply
from tensorhash.io._cloud import (
    PointCloud,
    TriangleMesh,
    cloud_of,
    parts_of,
    take_attributes,
    take_points,
    take_triangles,
)
from tensorhash.io._formats import check_encoding, path_of
from tensorhash.io._ply_header import read_header

_LISTS = ("vertex_indices", "vertex_index")


def write_mesh(
    path: str | os.PathLike[str],
    vertices: ArrayLike | TriangleMesh | SurfaceMesh,
    triangles: ArrayLike | None = None,
    attributes: Mapping[str, ArrayLike] | None = None,
    *,
    encoding: str | None = None,
) -> None:
    """Writes a triangle mesh as PLY.

    `attributes` have one row per vertex, as in `write`. A mesh of `read_mesh` or of a
    VoxelBlockGrid is all three in one: `write_mesh(path, mesh)`. `encoding` is
    "binary_little_endian" (the default), "binary_big_endian" or "ascii". The file replaces an old
    one when it is complete.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "mesh.ply")
    >>> write_mesh(path, [[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> read_mesh(path).triangles.tolist()
    [[0, 1, 2]]
    """
    name = path_of(path)
    if os.path.splitext(name)[1].lower() != ".ply":
        raise ValueError(f"path: expected a name that ends in .ply, got {name!r}")
    if isinstance(vertices, (TriangleMesh, SurfaceMesh)):
        if triangles is not None:
            raise TypeError(
                f"triangles: expected None beside a mesh, got {type(triangles).__name__}"
            )
        (vertices, triangles), attributes = parts_of(vertices, attributes, "vertices")
    elif triangles is None:
        raise TypeError("triangles: expected rows of three vertices, got None")
    points = take_points(vertices, "vertices")
    rows = take_triangles(triangles, len(points))
    cloud = PointCloud(points, take_attributes(attributes, len(points), "vertex"))
    chosen = check_encoding(encoding, ".ply")
    with replacing(name) as file:
        _ply.write(file, cloud, chosen, rows)


def read_mesh(path: str | os.PathLike[str]) -> TriangleMesh:
    """Reads the vertices and the triangles of a PLY file. All faces must be triangles.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "mesh.ply")
    >>> write_mesh(path, [[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> read_mesh(path).triangles.tolist()
    [[0, 1, 2]]
    """
    name = path_of(path)
    with open_regular(name) as file:
        size = size_of(file)
        body = _ply.Body(file, size, read_header(file, size, name), name)
        vertex, face = _ply.element(body, "vertex"), _ply.element(body, "face")
        lists = [item for item in face.properties if item.count_type is not None]
        if len(lists) != 1 or lists[0].name not in _LISTS or lists[0].type.kind == "f":
            raise ValueError(
                f"{name}, line {face.line}: expected one list of integers in 'face', "
                f"called {_LISTS[0]!r}"
            )
        columns = _ply.read_columns(body, vertex)
        if body.header.encoding == "ascii":
            triangles = _ply.read_text(body, face)[lists[0].name]
        else:
            triangles = _ply.read_triangles(body, face)
    cloud = cloud_of(columns, name)
    return TriangleMesh(
        cloud.points, _checked(triangles, len(cloud.points), name), cloud.attributes
    )


def _checked(triangles: NumPyArray, vertices: int, name: str) -> NumPyArray:
    try:
        return take_triangles(triangles.astype(np.int64), vertices)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
