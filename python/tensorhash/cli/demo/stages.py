"""The steps of the demo: each runs with tensorhash and with NumPy, and the results must agree."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

import tensorhash
from tensorhash._types import NumPyArray
from tensorhash.cli.demo.scans import Scans
from tensorhash.coords import generate_kernel_map, voxelize
from tensorhash.data import group_by
from tensorhash.geometry import VoxelBlockGrid

VOXEL = 0.25  #: metres
COLUMN = 1.0  #: metres: the edge of a ground column in the group-by
MESH_VOXEL = 0.2  #: metres: voxels of the signed distances
CONV_VOXEL = 0.5  #: metres: voxels of the kernel map
SIZES = np.geomspace(0.05, 3.2, 13)

Result = TypeVar("Result")


class Timing(NamedTuple):
    """One line of the table."""

    step: str
    rows: int
    ours: float  #: seconds
    numpy: float | None  #: seconds; None if NumPy has no such step


def timed(call: Callable[[], Result], times: int = 3) -> tuple[Result, float]:
    """The result of a call, and the median of its seconds over this many runs."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return result, float(np.median(seconds))


class Voxelised(NamedTuple):
    """Voxels of all points."""

    means: NumPyArray
    counts: NumPyArray


def voxelise(scans: Scans) -> tuple[Voxelised, Timing]:
    """The mean of the points in each voxel."""
    points = scans.points
    voxels, ours = timed(lambda: voxelize(points, VOXEL))
    (means, counts), numpy = timed(lambda: _voxelise_numpy(points))
    agree(np.asarray(voxels.counts), counts, "the number of points per voxel")
    if not np.allclose(np.asarray(voxels.features), means, atol=1e-5):
        raise RuntimeError("the demo failed: the means of tensorhash and NumPy differ")
    result = Voxelised(np.asarray(voxels.features), counts)
    return result, Timing(f"voxelise at {VOXEL:g} m, mean per voxel", len(points), ours, numpy)


def _voxelise_numpy(points: NumPyArray) -> tuple[NumPyArray, NumPyArray]:
    keys = np.floor(points.astype(np.float64) / VOXEL).astype(np.int32)
    first, inverse, counts = _unique_numpy(keys)
    sums = [np.bincount(inverse, points[:, axis], len(first)) for axis in range(3)]
    return np.stack(sums, axis=1) / counts[:, None], counts


def _unique_numpy(keys: NumPyArray) -> tuple[NumPyArray, NumPyArray, NumPyArray]:
    """(first row, inverse, counts) of distinct rows, in order of first occurrence."""
    _, first, inverse, counts = np.unique(
        keys, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.reshape(-1)], counts[order]


def count_sizes(scans: Scans) -> tuple[NumPyArray, Timing]:
    """The number of voxels for each size."""
    points = scans.points.astype(np.float64)

    def count(distinct: Callable[[NumPyArray], Any]) -> NumPyArray:
        keys = [np.floor(points / size).astype(np.int32) for size in SIZES]
        return np.array([len(distinct(rows)) for rows in keys])

    counts, ours = timed(lambda: count(tensorhash.unique), 1)
    theirs, numpy = timed(lambda: count(lambda keys: np.unique(keys, axis=0)), 1)
    agree(counts, theirs, "the number of voxels")
    rows = len(points) * len(SIZES)
    return counts, Timing(f"count voxels of {len(SIZES)} sizes", rows, ours, numpy)


def distinct_points(scans: Scans) -> tuple[int, Timing]:
    """The number of distinct points: rows of three floats."""
    points = scans.points
    found, ours = timed(lambda: tensorhash.unique(points))
    theirs, numpy = timed(lambda: np.unique(points, axis=0))
    agree(np.array(len(found)), np.array(len(theirs)), "the number of distinct points")
    return len(found), Timing("distinct points", len(points), ours, numpy)


class Columns(NamedTuple):
    """Ground columns: groups of points with the same x and y, in steps of COLUMN."""

    keys: NumPyArray  #: int32 [G, 2]
    counts: NumPyArray
    highest: NumPyArray  #: metres
    mean: NumPyArray  #: metres
    scans: NumPyArray  #: 1: only the first scan, 2: only the second, 3: both


