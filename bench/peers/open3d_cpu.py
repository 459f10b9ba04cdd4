"""Open3D's HashMap as a contender, with its own tensors. Their conversion is not timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import open3d.core as o3c

from harness.keys import KeyKind
from peers import MapTable

NAME = "Open3D"


def batch(array: np.ndarray) -> o3c.Tensor:
    return o3c.Tensor(array)


class Table(MapTable):
    def __init__(self, capacity: int, kind: KeyKind, value: Any = ("int64", (1,))) -> None:
        dtype, shape = value
        self.map = o3c.HashMap(
            capacity, getattr(o3c, kind.dtype), kind.shape, getattr(o3c, dtype), shape
        )

    def get(self, keys: o3c.Tensor) -> Any:
        where, _ = self.map.find(keys)
        return self.map.value_tensor()[where.to(o3c.int64)]
