"""tensorhash as a contender: NumPy arrays in and out."""

from __future__ import annotations

import numpy as np

import tensorhash
from peers import MapTable

NAME = f"tensorhash {tensorhash.__version__}"


def batch(array: np.ndarray) -> np.ndarray:
    return array


class Table(MapTable):
    def __init__(self, capacity: int, dtype: str, shape: tuple[int, ...]) -> None:
        self.map = tensorhash.HashMap(capacity, dtype, shape, "int64", (1,))
