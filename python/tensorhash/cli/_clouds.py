"""Point clouds of commands: reading, choosing rows, merging attributes of a voxel."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from tensorhash import io
from tensorhash._types import NumPyArray
from tensorhash.io import PointCloud


def add_input(parser: argparse.ArgumentParser) -> None:
    """The input file, and what to do with rows that are no points."""
    parser.add_argument("input", help="point cloud: .ply, .xyz, .npy, .npz, .las, .laz")
    parser.add_argument(
        "--drop-invalid", action="store_true", help="drop points with NaN or infinity"
    )


def add_output(parser: argparse.ArgumentParser, help: str, is_required: bool = False) -> None:
    """The file to write: after the input, after the options, or with -o."""
    parser.add_argument("output", nargs="?", help=help)
    parser.add_argument("-o", "--output", dest="named_output", metavar="OUTPUT", help="the same")
    parser.set_defaults(needs_output=is_required)


def add_encoding(parser: argparse.ArgumentParser) -> None:
    """The encoding of a PLY file to write."""
    parser.add_argument(
        "--encoding",
        choices=("binary_little_endian", "binary_big_endian", "ascii"),
        help="of a .ply file; binary_little_endian if not given",
    )


def read(options: argparse.Namespace) -> PointCloud:
    """Reads the input. With --drop-invalid, drops rows and says on stderr how many."""
    cloud = io.read(options.input)
    if not options.drop_invalid:
        return cloud
    good = finite_rows(cloud)
    if good.all():
        return cloud
    dropped = len(good) - int(good.sum())
    print(f"tensorhash: dropped {dropped:,} points with NaN or infinity", file=sys.stderr)
    return take(cloud, good)


def read_finite(options: argparse.Namespace) -> PointCloud:
    """Reads the input; ValueError if points with NaN or infinity are left."""
    cloud = read(options)
    bad = np.flatnonzero(~finite_rows(cloud))
    if len(bad):
        raise ValueError(
            f"{options.input}: expected finite points, got {len(bad):,} of {len(cloud.points):,} "
            f"with NaN or infinity, the first in row {bad[0]}; --drop-invalid drops them"
        )
    return cloud


def finite_rows(cloud: PointCloud) -> NumPyArray:
    """Whether each point is free of NaN and infinity."""
    rows: NumPyArray = np.asarray(np.isfinite(cloud.points).all(axis=1))
    return rows


def take(cloud: PointCloud, rows: NumPyArray) -> PointCloud:
    """The chosen rows of a cloud."""
    attributes = {name: values[rows] for name, values in cloud.attributes.items()}
    return PointCloud(cloud.points[rows], attributes)
