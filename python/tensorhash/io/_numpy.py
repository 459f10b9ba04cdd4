"""Point clouds in NumPy's files.

.npy: an array [N, C] with x, y, z first, or a structured array with fields x, y, z.
.npz: an array `points` [N, 3], or x, y and z; every other array of N rows is an attribute.
"""

from __future__ import annotations

import os
import zipfile
from typing import IO

import numpy as np

from tensorhash import _npz
from tensorhash._disk import Limit, TooLarge
from tensorhash._npy import read_any, read_npy
from tensorhash._types import NumPyArray
from tensorhash.io._cloud import AXES, PointCloud, cloud_of, columns_of, names_of


def read_npy_cloud(file: IO[bytes], size: int, source: str) -> PointCloud:
    """Reads an array of points."""
    try:
        array = _native(read_any(file, size, "its array"))
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{source}: {error}") from None
    if array.dtype.names is not None:
        _require_rows(array, source)
        return cloud_of({name: array[name] for name in array.dtype.names}, source)
    if array.ndim != 2 or array.shape[1] < 3 or array.dtype.kind not in "fiu":
        raise ValueError(
            f"{source}: expected numbers of shape (N, 3), or more columns, "
            f"got {array.dtype} {array.shape}"
        )
    names = names_of(array.shape[1], source)
    return cloud_of({name: array[:, i] for i, name in enumerate(names)}, source)


def _require_rows(array: NumPyArray, source: str) -> None:
    if array.ndim != 1:
        raise ValueError(f"{source}: expected one record per point, got shape {array.shape}")
    for name in array.dtype.names or ():
        kind = array.dtype[name]
        if kind.shape or kind.kind not in "fiub":
            raise ValueError(f"{source}: expected numbers in field {name!r}, got {kind}")


def read_npz_cloud(file: IO[bytes], size: int, source: str, max_bytes: int | None) -> PointCloud:
    """Reads the arrays of a cloud; more than the limit is refused before it is unpacked."""
    limit = Limit(source, size, max_bytes)
    try:
        with zipfile.ZipFile(file) as archive:
            members = _npz.members(file, archive, lambda _: True)
            limit.require(sum(entry.file_size for entry in members.values()), "its arrays")
            arrays: dict[str, NumPyArray] = {}
            for name, entry in members.items():
                with archive.open(entry) as member:
                    arrays[name] = _native(read_npy(member, entry.file_size, name))
    except TooLarge:
        raise
    except _npz.DAMAGE as error:
        raise ValueError(f"{source}: not a readable .npz file: {error}") from None
    return _cloud_of_arrays(arrays, source)


def _cloud_of_arrays(arrays: dict[str, NumPyArray], source: str) -> PointCloud:
    rest = dict(arrays)
    if "points" in rest:
        points = rest.pop("points")
        if points.ndim != 2 or points.shape[1] != 3 or points.dtype.kind not in "fiu":
            raise ValueError(
                f"{source}: expected 'points' of shape (N, 3), got {points.dtype} {points.shape}"
            )
    elif all(axis in rest and rest[axis].ndim == 1 for axis in AXES):
        parts = [rest.pop(axis) for axis in AXES]
        if len({len(part) for part in parts}) != 1:
            raise ValueError(f"{source}: expected x, y and z of the same length")
        points = np.stack(parts, axis=1)
    else:
        names = ", ".join(sorted(rest))[:200]
        raise ValueError(f"{source}: expected an array 'points', or 'x', 'y' and 'z', got {names}")
    for name, array in rest.items():
        if array.ndim == 0 or len(array) != len(points):
            raise ValueError(
                f"{source}: expected {len(points)} rows in {name!r}, one per point, "
                f"got shape {array.shape}"
            )
    if points.dtype not in (np.float32, np.float64):
        points = points.astype(np.float64)
    return PointCloud(points, rest)


def _native(array: NumPyArray) -> NumPyArray:
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def write_npy_cloud(file: IO[bytes], cloud: PointCloud) -> None:
    """Writes the points; with attributes, a structured array with one field per column."""
    if not cloud.attributes:
        np.save(file, np.ascontiguousarray(cloud.points))
        return
    columns = columns_of(*cloud)
    rows = np.empty(len(cloud.points), [(name, v.dtype) for name, v in columns.items()])
    for name, values in columns.items():
        rows[name] = values
    np.save(file, rows)


def write_npz_cloud(file: IO[bytes], cloud: PointCloud) -> None:
    """Writes one array for the points and one per attribute."""
    for name in cloud.attributes:
        if name in ("points", "file") or os.path.basename(name) != name:
            raise ValueError(f"attributes: expected another name than {name!r} in .npz")
    arrays = {name: np.ascontiguousarray(values) for name, values in cloud.attributes.items()}
    np.savez(file, points=np.ascontiguousarray(cloud.points), **arrays)  # type: ignore[arg-type, unused-ignore]
