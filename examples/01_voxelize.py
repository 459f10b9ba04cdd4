"""Voxelises a point cloud: turns millions of points into one table entry per occupied voxel.

usage: 01_voxelize.py [--points 3000000] [--voxel 0.10]
"""

from __future__ import annotations

import argparse
import time
from contextlib import contextmanager

import numpy as np

import tensorhash

SHADES = " .:-=+*#%@"


def box_surface(rng, n, low, size):
    """Points on the four walls and the roof of a box, uniform by area."""
    wide, deep, high = size
    areas = np.array([wide * high, wide * high, deep * high, deep * high, wide * deep])
    face = rng.choice(5, size=n, p=areas / areas.sum())
    points = rng.random((n, 3)) * size
    points[face == 0, 1] = 0
    points[face == 1, 1] = deep
    points[face == 2, 0] = 0
    points[face == 3, 0] = wide
    points[face == 4, 2] = high
    return points + low


def scanned_scene(n, seed=7):
    """A block of houses and a round tank on rolling ground, scanned with 1 cm of noise."""
    rng = np.random.default_rng(seed)
    half = 30.0
    ground = rng.uniform(-half, half, (n // 2, 3))
    ground[:, 2] = 0.8 * np.sin(ground[:, 0] / 9) * np.cos(ground[:, 1] / 7)
    parts = [ground]
    corners = [(x, y) for x in (-24, -11, 3, 16) for y in (-22, -3, 14)]
    for x, y in corners[:-1]:
        low = np.array([x, y, -0.8]) + np.append(rng.uniform(-1, 1, 2), 0)
        size = np.array([rng.uniform(6, 9), rng.uniform(6, 10), rng.uniform(4, 12)])
        parts.append(box_surface(rng, n * 2 // 5 // (len(corners) - 1), low, size))
    sphere = rng.normal(size=(n - sum(map(len, parts)), 3))
    sphere *= 5.0 / np.linalg.norm(sphere, axis=1, keepdims=True)
    parts.append(sphere + np.array([20, 20, 5]))
    points = np.concatenate(parts) + rng.normal(scale=0.01, size=(n, 3))
    rng.shuffle(points)
    return points


def voxel_keys(points, voxel):
    """The integer voxel of each point. Uses floor, so that voxels at zero have the usual size."""
    return np.floor(points / voxel).astype(np.int32)


@contextmanager
def timed(what, rows):
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    print(f"  {what:<44} {seconds * 1e3:8.1f} ms   {rows / seconds / 1e6:7.1f} M rows/s")


def print_map(keys, columns=72):
    """Prints the scene from above; the higher the voxels, the darker the character."""
    x, y, z = keys.astype(np.int64).T
    step = (x.max() - x.min() + 1) / columns
    column = ((x - x.min()) / step).astype(int)
    line = ((y.max() - y) / (2 * step)).astype(int)  # a character is about twice as high as wide
    shade = np.zeros((line.max() + 1, columns), np.int64)  # 0 is a blank
    np.maximum.at(shade, (line, column), 1 + (z - z.min()) * (len(SHADES) - 2) // max(1, np.ptp(z)))
    for row in shade:
        print("  " + "".join(SHADES[s] for s in row).rstrip())


def check_against_numpy(points, voxel):
    """Checks `points` against np.unique: same voxels, bit-equal sums, same counts."""
    keys = voxel_keys(points, voxel)
    table = make_table()
    table.accumulate(keys, [points, np.ones(len(points), np.int64)], reduce="sum")
    cells, inverse = np.unique(keys, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    sums = np.stack([np.bincount(inverse, weights=points[:, axis]) for axis in range(3)], axis=1)
    our_sums, our_counts = table.get(cells)
    assert len(table) == len(cells), (len(table), len(cells))
    assert np.array_equal(our_sums, sums), "sums differ from NumPy's"
    assert np.array_equal(our_counts, np.bincount(inverse)), "counts differ from NumPy's"
    return len(cells)


def make_table():
    """A table from a voxel (x, y, z) to the sum and the number of its points. It grows."""
    return tensorhash.HashMap(
        init_capacity=0,
        key_dtype="int32",
        key_element_shape=(3,),
        value_dtypes=("float64", "int64"),
        value_element_shapes=((3,), ()),
        device="cpu",
    )


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--points", type=int, default=3_000_000, help="points in the cloud")
    options.add_argument("--voxel", type=float, default=0.10, help="edge of a voxel in metres")
    args = options.parse_args()
    if args.points < 1000 or not args.voxel > 0:
        options.error("--points must be at least 1000 and --voxel greater than 0")

    threads = tensorhash.get_num_threads()
    print(f"tensorhash {tensorhash.__version__}, threads: {threads}")
    points = scanned_scene(args.points)
    print(f"a scanned block: {len(points):,} points, voxels of {args.voxel * 100:g} cm\n")

    with timed("keys = floor(points / voxel)     (NumPy)", len(points)):
        keys = voxel_keys(points, args.voxel)
    ones = np.ones(len(points), np.int64)
    table = make_table()
    with timed("table.accumulate(keys, [points, ones])", len(points)):
        table.accumulate(keys, [points, ones], reduce="sum")
    with timed("indices, found = table.find(keys)", len(points)):
        indices, found = table.find(keys)
    with timed("voxels, (sums, counts) = table.items()", len(table)):
        voxels, (sums, counts) = table.items()
    centroids = sums / counts[:, None]

    assert found.all() and counts.sum() == len(points)
    # `find` gave every point its voxel: the voxel's centroid is near the point.
    assert np.abs(points[::97] - centroids[indices[::97]]).max() <= args.voxel
    cells = np.prod(np.ptp(voxels, axis=0).astype(np.float64) + 1)
    memory = table.memory_usage()["total"]
    print(
        f"\n  {len(table):,} voxels hold {counts.mean():.1f} points each (at most {counts.max()})"
    )
    print(f"  {len(table) / cells:.2%} of the bounding box is occupied")
    print(f"  {memory / 1e6:.0f} MB of table; a dense grid: {cells * 32 / 1e6:,.0f} MB\n")

    print_map(voxels)
    subset = points[:200_000]
    agreed = check_against_numpy(subset, args.voxel)
    print(f"\n  checked: on {len(subset):,} points NumPy finds the same {agreed:,} voxels,")
    print("  bit-equal sums and the same counts")


if __name__ == "__main__":
    main()
