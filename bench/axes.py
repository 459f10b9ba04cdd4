"""The axes of the benchmark: which keys, how many rows, which operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROWS = (100_000, 1_000_000, 10_000_000)

# Rounds per number of rows: enough for a median, few enough that ten million rows of a slow peer end.
ROUNDS = {100_000: 9, 1_000_000: 5, 10_000_000: 3}

OPERATIONS = {
    "insert": "into a ready table",
    "construct + insert": "the table is made and filled",
    "find (hit)": "every key is there",
    "find (miss)": "no key is there",
    "active_buf_indices": "of a full table",
    "reserve": "to twice the capacity, full",
    "erase": "every key",
}

# What the first release promises, against Open3D at 10^6 and 10^7 rows.
GOALS = {"insert": 10, "find (hit)": 5, "find (miss)": 5, "active_buf_indices": 20}


@dataclass(frozen=True)
class KeyKind:
    """A dtype and an element shape, and random keys of it."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    def random(self, rows: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        info = np.iinfo(self.dtype)
        return rng.integers(
            info.min, info.max, (rows, *self.shape), dtype=self.dtype, endpoint=True
        )


KEYS = (KeyKind("int64 x 1", "int64", (1,)), KeyKind("int32 x 3", "int32", (3,)))
