"""Picks the format of a file: by its first bytes to read, by its suffix to write."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tensorhash._disk import open_regular, parse_max_bytes, replacing, size_of
from tensorhash._types import ArrayLike
from tensorhash.geometry.results import SurfacePoints
from tensorhash.io import _las, _numpy, _ply, _xyz
from tensorhash.io._cloud import PointCloud, parts_of, take_attributes, take_points
from tensorhash.io._ply_header import ORDERS

_TEXT = (".xyz", ".txt", ".csv", ".asc")
#: The suffixes that `write` knows.
SUFFIXES = (".ply", ".xyz", ".txt", ".npy", ".npz", ".las", ".laz")


def read(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> PointCloud:
    """Reads a point cloud: PLY, NPY, NPZ, LAS or LAZ by its first bytes, else XYZ by its name.

    Untrusted files are safe. A damaged file is a ValueError that names the line or the byte. Arrays
    are no larger than the file's size supports; compressed files (.npz, .laz) may unpack to
    `max_bytes`, by default in proportion to their size. LAS and LAZ need the package laspy.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "scan.xyz")
    >>> _ = open(path, "w").write("# x y z intensity\\n1 2 3 0.5\\n4 5 6 0.7\\n")
    >>> read(path).attributes["intensity"].tolist()
    [0.5, 0.7]
    """
    name = path_of(path)
    most = parse_max_bytes(max_bytes)
    with open_regular(name) as file:
        size = size_of(file)
        start = file.read(8)
        file.seek(0)
        if start.startswith((b"ply\n", b"ply\r")):
            return _ply.read(file, size, name)
        if start.startswith(b"\x93NUMPY"):
            return _numpy.read_npy_cloud(file, size, name)
        if start.startswith(b"PK"):
            return _numpy.read_npz_cloud(file, size, name, most)
        if start.startswith(b"LASF"):
            return _las.read(file, size, name, most)
        suffix = os.path.splitext(name)[1].lower()
        if suffix in _TEXT:
            return _xyz.read(file, size, name)
    if suffix in SUFFIXES:
        raise ValueError(
            f"{name}: expected a {suffix[1:].upper()} file, but it "
            + (f"begins with {bytes(start)!r} at byte 0" if start else "is empty")
        )
    raise ValueError(
        f"{name}: expected a point cloud (PLY, NPY, NPZ, LAS, LAZ), or text under a name that ends "
        f"in {', '.join(_TEXT)}"
    )


def write(
    path: str | os.PathLike[str],
    points: ArrayLike | PointCloud | SurfacePoints,
    attributes: Mapping[str, ArrayLike] | None = None,
    *,
    encoding: str | None = None,
) -> None:
    """Writes a point cloud. The suffix of the name picks the format.

    `points` is [N, 3]; `attributes` has arrays of N rows by name. `normals` and `colors` are
    [N, 3]; other attributes have one number per point, except in .npz. A cloud of `read` or of a
    VoxelBlockGrid is points and attributes in one: `write(path, read(other))` converts a file.
    `encoding` is for .ply: "binary_little_endian" (the default), "binary_big_endian" or "ascii".
    The file replaces an old one when it is complete.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "scan.npz")
    >>> write(path, [[1.0, 2.0, 3.0]], {"label": [7]})
    >>> read(path).attributes["label"].tolist()
    [7]
    """
    name = path_of(path)
    suffix = os.path.splitext(name)[1].lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"path: expected a name that ends in {', '.join(SUFFIXES)}, got {name!r}")
    chosen = check_encoding(encoding, suffix)
    if isinstance(points, (PointCloud, SurfacePoints)):
        (points,), attributes = parts_of(points, attributes, "points")
    rows = take_points(points, "points")
    cloud = PointCloud(rows, take_attributes(attributes, len(rows), "point"))
    if suffix in (".las", ".laz"):
        _las.require(name)
    with replacing(name) as file:
        if suffix == ".ply":
            _ply.write(file, cloud, chosen)
        elif suffix == ".npy":
            _numpy.write_npy_cloud(file, cloud)
        elif suffix == ".npz":
            _numpy.write_npz_cloud(file, cloud)
        elif suffix in (".las", ".laz"):
            _las.write(file, cloud, suffix == ".laz")
        else:
            _xyz.write(file, cloud)


def check_encoding(encoding: str | None, suffix: str) -> str:
    """The encoding of a PLY file; ValueError for another name, or for another format."""
    if encoding is None:
        return "binary_little_endian"
    if suffix != ".ply":
        raise ValueError(f"encoding: expected None for {suffix}, got {encoding!r}")
    if encoding not in ORDERS:
        raise ValueError(f"encoding: expected one of {', '.join(ORDERS)}, got {encoding!r}")
    return encoding


def path_of(path: str | os.PathLike[str]) -> str:
    """The path as text; TypeError if it is none."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path: expected a path, got {type(path).__name__}")
    return os.fsdecode(path)
