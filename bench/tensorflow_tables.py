"""Insert and lookup beside TensorFlow's own tables, in turn in one process; runs in .venv-tensorflow."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from report import Report, machine

import tensorhash.tensorflow as thtf

DIMS = (1, 16, 64)
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


def measure(dim: int, rows: int, rounds: int) -> dict[str, dict[str, float]]:
    """Median seconds of each operation of each table; tables take turns, so that a noisy moment meets them all."""
    rng = np.random.default_rng(dim)
    keys = tf.constant(rng.integers(0, 2**62, rows))
    values = tf.constant(rng.random((rows, dim) if dim > 1 else rows, np.float32))
    shuffled = tf.random.shuffle(keys)
    times: dict[str, dict[str, list[float]]] = {}
    # A round more, which does not count: whoever comes first pays for memory that the machine never touched.
    for _ in range(rounds + 1):
        for name, make in makers(dim).items():
            table = make()
            mine = times.setdefault(name, {"insert": [], "insert again": [], "lookup": []})
            mine["insert"].append(seconds(lambda t=table: t.insert(keys, values)))
            mine["insert again"].append(seconds(lambda t=table: t.insert(shuffled, values)))
            mine["lookup"].append(seconds(lambda t=table: t.lookup(shuffled)))
            del table
    return {
        name: {what: float(np.median(all_[1:])) for what, all_ in mine.items()}
        for name, mine in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="keys")
    parser.add_argument("--rounds", type=int, default=5, help="calls of each contender")
    parser.add_argument(
        "--dims", type=int, nargs="+", default=DIMS, choices=DIMS, help="floats a value"
    )
    parser.add_argument("--write", action="store_true", help="write bench/results.md too")
    options = parser.parse_args()

    report = Report("tensorflow")
    report.add(
        "## TensorFlow",
        "",
        f"{machine()}. TensorFlow {tf.__version__}, {options.rows:.0e} random int64 keys, float32 values, eager calls, "
        f"median of {options.rounds} rounds taken in turn, milliseconds. `insert` starts with an empty table that "
        "nobody told the size, `insert again` replaces every value.",
        "",
        "| dim | operation | tensorhash | MutableHashTable | DenseHashTable | times the better | goal |",
        "|--:|---|--:|--:|--:|--:|--:|",
    )
    for dim in options.dims:
        result = measure(dim, options.rows, options.rounds)
        for what in result["tensorhash"]:
            ours, *theirs = (result[name][what] for name in makers(dim))
            cells = " | ".join(f"{1e3 * t:.1f}" for t in (ours, *theirs))
            report.add(f"| {dim} | {what} | {cells} | {min(theirs) / ours:.1f}x | {GOALS[dim]}x |")
    if options.write:
        report.write()


if __name__ == "__main__":
    main()
