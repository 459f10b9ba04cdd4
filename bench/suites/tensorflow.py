"""Insert and lookup beside TensorFlow's own tables, in TensorFlow's environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness import process
from harness.case import Case, Sample, Scale
from harness.clock import Clock, Round, in_turn, samples
from harness.keys import INT64
from harness.report import OURS, beside
from harness.store import ROOT

TITLE = "TensorFlow's tables"
ABOUT = """
Random int64 keys, float32 values, eager calls. `insert` starts with an empty table without a reserved size. `insert
again` replaces every value. The gather limit covers the keys only, not the values.
"""
PYTHON = process.TENSORFLOW
ROWS = 1_000_000
DIMS = (1, 16, 64)


def cases(scale: Scale) -> list[Case]:
    dims = scale.pick(DIMS, (16, 64))
    return [Case(f"tensorflow/dim {dim}", partial(measure, dim=dim)) for dim in dims]


def makers(dim: int) -> dict[str, Callable[[], Any]]:
    # Use the same cache of compiled ops as the tests.
    os.environ.setdefault("TENSORHASH_CACHE", str(ROOT / "build" / "tensorflow-cache"))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    import tensorhash.tensorflow as thtf

    theirs = tf.lookup.experimental
    default = tf.zeros(()) if dim == 1 else tf.zeros(dim)
    element = (tf.int64, tf.float32, default)
    anonymous = {"experimental_is_anonymous": True}
    return {
        OURS: lambda: thtf.HashTable(*element),
        "MutableHashTable": lambda: theirs.MutableHashTable(*element, **anonymous),
        "DenseHashTable": lambda: theirs.DenseHashTable(*element, -1, -2, **anonymous),
    }


def measure(scale: Scale, dim: int) -> list[Sample]:
    contenders = makers(dim)
    import tensorflow as tf

    from peers import gather

    (rows,) = scale.rows(ROWS)
    rng = np.random.default_rng(dim)
    keys = tf.constant(rng.integers(0, 2**62, rows))
    values = tf.constant(rng.random((rows, dim) if dim > 1 else rows, np.float32))
    shuffled = tf.random.shuffle(keys)

    def life(make: Callable[[], Any]) -> Round:
        def one_round(clock: Clock) -> None:
            table = make()
            with clock("insert"):
                table.insert(keys, values)
            with clock("insert again"):
                table.insert(shuffled, values)
            with clock("lookup"):
                table.lookup(shuffled)

        return one_round

    rounds = {contender: life(make) for contender, make in contenders.items()}
    limit = {"insert": keys, "insert again": shuffled, "lookup": shuffled}
    rounds[gather.NAME] = gather.round_of(INT64, {op: k.numpy() for op, k in limit.items()})
    return samples(in_turn(rounds, scale, scale.rounds(rows)), dim=dim, rows=rows)


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
