"""LAS and LAZ files, which the optional package laspy reads and writes."""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from tensorhash._disk import Limit
from tensorhash._types import NumPyArray
from tensorhash.io._cloud import AXES, PointCloud, cloud_of, columns_of

_SCALES = 2**31 - 1  # LAS stores coordinates as int32 times a scale
_COLORS = ("red", "green", "blue")
# The largest number that LAS 1.2 holds in its columns.
_LIMITS = {
    "intensity": 65535,
    "return_number": 7,
    "number_of_returns": 7,
    "scan_direction_flag": 1,
    "edge_of_flight_line": 1,
    "classification": 31,
    "synthetic": 1,
    "key_point": 1,
    "withheld": 1,
    "user_data": 255,
    "point_source_id": 65535,
    **dict.fromkeys(_COLORS, 65535),
}


def require(source: str) -> Any:
    """The module laspy; ImportError says how to install it."""
    try:
        import laspy
    except ImportError as error:
        why = "" if error.name == "laspy" else f" ({error})"
        raise ImportError(
            f"{source}: LAS and LAZ files need the package laspy, which cannot be imported here"
            f"{why}; pip install 'laspy[lazrs]'",
            name=error.name,
        ) from None
    return laspy


def read(file: IO[bytes], size: int, source: str, max_bytes: int | None) -> PointCloud:
    """Reads the points in float64 and all columns of the file."""
    laspy = require(source)
    limit = Limit(source, size, max_bytes)
    try:
        with laspy.open(file, closefd=False) as reader:
            header = reader.header
            need = header.point_count * header.point_format.size
            if not header.are_points_compressed and need > size:
                raise ValueError(
                    f"{header.point_count} points need {need} bytes, "
                    f"but the file ends at byte {size}"
                )
            limit.require(need, "its points")
            las = reader.read()
            if len(las.points) != header.point_count:
                raise ValueError(
                    f"expected {header.point_count} points, the file ends after {len(las.points)}"
                )
            names = [
                name for name in las.point_format.dimension_names if name not in ("X", "Y", "Z")
            ]
            columns: dict[str, NumPyArray] = {
                axis: np.asarray(getattr(las, axis), np.float64) for axis in AXES
            }
            columns |= {name: np.asarray(las[name]) for name in names}
    except Exception as error:  # laspy and its decoders raise many kinds on damaged files
        if isinstance(error, (MemoryError, ValueError)) and str(error).startswith(source):
            raise
        raise ValueError(f"{source}: not a readable LAS file: {error}") from None
    return cloud_of(columns, source)


def write(file: IO[bytes], cloud: PointCloud, compress: bool) -> None:
    """Writes LAS 1.2, with the finest scale that holds the extent of the points."""
    laspy = require("write")
    columns = columns_of(*cloud)
    colors, times = all(name in columns for name in _COLORS), "gps_time" in columns
    # Formats 0 to 3 of the standard: plain, with times, with colours, with both.
    header = laspy.LasHeader(version="1.2", point_format=2 * colors + times)
    points = cloud.points.astype(np.float64)
    if not np.isfinite(points).all():
        raise ValueError("points: expected finite numbers for LAS, got NaN or infinity")
    low, high = _extent(points)
    header.offsets = np.floor(low)
    header.scales = np.maximum(1e-4, (high - header.offsets) / _SCALES * 2)
    known = set(header.point_format.dimension_names)
    for name, values in columns.items():
        if name not in known and name not in AXES:
            header.add_extra_dim(laspy.ExtraBytesParams(name=name, type=_dtype(values)))
    las = laspy.LasData(header)
    las.x, las.y, las.z = points.T
    for name, values in columns.items():
        if name not in AXES:
            _set(las, name, values)
    las.write(file, do_compress=compress)


def _set(las: Any, name: str, values: NumPyArray) -> None:
    most = _LIMITS.get(name)
    if most is not None and len(values):
        low, high = values.min(), values.max()
        if not (low >= 0 and high <= most and (values == np.floor(values)).all()):
            raise ValueError(
                f"attributes[{name!r}]: expected integers from 0 to {most}, which is what LAS has, "
                f"got {low} to {high}; write .ply or .npz instead"
            )
    las[name] = values


def _extent(points: NumPyArray) -> tuple[NumPyArray, NumPyArray]:
    if len(points) == 0:
        return np.zeros(3), np.zeros(3)
    return points.min(axis=0), points.max(axis=0)


def _dtype(values: NumPyArray) -> np.dtype[Any]:
    return np.dtype(np.uint8) if values.dtype.kind == "b" else values.dtype
