"""Neighbours and voxel sampling of points beside Open3D, SciPy and small_gicp."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness import machine
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import Clock, Round, call, in_turn, samples
from harness.report import OURS, beside
from peers import optional

TITLE = "Points"
ABOUT = """
Neighbours of a synthetic street, 200,000 points and 100,000 queries, with the time to build the index; "kept" is a
search on an index that is there, "hybrid" has both limits. SciPy is `cKDTree` with all threads as workers. Then the
mean point of each voxel of 10 cm: `voxel_downsample` beside small_gicp's `voxelgrid_sampling` and Open3D's
`voxel_down_sample`. The clouds of both are made before the clock starts.
"""
OPEN3D, SCIPY, SMALL_GICP = "Open3D", "SciPy", "small_gicp"
ROWS, SAMPLED = 200_000, (200_000, 2_000_000)
RADIUS, NEAREST, VOXEL = 0.3, 8, 0.1
KNN, RADIUS_SEARCH = "kNN, k = 8", "radius 0.3"


def cases(scale: Scale) -> list[Case]:
    neighbours = Case("points/neighbours", partial(measure, rows=scale.rows(ROWS)[0]))
    return [
        neighbours,
        *(
            Case(f"points/voxel_downsample/{rows_text(n)}", partial(sampling, rows=n))
            for n in scale.rows(*scale.pick(SAMPLED, SAMPLED[1:]))
        ),
    ]


def street(rows: int, seed: int) -> np.ndarray:
    """float64 [rows, 3]: a flat ground around a sensor, with walls."""
    rng = np.random.default_rng(seed)
    angle, distance = rng.uniform(0, 2 * np.pi, rows), rng.gamma(2, 12, rows)
    height = np.where(rng.random(rows) < 0.7, rng.normal(0, 0.03, rows), rng.uniform(0, 6, rows))
    return np.stack([distance * np.cos(angle), distance * np.sin(angle), height], axis=1)


def ours_of(points: np.ndarray, queries: np.ndarray) -> Round:
    from tensorhash.geometry import NeighborIndex, knn_search, radius_search

    kept = NeighborIndex(points)

    def one_round(clock: Clock) -> None:
        with clock(KNN):
            knn_search(points, queries, NEAREST)
        with clock(RADIUS_SEARCH):
            radius_search(points, queries, RADIUS)
        with clock("kNN, kept"):
            kept.knn(NEAREST, queries)
        with clock("radius, kept"):
            kept.radius(RADIUS, queries)
        with clock("hybrid, kept"):
            kept.hybrid(RADIUS, NEAREST, queries)

    return one_round


def open3d_of(points: np.ndarray, queries: np.ndarray) -> Round:
    import open3d.core as o3c

    search = o3c.nns.NearestNeighborSearch
    cloud, asked = o3c.Tensor(points), o3c.Tensor(queries)
    tree, cells, mixed = search(cloud), search(cloud), search(cloud)
    tree.knn_index()
    mixed.hybrid_index(RADIUS)
    cells.fixed_radius_index(RADIUS)

    def one_round(clock: Clock) -> None:
        with clock(KNN):
            made = search(cloud)
            made.knn_index()
            made.knn_search(asked, NEAREST)
        with clock(RADIUS_SEARCH):
            made = search(cloud)
            made.fixed_radius_index(RADIUS)
            made.fixed_radius_search(asked, RADIUS)
        with clock("kNN, kept"):
            tree.knn_search(asked, NEAREST)
        with clock("radius, kept"):
            cells.fixed_radius_search(asked, RADIUS)
        with clock("hybrid, kept"):
            mixed.hybrid_search(asked, RADIUS, NEAREST)

    return one_round


def scipy_of(points: np.ndarray, queries: np.ndarray) -> Round:
    from scipy.spatial import cKDTree

    kept, workers = cKDTree(points), machine.threads()

    def one_round(clock: Clock) -> None:
        with clock(KNN):
            cKDTree(points).query(queries, NEAREST, workers=workers)
        with clock(RADIUS_SEARCH):
            cKDTree(points).query_ball_point(queries, RADIUS, workers=workers)
        with clock("kNN, kept"):
            kept.query(queries, NEAREST, workers=workers)
        with clock("radius, kept"):
            kept.query_ball_point(queries, RADIUS, workers=workers)
        with clock("hybrid, kept"):
            kept.query(queries, NEAREST, distance_upper_bound=RADIUS, workers=workers)

    return one_round


def small_gicp_of(points: np.ndarray, queries: np.ndarray) -> Round:
    import small_gicp

    threads = machine.threads()
    kept = small_gicp.KdTree(points, num_threads=threads)

    def one_round(clock: Clock) -> None:
        with clock(KNN):
            tree = small_gicp.KdTree(points, num_threads=threads)
            tree.batch_knn_search(queries, NEAREST, num_threads=threads)
        with clock("kNN, kept"):
            kept.batch_knn_search(queries, NEAREST, num_threads=threads)

    return one_round


def measure(scale: Scale, rows: int) -> list[Sample]:
    data = street(rows, 0), street(max(1, rows // 2), 1)
    contenders = {OURS: ours_of(*data), OPEN3D: open3d_of(*data)}
    if optional.module("scipy"):
        contenders[SCIPY] = scipy_of(*data)
    if optional.module("small_gicp"):
        contenders[SMALL_GICP] = small_gicp_of(*data)
    times = in_turn(contenders, scale, scale.rounds(1_000_000))
    return samples(times, data=f"{rows_text(rows)} points")


def samplers(points: np.ndarray) -> dict[str, Callable[[], Any]]:
    import open3d

    from tensorhash.coords import voxel_downsample

    cloud = open3d.t.geometry.PointCloud(open3d.core.Tensor(points))
    made: dict[str, Callable[[], Any]] = {
        OURS: lambda: voxel_downsample(points, VOXEL),
        OPEN3D: lambda: cloud.voxel_down_sample(VOXEL),
    }
    if small_gicp := optional.module("small_gicp"):
        own, threads = small_gicp.PointCloud(points), machine.threads()
        made[SMALL_GICP] = lambda: small_gicp.voxelgrid_sampling(own, VOXEL, num_threads=threads)
    return made


def sampling(scale: Scale, rows: int) -> list[Sample]:
    works = samplers(street(rows, 0))
    rounds = {name: call("voxel_downsample", work) for name, work in works.items()}
    times = in_turn(rounds, scale, scale.rounds(rows))
    return samples(times, data=f"{rows_text(rows)} points")


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
