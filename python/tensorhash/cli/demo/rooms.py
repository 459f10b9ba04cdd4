"""Synthetic rooms as labelled points: floor, ceiling, walls, tables, chairs, shelves and beds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tensorhash._types import NumPyArray
from tensorhash.coords import voxelize

CLASSES = ("floor", "ceiling", "wall", "table", "chair", "shelf", "bed")
VOXEL = 0.1  #: metres
_SPACING = 0.05  #: metres between points of a surface
_KEPT = 0.7  #: share of the points that a scanner sees
_FLOOR, _CEILING, _WALL, _TABLE, _CHAIR, _SHELF, _BED = range(len(CLASSES))


class Room(NamedTuple):
    """The voxels of a room."""

    coords: NumPyArray  #: int32 [N, 3]
    features: NumPyArray  #: float32 [N, 2]: 1, and the height over the floor in metres
    labels: NumPyArray  #: int64 [N]: positions in CLASSES


def room(seed: int) -> Room:
    """A room with furniture; another one for each seed."""
    rng = np.random.default_rng(seed)
    size = np.array([rng.uniform(3, 5), rng.uniform(3, 5), rng.uniform(2.4, 2.8)])
    parts = _shell(size) + _furniture(size, rng)
    points = np.concatenate([part for part, _ in parts])
    labels = np.concatenate([np.full(len(part), label) for part, label in parts])
    kept = rng.random(len(points)) < _KEPT
    points = points[kept] + rng.normal(scale=0.01, size=(kept.sum(), 3))
    voxels = voxelize(points, VOXEL, features=labels[kept], reduce="mode")
    coords = np.asarray(voxels.coords)
    height = coords[:, 2] * VOXEL
    features = np.stack([np.ones(len(coords)), height], axis=1).astype(np.float32)
    return Room(coords, features, np.asarray(voxels.features))


Part = tuple[NumPyArray, int]


def _box(low: NumPyArray, high: NumPyArray) -> NumPyArray:
    """Points on the six sides of a box."""
    sides = []
    for axis in range(3):
        others = [other for other in range(3) if other != axis]
        ranges = [np.arange(low[o], high[o] + _SPACING / 2, _SPACING) for o in others]
        grid = np.stack(np.meshgrid(*ranges), axis=-1).reshape(-1, 2)
        for end in (low[axis], high[axis]):
            sides.append(np.insert(grid, axis, end, axis=1))
    return np.concatenate(sides)


def _shell(size: NumPyArray) -> list[Part]:
    """Floor, ceiling and walls."""
    points = _box(np.zeros(3), size)
    label = np.full(len(points), _WALL)
    label[points[:, 2] == 0] = _FLOOR
    label[points[:, 2] == size[2]] = _CEILING
    return [(points[label == one], one) for one in (_FLOOR, _CEILING, _WALL)]


def _furniture(size: NumPyArray, rng: np.random.Generator) -> list[Part]:
    """Pieces that do not overlap; a shelf stands at a wall."""
    taken: list[tuple[NumPyArray, NumPyArray]] = []
    parts: list[Part] = []
    for label in (_BED, _SHELF, _TABLE, _SHELF, _CHAIR, _CHAIR, _CHAIR):
        extent = _extent(label, rng)
        for _ in range(20):
            low = 0.2 + rng.random(2) * (size[:2] - 0.4 - extent[:2])
            if label == _SHELF:
                axis = rng.integers(2)
                low[axis] = rng.choice([0.1, size[axis] - extent[axis] - 0.1])
            high = low + extent[:2]
            if all((high < a - 0.2).any() or (low > b + 0.2).any() for a, b in taken):
                taken.append((low, high))
                parts.append((_piece(label, np.append(low, 0), extent, rng), label))
                break
    return parts


def _extent(label: int, rng: np.random.Generator) -> NumPyArray:
    """The size of a piece in metres, turned by a right angle or not."""
    ranges = {
        _BED: ((1.9, 2.1), (0.9, 1.6), (0.4, 0.55)),
        _SHELF: ((0.8, 1.4), (0.3, 0.4), (1.5, 2.1)),
        _TABLE: ((1.2, 1.8), (0.7, 0.9), (0.7, 0.8)),
        _CHAIR: ((0.4, 0.5), (0.4, 0.5), (0.85, 1.0)),
    }
    extent = np.array([rng.uniform(*ends) for ends in ranges[label]])
    return extent if rng.random() < 0.5 else extent[[1, 0, 2]]


def _piece(label: int, low: NumPyArray, extent: NumPyArray, rng: np.random.Generator) -> NumPyArray:
    """The surface of a piece of furniture."""
    high = low + extent
    if label in (_BED, _SHELF):
        return _box(low, high)
    top = 0.45 if label == _CHAIR else extent[2]
    plate = _box(np.append(low[:2], top - 0.04), np.append(high[:2], top))
    legs = [
        _box(np.array([x, y, 0.0]), np.array([x + 0.05, y + 0.05, top]))
        for x in (low[0], high[0] - 0.05)
        for y in (low[1], high[1] - 0.05)
    ]
    parts = [plate, *legs]
    if label == _CHAIR:
        axis, end = rng.integers(2), rng.integers(2)
        back_low, back_high = np.append(low[:2], top), high.copy()
        if end:
            back_low[axis] = high[axis] - 0.05
        else:
            back_high[axis] = low[axis] + 0.05
        parts.append(_box(back_low, back_high))
    return np.concatenate(parts)
