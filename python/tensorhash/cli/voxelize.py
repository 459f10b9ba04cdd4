"""Replace the points of each voxel by one point.

The points of a voxel become their mean, or what --reduce says. So do attributes of floats, and
colours, which are rounded. Other integers, such as labels, come from the first point of the voxel.
first, last, nearest_center and nearest_centroid keep one point with all of its attributes. The
attribute `count` has the number of points.
"""

from __future__ import annotations

import argparse
from typing import cast

import numpy as np

from tensorhash import io
from tensorhash._types import NumPyArray
from tensorhash.cli import _clouds, _output, _parser_types
from tensorhash.coords import voxelize
from tensorhash.io import PointCloud

_KEEP_A_POINT = ("first", "last", "nearest_center", "nearest_centroid")


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    _clouds.add_input(parser)
    _clouds.add_output(parser, "file to write; without it, only count")
    parser.add_argument(
        "--size",
        type=_parser_types.positive,
        required=True,
        help="edge of a voxel, in the unit of the points",
    )
    parser.add_argument(
        "--reduce",
        choices=("mean", "min", "max", *_KEEP_A_POINT),
        default="mean",
        help="what the points of a voxel become; mean if not given",
    )
    _clouds.add_encoding(parser)
    _output.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Reads, voxelises, writes."""
    with _output.Progress(3) as progress:
        with progress.step(f"reading {options.input}"):
            cloud = _clouds.read_finite(options)
        with progress.step("voxelising"):
            clock = _output.Clock()
            result = downsample(cloud, options.size, options.reduce)
            seconds = clock.seconds()
        if options.output:
            with progress.step(f"writing {options.output}"):
                io.write(options.output, result, encoding=options.encoding)
    facts = {
        "input": options.input,
        "output": options.output,
        "size": options.size,
        "points": len(cloud.points),
        "voxels": len(result.points),
        "seconds": round(seconds, 6),
    }
    written = f"; wrote {options.output}" if options.output else ""
    text = (
        f"{facts['points']:,} points in {facts['voxels']:,} voxels of {options.size:g}, "
        f"in {_output.duration(seconds)}{written}"
    )
    _output.give(options, facts, text)
    return 0


def downsample(cloud: PointCloud, size: float, reduce: str) -> PointCloud:
    """One point per voxel, with its attributes and the attribute `count`."""
    names = list(cloud.attributes)
    words = [_word(name, cloud.attributes[name], reduce) for name in names]
    arrays = [cloud.points, *cloud.attributes.values()]
    # int64: coordinates of a map in metres and voxels of a millimetre pass int32.
    voxels = voxelize(cloud.points, size, reduce=[reduce, *words], features=arrays, dtype="int64")
    points, *columns = cast("list[NumPyArray]", voxels.features)
    attributes = {
        name: _rounded(column, cloud.attributes[name].dtype)
        for name, column in zip(names, columns, strict=True)
    }
    attributes["count"] = np.asarray(voxels.counts)
    return PointCloud(points, attributes)


def _word(name: str, values: NumPyArray, reduce: str) -> str:
    joins = values.dtype.kind == "f" or name == "colors"
    return reduce if joins or reduce in _KEEP_A_POINT else "first"


def _rounded(column: NumPyArray, dtype: np.dtype[np.generic]) -> NumPyArray:
    return np.rint(column).astype(dtype) if dtype.kind in "iu" else column
