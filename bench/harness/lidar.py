"""A real LiDAR scan to measure with: the first one of `tensorhash demo`."""

from __future__ import annotations

from functools import cache

import numpy as np

from harness.store import BUILD


def points() -> np.ndarray:
    """float64 [N, 3], in metres, without the rows that have no return. The first call downloads it."""
    from tensorhash.cli.demo import scans

    return scans.load(BUILD / "scans").clouds[0].astype(np.float64)


@cache
def voxels(count: int, size: float = 0.05) -> np.ndarray:
    """int32 [count, 4], distinct: several batches of the scan, each turned by another angle."""
    scan, parts, found = points(), [], 0
    for batch in range(10_000):
        angle = 0.37 * batch
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turned = np.column_stack([scan[:, :2] @ turn, scan[:, 2]])
        cells = np.unique(np.floor(turned / size).astype(np.int32), axis=0)
        parts.append(np.column_stack([np.full(len(cells), batch, np.int32), cells]))
        found += len(cells)
        if found >= count:
            break
    together = np.concatenate(parts)[:count]
    return np.random.default_rng(0).permutation(together)