def group(scans: Scans) -> tuple[Columns, Timing]:
    """Group-by: number of points, highest and mean height, and the scans that saw the column."""
    points = scans.points
    keys = np.floor(points[:, :2].astype(np.float64) / COLUMN).astype(np.int32)
    heights = points[:, 2].astype(np.float64)
    which = np.repeat(np.arange(2), [len(cloud) for cloud in scans.clouds])
    columns, ours = timed(lambda: _group_ours(keys, heights, which))
    theirs, numpy = timed(lambda: _group_numpy(keys, heights, which))
    for name, mine, other in zip(Columns._fields, columns, theirs, strict=True):
        agree(mine, other, f"the column {name}")
    return columns, Timing(
        f"group by {COLUMN:g} m column: count, max, mean", len(points), ours, numpy
    )


def _group_ours(keys: NumPyArray, heights: NumPyArray, which: NumPyArray) -> Columns:
    seen = np.eye(2, dtype=bool)[which]
    found = group_by(keys).agg(
        counts="count", highest=(heights, "max"), mean=(heights, "mean"), seen=(seen, "any")
    )
    key, counts, highest, mean, seen = map(np.asarray, found.values())
    return Columns(key, counts, highest, mean, seen @ np.array([1, 2]))


def _group_numpy(keys: NumPyArray, heights: NumPyArray, which: NumPyArray) -> Columns:
    first, inverse, total = _unique_numpy(keys)
    highest = np.full(len(first), -np.inf)
    np.maximum.at(highest, inverse, heights)
    mean = np.bincount(inverse, heights) / total
    seen = [np.bincount(inverse[which == scan], minlength=len(first)) > 0 for scan in range(2)]
    return Columns(keys[first], total, highest, mean, seen[0] + 2 * seen[1])


class Surface(NamedTuple):
    """A mesh of both scans."""

    vertices: NumPyArray
    triangles: NumPyArray
    normals: NumPyArray


def fuse(scans: Scans) -> tuple[Surface, Timing]:
    """Both scans in one grid of signed distances, then the surface. NumPy has no such step."""

    def fused() -> Surface:
        grid = VoxelBlockGrid(("tsdf", "weight"), ("float32", "float32"), (1, 1), MESH_VOXEL, 8)
        for cloud, origin in zip(scans.clouds, scans.origins, strict=True):
            grid.integrate(points=cloud, origin=origin, trunc_voxel_multiplier=3)
        mesh = grid.extract_triangle_mesh(weight_threshold=1)
        return Surface(*map(np.asarray, (mesh.vertices, mesh.triangles, mesh.vertex_normals)))

    surface, ours = timed(fused)
    rows = sum(len(cloud) for cloud in scans.clouds)
    return surface, Timing(f"fuse both scans into a mesh at {MESH_VOXEL:g} m", rows, ours, None)


class Neighbourhood(NamedTuple):
    """Voxels and how many of the 27 around each are occupied."""

    centres: NumPyArray  #: metres
    neighbours: NumPyArray
    pairs: int


def kernel_map(scans: Scans) -> tuple[Neighbourhood, Timing]:
    """The pairs (in row, out row) of a 3 x 3 x 3 convolution."""
    cells = np.asarray(voxelize(scans.points, CONV_VOXEL).coords)
    coords = np.insert(cells, 0, 0, axis=1).astype(np.int32)
    pairs, ours = timed(lambda: generate_kernel_map(coords, coords, 1, (3, 3, 3)))
    theirs, numpy = timed(lambda: _kernel_map_numpy(cells))
    agree(np.asarray(pairs.out_maps), theirs, "the kernel map")
    neighbours = np.bincount(theirs, minlength=len(cells))
    result = Neighbourhood((cells + 0.5) * CONV_VOXEL, neighbours, len(theirs))
    return result, Timing(f"3x3x3 kernel map at {CONV_VOXEL:g} m", len(cells), ours, numpy)


def _kernel_map_numpy(cells: NumPyArray) -> NumPyArray:
    """The out rows of all pairs, offset by offset: a sorted list and a binary search for each."""
    low = cells.min(axis=0) - 1
    extent = (cells.max(axis=0) - low + 2).astype(np.int64)

    def packed(rows: NumPyArray) -> NumPyArray:
        x, y, z = (rows - low).astype(np.int64).T
        keys: NumPyArray = (x * extent[1] + y) * extent[2] + z
        return keys

    known = np.sort(packed(cells))
    steps = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    found = []
    for step in steps:
        wanted = packed(cells + step)
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        found.append(np.flatnonzero(known[at] == wanted))
    return np.concatenate(found)


def agree(ours: Any, numpy: Any, what: str) -> None:
    """RuntimeError unless both libraries gave the same."""
    if not np.array_equal(ours, numpy):
        raise RuntimeError(f"the demo failed: {what} of tensorhash and NumPy differ")
