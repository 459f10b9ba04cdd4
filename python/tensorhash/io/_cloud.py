"""Point clouds and meshes as named tuples of arrays, and the checks of what a caller passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tensorhash._frameworks import as_numpy
from tensorhash._types import ArrayLike, NumPyArray
from tensorhash.coords._points import take_numbers

#: Attributes of three columns, and the names of these columns in files.
TRIPLES = {"normals": ("nx", "ny", "nz"), "colors": ("red", "green", "blue")}
AXES = ("x", "y", "z")
#: Columns that a file may have: each becomes an array.
MOST_COLUMNS = 1000


class PointCloud(NamedTuple):
    """Points and what is known of each. `write(path, *read(other))` converts a file.

    >>> cloud = PointCloud(np.zeros((2, 3)), {"intensity": np.ones(2)})
    >>> len(cloud.points), list(cloud.attributes)
    (2, ['intensity'])
    """

    points: NumPyArray  #: [N, 3], float32 or float64
    #: by name, N rows each: `normals` and `colors` are [N, 3], others from tables of columns [N]
    attributes: dict[str, NumPyArray]


class TriangleMesh(NamedTuple):
    """A surface: vertices, triangles that join them, and what is known of each vertex.

    >>> mesh = TriangleMesh(np.eye(3), np.int32([[0, 1, 2]]), {})
    >>> mesh.vertices[mesh.triangles].shape
    (1, 3, 3)
    """

    vertices: NumPyArray  #: [V, 3], float32 or float64
    triangles: NumPyArray  #: int32 [T, 3]: rows of `vertices`, counterclockwise from outside
    attributes: dict[str, NumPyArray]  #: by name, V rows each


def parts_of(given: Any, attributes: Any, argument: str) -> tuple[tuple[Any, ...], Any]:
    """(arrays, attributes) of a cloud or a mesh that `read` or a VoxelBlockGrid made.

    Colours of a grid, floats from 0 to 1, become bytes, as other programs expect them in files.
    """
    if attributes is not None:
        raise TypeError(
            f"attributes: expected None, because {argument} is a {type(given).__name__} "
            f"with attributes of its own, got {type(attributes).__name__}"
        )
    if isinstance(given, (PointCloud, TriangleMesh)):
        return given[:-1], given.attributes
    *arrays, normals, colors = given
    found = {"normals": normals}
    if colors is not None:
        found["colors"] = np.rint(_take(colors, "colors") * 255).astype(np.uint8)
    return tuple(arrays), found


def take_points(points: ArrayLike, argument: str) -> NumPyArray:
    """[N, 3] in float32 or float64 from any array; ValueError says what came instead."""
    array = _take(points, argument)
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f"{argument}: expected shape (N, 3), one row per point, got {array.shape}")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{argument}: expected numbers, got {array.dtype}")
    if array.dtype.itemsize < 4 and array.dtype.kind == "f":
        return array.astype(np.float32)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def take_attributes(
    attributes: Mapping[str, ArrayLike] | None, rows: int, what: str
) -> dict[str, NumPyArray]:
    """The attributes as NumPy arrays of `rows` rows; the error names the attribute."""
    taken: dict[str, NumPyArray] = {}
    for name, values in (attributes or {}).items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"attributes: expected names as keys, got {name!r}")
        array = _take(values, f"attributes[{name!r}]")
        if array.ndim == 0 or len(array) != rows:
            raise ValueError(
                f"attributes[{name!r}]: expected {rows} rows, one per {what}, got {array.shape}"
            )
        taken[name] = array
    return taken


def take_triangles(triangles: ArrayLike, vertices: int) -> NumPyArray:
    """[T, 3] in int32; ValueError for other shapes and for rows outside of the vertices."""
    array = _take(triangles, "triangles")
    if array.size == 0:
        array = array.reshape(-1, 3)
    if array.ndim != 2 or array.shape[1] != 3 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(
            f"triangles: expected integers of shape (T, 3), got {array.dtype} {array.shape}"
        )
    outside = (array < 0) | (array >= vertices)
    if outside.any():
        row = int(np.flatnonzero(outside.any(axis=1))[0])
        raise ValueError(
            f"triangles: expected rows of the {vertices} vertices, got {array[row].tolist()} "
            f"in triangle {row}"
        )
    return array.astype(np.int32)


def _take(values: Any, argument: str) -> NumPyArray:
    array = as_numpy(take_numbers(values, argument)[0])
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def columns_of(points: NumPyArray, attributes: dict[str, NumPyArray]) -> dict[str, NumPyArray]:
    """A table of 1-D columns for files that know nothing else: x, y, z, then the attributes."""
    columns = {axis: points[:, i] for i, axis in enumerate(AXES)}
    for name, values in attributes.items():
        parts = _parts(name, values)
        for part in parts:
            if part in columns:
                raise ValueError(f"attributes[{name!r}]: the file already has a column {part!r}")
            if any(sign.isspace() or sign in ",;#" for sign in part) or not part.isprintable():
                raise ValueError(f"attributes: expected names without blanks, got {part!r}")
        columns |= parts
    return columns


def _parts(name: str, values: NumPyArray) -> dict[str, NumPyArray]:
    if values.ndim == 1:
        return {name: values}
    if name in TRIPLES and values.ndim == 2 and values.shape[1] == 3:
        return {part: values[:, i] for i, part in enumerate(TRIPLES[name])}
    raise ValueError(
        f"attributes[{name!r}]: expected one number per point, got shape {values.shape}; "
        f"pass the columns one by one, or write .npz"
    )


def cloud_of(columns: dict[str, NumPyArray], source: str) -> PointCloud:
    """The point cloud in a table of columns; ValueError if x, y or z is missing."""
    rest = dict(columns)
    for axis in AXES:
        if axis not in rest:
            raise ValueError(f"{source}: expected columns x, y and z, got {', '.join(rest)[:200]}")
    points = _stack([rest.pop(axis) for axis in AXES])
    if points.dtype not in (np.float32, np.float64):
        points = points.astype(np.float64)
    attributes: dict[str, NumPyArray] = {}
    for name, values in rest.items():
        triple = next((t for t in TRIPLES if name in TRIPLES[t] and _has(rest, t)), None)
        if triple is None:
            attributes[name] = np.ascontiguousarray(values)
        elif triple not in attributes:
            attributes[triple] = _stack([rest[part] for part in TRIPLES[triple]])
    return PointCloud(points, attributes)


def names_of(count: int, source: str) -> list[str]:
    """Names for columns of a file that names none: x, y, z, column_3, column_4, ..."""
    if not 3 <= count <= MOST_COLUMNS:
        raise ValueError(f"{source}: expected 3 to {MOST_COLUMNS} columns, got {count}")
    return [*AXES, *(f"column_{i}" for i in range(3, count))]


def _has(columns: dict[str, NumPyArray], triple: str) -> bool:
    """Whether the three columns of a triple are there, and have one dtype."""
    if triple in columns or not all(part in columns for part in TRIPLES[triple]):
        return False
    return len({columns[part].dtype for part in TRIPLES[triple]}) == 1


def _stack(columns: list[NumPyArray]) -> NumPyArray:
    stacked = np.empty((len(columns[0]), len(columns)), np.result_type(*columns))
    for i, column in enumerate(columns):
        stacked[:, i] = column
    return stacked
