"""Insert and lookup beside TensorFlow's own tables, in turn in one process.

usage: .venv-tensorflow/bin/python bench/tensorflow_tables.py [ROWS]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

import tensorhash
import tensorhash.tensorflow as thtf

DIMS = (1, 16, 64)
ROUNDS = 5
GOALS = {1: 1.5, 16: 3.0, 64: 3.0}  # times the better of TensorFlow's two


def make_default(dim: int) -> tf.Tensor:
    return tf.zeros(()) if dim == 1 else tf.zeros(dim)


def makers(dim: int) -> dict[str, Callable[[], object]]:
    default = make_default(dim)
    return {
        "tensorhash": lambda: thtf.HashTable(tf.int64, tf.float32, default),
        "MutableHashTable": lambda: tf.lookup.experimental.MutableHashTable(
            tf.int64, tf.float32, default, experimental_is_anonymous=True
        ),
        "DenseHashTable": lambda: tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.float32, default, -1, -2, experimental_is_anonymous=True
        ),
    }


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(dim: int, rows: int) -> dict[str, dict[str, float]]:
    """Median seconds of each operation of each table; tables take turns, so that a noisy moment meets them all."""
    rng = np.random.default_rng(dim)
    keys = tf.constant(rng.integers(0, 2**62, rows))
    values = tf.constant(rng.random((rows, dim) if dim > 1 else rows, np.float32))
    shuffled = tf.random.shuffle(keys)
    times: dict[str, dict[str, list[float]]] = {}
    for _ in range(ROUNDS):
        for name, make in makers(dim).items():
            table = make()
            mine = times.setdefault(name, {"insert": [], "insert again": [], "lookup": []})
            mine["insert"].append(seconds(lambda t=table: t.insert(keys, values)))
            mine["insert again"].append(seconds(lambda t=table: t.insert(shuffled, values)))
            mine["lookup"].append(seconds(lambda t=table: t.lookup(shuffled)))
            del table
    return {
        name: {what: float(np.median(all_)) for what, all_ in mine.items()}
        for name, mine in times.items()
    }


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(
        f"TensorFlow {tf.__version__}, {rows} random int64 keys, float32 values, "
        f"{tensorhash.get_num_threads()} threads, median of {ROUNDS}, milliseconds\n"
    )
    print(
        "| dim | operation | tensorhash | MutableHashTable | DenseHashTable | times the better | goal |"
    )
    print("|--:|---|--:|--:|--:|--:|--:|")
    for dim in DIMS:
        result = measure(dim, rows)
        for what in result["tensorhash"]:
            ours, *theirs = (result[name][what] for name in makers(dim))
            cells = " | ".join(f"{1e3 * t:.1f}" for t in (ours, *theirs))
            print(f"| {dim} | {what} | {cells} | {min(theirs) / ours:.1f}x | {GOALS[dim]}x |")


if __name__ == "__main__":
    main()
