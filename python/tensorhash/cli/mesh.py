"""Fuse a LiDAR scan into a surface and write it as a mesh of triangles.

Each ray from the scanner to a point lowers or raises the signed distances of the voxels near the
point. The mesh is where the distance is 0.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from tensorhash import io
from tensorhash.cli import _clouds, _output, _parser_types
from tensorhash.geometry import VoxelBlockGrid
from tensorhash.io import PointCloud, TriangleMesh


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    _clouds.add_input(parser)
    _clouds.add_output(parser, "mesh to write, .ply", is_required=True)
    parser.add_argument(
        "--size",
        type=_parser_types.positive,
        required=True,
        help="edge of a voxel, in the unit of the points; not below the distance between points",
    )
    parser.add_argument(
        "--origin",
        type=_parser_types.three,
        default=(0.0, 0.0, 0.0),
        help="where the scanner stood, as x,y,z; 0,0,0 if not given",
    )
    parser.add_argument(
        "--truncation",
        type=_parser_types.positive,
        default=3.0,
        help="how far from a point voxels change, in voxels; 3 if not given",
    )
    _clouds.add_encoding(parser)
    _output.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Reads, fuses, writes."""
    with _output.Progress(3) as progress:
        with progress.step(f"reading {options.input}"):
            cloud = _with_returns(_clouds.read_finite(options), options.origin)
        with progress.step("fusing"):
            clock = _output.Clock()
            mesh = fuse(cloud, options.size, options.origin, options.truncation)
            seconds = clock.seconds()
        with progress.step(f"writing {options.output}"):
            io.write_mesh(options.output, mesh, encoding=options.encoding)
    facts = {
        "input": options.input,
        "output": options.output,
        "points": len(cloud.points),
        "vertices": len(mesh.vertices),
        "triangles": len(mesh.triangles),
        "seconds": round(seconds, 6),
    }
    text = (
        f"{facts['points']:,} points became {facts['triangles']:,} triangles "
        f"in {_output.duration(seconds)}; wrote {options.output}"
    )
    _output.give(options, facts, text)
    return 0


def _with_returns(cloud: PointCloud, origin: tuple[float, float, float]) -> PointCloud:
    """Drops points at the origin, which scanners write for rays without a return."""
    away = (cloud.points != np.array(origin)).any(axis=1)
    if away.all():
        return cloud
    missing = len(away) - int(away.sum())
    print(f"tensorhash: dropped {missing:,} points at the origin of the scan", file=sys.stderr)
    return _clouds.take(cloud, away)


def fuse(
    cloud: PointCloud, size: float, origin: tuple[float, float, float], truncation: float
) -> TriangleMesh:
    """The surface of a scan."""
    grid = VoxelBlockGrid(("tsdf", "weight"), ("float32", "float32"), (1, 1), size, 8)
    grid.integrate(points=cloud.points, origin=origin, trunc_voxel_multiplier=truncation)
    mesh = grid.extract_triangle_mesh(weight_threshold=0)
    normals = {"normals": np.asarray(mesh.vertex_normals)}
    return TriangleMesh(np.asarray(mesh.vertices), np.asarray(mesh.triangles), normals)
