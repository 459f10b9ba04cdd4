"""VoxelBlockGrid beside Open3D's."""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any

import numpy as np

from harness.case import Case, Sample, Scale
from harness.clock import Clock, in_turn, samples
from harness.report import OURS, beside
from suites.points import street

TITLE = "Geometry"
ABOUT = """
Four depth and colour images of a synthetic room (a ball before a wavy wall), integrated with voxels of 10 mm and
blocks of 16^3. Both grids have room for all blocks. The integration is timed on a grid that has the blocks already.
Files are `.npz`, which both libraries read and write. A first `ray_cast` runs before the clock starts, because Open3D's
first one returns zeros.
"""
OPEN3D = "Open3D"
VOXEL, RESOLUTION = 0.01, 16
NUMBERS = (1000.0, 3.0, 8.0)  # depth scale, greatest depth, truncation
NAMES = ("tsdf", "weight", "color")


def cases(scale: Scale) -> list[Case]:
    sizes = {"smoke": (64, 48)}.get(scale.name, (640, 480))
    return [Case("geometry/voxel_block_grid", partial(measure, width=sizes[0], height=sizes[1]))]


def intrinsic_of(width: int, height: int) -> np.ndarray:
    focal = 525.0 * width / 640
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]])


def frames(width: int, height: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """[(depth uint16 in mm, color uint8, extrinsic)]"""
    v, u = np.mgrid[0:height, 0:width]
    k = intrinsic_of(width, height)
    x, y = (u - k[0, 2]) / k[0, 0], (v - k[1, 2]) / k[1, 1]
    made = []
    for shift in (0.0, 0.05, 0.1, 0.15):
        extrinsic = np.eye(4)
        extrinsic[0, 3] = -shift
        wall = 2.2 + 0.05 * np.sin(4 * (2 * x + shift)) * np.cos(6 * y)
        a, b = x * x + y * y + 1, x * (shift - 0.1) - 1.5
        root = b * b - a * ((shift - 0.1) ** 2 + 1.5**2 - 0.5**2)
        ball = np.where(root > 0, (-b - np.sqrt(np.maximum(root, 0))) / a, np.inf)
        color = np.stack([u % 256, v % 256, (u + v) % 256], axis=-1).astype(np.uint8)
        made.append(((1000 * np.minimum(wall, ball)).astype(np.uint16), color, extrinsic))
    return made


class Ours:
    """Our grid, with NumPy arrays."""

    def __init__(self) -> None:
        from tensorhash.geometry import VoxelBlockGrid

        self.grid: Any = VoxelBlockGrid(NAMES, ("float32",) * 3, (1, 1, 3), VOXEL, RESOLUTION, 8000)

    def matrix(self, array: np.ndarray) -> Any:
        return array

    image = matrix
    cloud = matrix


class Theirs:
    """Open3D's grid, with its own tensors. Their conversion is not timed."""

    def __init__(self) -> None:
        import open3d

        self.o3d: Any = open3d
        dtypes = (open3d.core.float32,) * 3
        self.grid: Any = open3d.t.geometry.VoxelBlockGrid(
            NAMES, dtypes, ((1,), (1,), (3,)), VOXEL, RESOLUTION, 8000
        )

    def matrix(self, array: np.ndarray) -> Any:
        return self.o3d.core.Tensor(array)

    def image(self, array: np.ndarray) -> Any:
        return self.o3d.t.geometry.Image(self.o3d.core.Tensor(array))

    def cloud(self, array: np.ndarray) -> Any:
        return self.o3d.t.geometry.PointCloud(self.o3d.core.Tensor(array))


class Contender:
    """One grid with four images, and a round of all methods."""

    def __init__(self, side: Ours | Theirs, width: int, height: int) -> None:
        self.side, self.size = side, (width, height)
        self.folder = tempfile.TemporaryDirectory()
        self.points = side.cloud(street(20_000, 2).astype(np.float32) / 10)
        self.intrinsic = side.matrix(intrinsic_of(width, height))
        self.frames = [
            (side.image(depth), side.image(color), side.matrix(extrinsic))
            for depth, color, extrinsic in frames(width, height)
        ]
        for depth, color, extrinsic in self.frames:
            self.blocks = side.grid.compute_unique_block_coordinates(
                depth, self.intrinsic, extrinsic, *NUMBERS
            )
            side.grid.integrate(self.blocks, depth, color, self.intrinsic, extrinsic, *NUMBERS)
        side.grid.ray_cast(self.blocks, self.intrinsic, self.frames[-1][2], *self.size)

    def __call__(self, clock: Clock) -> None:
        self._integrate(clock)
        self._extract(clock)
        self._list_voxels(clock)
        self._use_files(clock)

    def _integrate(self, clock: Clock) -> None:
        grid, (depth, color, extrinsic) = self.side.grid, self.frames[-1]
        where = (self.intrinsic, extrinsic)
        with clock("compute_unique_block_coordinates"):
            blocks = grid.compute_unique_block_coordinates(depth, *where, *NUMBERS)
        with clock("compute_unique_block_coordinates (points)"):
            grid.compute_unique_block_coordinates(self.points, 8.0)
        with clock("integrate"):
            grid.integrate(blocks, depth, color, *where, *NUMBERS)
        with clock("integrate (depth only)"):
            grid.integrate(blocks, depth, *where, *NUMBERS)
        with clock("ray_cast"):
            grid.ray_cast(blocks, *where, *self.size, ["depth", "color", "normal"])

    def _extract(self, clock: Clock) -> None:
        with clock("extract_point_cloud"):
            self.side.grid.extract_point_cloud(3.0)
        with clock("extract_triangle_mesh"):
            self.side.grid.extract_triangle_mesh(3.0)

    def _list_voxels(self, clock: Clock) -> None:
        grid = self.side.grid
        with clock("voxel_coordinates_and_flattened_indices"):
            grid.voxel_coordinates_and_flattened_indices()
        with clock("voxel_indices"):
            indices = grid.voxel_indices()
        with clock("voxel_coordinates"):
            grid.voxel_coordinates(indices)
        with clock("attribute", 100):
            for _ in range(100):
                grid.attribute("tsdf")

    def _use_files(self, clock: Clock) -> None:
        path = f"{self.folder.name}/grid.npz"
        with clock("save"):
            self.side.grid.save(path)
        with clock("load"):
            type(self.side.grid).load(path)


def measure(scale: Scale, width: int, height: int) -> list[Sample]:
    contenders = {
        OURS: Contender(Ours(), width, height),
        OPEN3D: Contender(Theirs(), width, height),
    }
    counts = {contender.side.grid.hashmap().size() for contender in contenders.values()}
    if len(counts) != 1:
        raise AssertionError(f"contenders disagree on the number of blocks: {counts}")
    times = in_turn(contenders, scale, scale.rounds(1_000_000))
    return samples(times, data=f"{width} x {height}")


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
