"""What the page shows: points and voxels as bytes, around the centre of the scene."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from tensorhash._types import ArrayLike, NumPyArray
from tensorhash.coords import voxelize
from tensorhash.io._cloud import take_points

_MOST_POINTS = 2_000_000  # shown at once; voxels are made of all points
_MOST_VOXELS = 4_000_000


class Scene:
    """The points of a file. All results are float32 bytes: x, y, z relative to the centre."""

    def __init__(self, points: ArrayLike, size: float | None = None) -> None:
        rows = take_points(points, "points")
        good = np.isfinite(rows).all(axis=1)
        self.dropped = len(rows) - int(good.sum())  #: points with NaN or infinity
        self._points = rows if self.dropped == 0 else rows[good]
        if len(self._points) == 0:
            raise ValueError("points: expected at least one finite point, got none")
        low = self._points.min(axis=0).astype(np.float64)
        high = self._points.max(axis=0).astype(np.float64)
        self._center = (low + high) / 2
        self._half = np.maximum((high - low) / 2, 1e-6)
        extent = float(np.sort(high - low)[1:].mean()) or 1.0
        self._size = _round(size or extent / 150)
        self._least, self._most = _round(self._size / 20), _round(self._size * 20)

    def facts(self) -> dict[str, Any]:
        """What the page needs to know before it asks."""
        heights = np.percentile(self._points[:, 2], [1, 99]).astype(float)
        return {
            "points": len(self._points),
            "center": self._center.tolist(),
            "half": self._half.tolist(),
            "heights": heights.tolist(),
            "size": self._size,
            "least": self._least,
            "most": self._most,
        }

    def points(self) -> tuple[dict[str, Any], bytes]:
        """At most two million points, evenly spread over the rows."""
        step = -(-len(self._points) // _MOST_POINTS)
        shown = self._points[::step]
        return {"points": len(shown)}, self._around_center(shown)

    def voxels(self, size: float) -> tuple[dict[str, Any], bytes]:
        """The centres of the occupied voxels. ValueError if the size is not possible."""
        if not 0 < size < math.inf:
            raise ValueError(f"size: expected a number greater than 0, got {size}")
        start = time.perf_counter()
        cells = np.asarray(voxelize(self._points, size, reduce="first").coords)
        seconds = time.perf_counter() - start
        if len(cells) > _MOST_VOXELS:
            raise ValueError(
                f"size: expected at most {_MOST_VOXELS:,} voxels, got {len(cells):,}; "
                f"choose a larger size"
            )
        facts = {"voxels": len(cells), "milliseconds": round(seconds * 1e3, 3)}
        return facts, self._around_center((cells + 0.5) * size)

    def _around_center(self, points: NumPyArray) -> bytes:
        moved: bytes = (points - self._center).astype("<f4").tobytes()
        return moved


def _round(size: float) -> float:
    """Two digits, which are easy to read on the page."""
    return float(f"{size:.2g}")
