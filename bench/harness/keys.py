"""The keys to measure with: kinds of keys, and patterns of batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Operations that the gather limit and the goals refer to by name.
HIT, MISS, INSERT, CONSTRUCT = "find (hit)", "find (miss)", "insert", "construct + insert"


@dataclass(frozen=True)
class KeyKind:
    """A dtype and an element shape; makes random keys of them."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * int(np.prod(self.shape))

    def lines(self, operation: str) -> int:
        """Cache lines to read per key. A wide key that is found is also read from the key buffer."""
        return 2 if self.bytes > 8 and operation in (HIT, "erase") else 1

    def random(self, rows: int, seed: int) -> np.ndarray:
        width = self.bytes * rows
        drawn = np.random.default_rng(seed).integers(0, 2**64, -(-width // 8), dtype=np.uint64)
        return drawn.view(np.uint8)[:width].view(self.dtype).reshape(rows, *self.shape)


INT64 = KeyKind("int64", "int64", (1,))
INT32X3 = KeyKind("int32x3", "int32", (3,))
INT32X4 = KeyKind("int32x4", "int32", (4,))
BYTES16 = KeyKind("bytes16", "uint8", (16,))
BYTES64 = KeyKind("bytes64", "uint8", (64,))
KINDS = (INT64, INT32X3, INT32X4, BYTES16, BYTES64)


def _random(rows: int, kind: KeyKind) -> np.ndarray:
    return kind.random(rows, seed=1)


def _repeated(factor: int) -> Callable[[int, KeyKind], np.ndarray]:
    def make(rows: int, kind: KeyKind) -> np.ndarray:
        few = kind.random(-(-rows // factor), seed=1)
        return np.random.default_rng(2).permutation(np.repeat(few, factor, axis=0)[:rows])

    return make


def _zipf(rows: int, kind: KeyKind) -> np.ndarray:
    ranks = np.random.default_rng(3).zipf(1.2, rows) % rows
    return kind.random(rows, seed=1)[ranks]


def _of_numbers(numbers: np.ndarray, kind: KeyKind) -> np.ndarray:
    """The numbers as int64 keys. A wider key has the number in its first element and zeros elsewhere."""
    keys = np.zeros((len(numbers), *kind.shape), kind.dtype)
    keys[:, 0] = numbers
    return keys


def _sequential(rows: int, kind: KeyKind) -> np.ndarray:
    return _of_numbers(np.arange(rows), kind)


def _shifted(rows: int, kind: KeyKind) -> np.ndarray:
    """i << 32: the low half of every key is zero."""
    numbers = np.arange(rows)
    if kind.shape == (1,):
        return (numbers << 32).reshape(-1, 1)
    keys = _of_numbers(numbers & 0xFFFF, kind)
    keys[:, 1] = numbers >> 16
    return keys << 16


def _packed(rows: int, kind: KeyKind) -> np.ndarray:
    """The voxels of a full cube: 16 bits per axis in one int64, otherwise one element per axis."""
    side = int(np.ceil(rows ** (1 / 3)))
    axes = np.stack(np.unravel_index(np.arange(rows), (side + 1,) * 3), axis=1)
    if kind.shape == (1,):
        return (axes @ np.array([1 << 32, 1 << 16, 1])).reshape(-1, 1)
    keys = np.zeros((rows, *kind.shape), kind.dtype)
    keys[:, :3] = axes
    return keys


# The patterns of a batch: (rows, kind) -> keys.
PATTERNS: dict[str, Callable[[int, KeyKind], np.ndarray]] = {
    "random": _random,
    "each twice": _repeated(2),
    "each 8 times": _repeated(8),
    "each 32 times": _repeated(32),
    "Zipf": _zipf,
    "sequential": _sequential,
    "shifted": _shifted,
    "packed voxels": _packed,
}
STRUCTURED = ("sequential", "shifted", "packed voxels")
