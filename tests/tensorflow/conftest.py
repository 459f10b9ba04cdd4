"""Two threads for TensorFlow, and a dict as the oracle."""

from __future__ import annotations

import os
from pathlib import Path

# Tests start processes in other folders, which must find the same cache.
if cache := os.environ.get("TENSORHASH_CACHE"):
    os.environ["TENSORHASH_CACHE"] = str(Path(cache).resolve())

import numpy as np
import pytest
import tensorflow as tf

KEY_DTYPES = [
    tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64,
    tf.float32, tf.float64, tf.string,
]  # fmt: skip
VALUE_DTYPES = [
    tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64,
    tf.float16, tf.bfloat16, tf.float32, tf.float64,
]  # fmt: skip


class Oracle:
    """A table as a dict from a key's bytes to its value's bytes, filled row by row."""

    def __init__(self, key_shape: tuple[int, ...], default: np.ndarray) -> None:
        self.key_shape, self.default, self.items = key_shape, default, {}

    def rows(self, keys: np.ndarray) -> list[bytes]:
        count = int(np.prod(keys.shape[: keys.ndim - len(self.key_shape)], dtype=np.int64))
        if keys.dtype == object:
            return list(keys.reshape(count))
        width = int(np.prod(self.key_shape, dtype=np.int64))
        return [row.tobytes() for row in keys.reshape(count, width)]

    def insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        rows = self.rows(keys)
        for row, value in zip(rows, values.reshape(len(rows), self.default.size), strict=True):
            self.items[row] = value.copy()

    def remove(self, keys: np.ndarray) -> None:
        for row in self.rows(keys):
            self.items.pop(row, None)

    def lookup(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        batch = keys.shape[: keys.ndim - len(self.key_shape)]
        rows = self.rows(keys)
        values = [self.items.get(row, self.default.reshape(-1)) for row in rows]
        out = np.array(values, self.default.dtype).reshape(batch + self.default.shape)
        return out, np.array([row in self.items for row in rows], bool).reshape(batch)


def random_array(
    rng: np.random.Generator, dtype: tf.DType, shape: tuple[int, ...], span: int = 60
) -> np.ndarray:
    """Has few distinct elements, so that keys repeat."""
    numbers = rng.integers(0, span, shape)
    if dtype == tf.string:
        texts = [b"k%d" % n + b"\0x" * (n % 3) for n in np.ravel(numbers)]
        out = np.empty(len(texts), object)
        out[:] = texts
        return out.reshape(shape)
    if dtype == tf.bool:
        return numbers % 2 == 0
    return (numbers - (0 if dtype.is_unsigned else span // 2)).astype(dtype.as_numpy_dtype)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
