"""Open3D's HashMap as a contender: its own tensors in and out, made outside the clock."""

from __future__ import annotations

import numpy as np
import open3d
import open3d.core as o3c

from peers import MapTable

NAME = f"open3d-cpu {open3d.__version__}"


def batch(array: np.ndarray) -> o3c.Tensor:
    return o3c.Tensor(array)


class Table(MapTable):
    def __init__(self, capacity: int, dtype: str, shape: tuple[int, ...]) -> None:
        self.map = o3c.HashMap(capacity, getattr(o3c, dtype), shape, o3c.int64, (1,))
