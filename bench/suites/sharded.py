"""A sharded table beside a single one, with the same keys and on the same cores."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from harness.case import Case, Sample, Scale, rows_text
from harness.clock import Clock, Round, in_turn, samples
from harness.keys import INT64
from harness.report import beside

TITLE = "Sharded tables beside a single one"
ABOUT = """
`ShardedHashMap` on CPU devices that share the cores; random int64 keys with 16 float32 per key. The ratios are
multiples of the single table's time: less is faster. The gather limit covers the keys only, not the values.
"""
ROWS, DIM = 1_000_000, 16
SINGLE = "1 table"


def cases(scale: Scale) -> list[Case]:
    return [Case(f"sharded/{rows_text(n)}", partial(measure, rows=n)) for n in scale.rows(ROWS)]


def table_of(shards: int, rows: int) -> Any:
    """A ShardedHashMap; a HashMap if `shards` is 0."""
    from tensorhash import HashMap, ShardedHashMap

    element = ("int64", (), "float32", (DIM,))
    if shards == 0:
        return HashMap(rows, *element)
    return ShardedHashMap(rows, *element, devices=[f"cpu:{i}" for i in range(shards)])


def life(shards: int, keys: np.ndarray, values: np.ndarray) -> Round:
    def one_round(clock: Clock) -> None:
        table = table_of(shards, len(keys))
        with clock("insert"):
            _, added = table.insert(keys, values)
        with clock("find"):
            _, found = table.find(keys)
        with clock("get"):
            got = table.get(keys)
        with clock("erase"):
            table.erase(keys)
        if not (added.all() and found.all() and np.array_equal(got, values) and not len(table)):
            raise AssertionError(f"{shards} shards gave a wrong answer")

    return one_round


def measure(scale: Scale, rows: int) -> list[Sample]:
    from peers import gather

    rng = np.random.default_rng(1)
    keys = rng.integers(-(2**62), 2**62, rows)
    values = rng.normal(size=(rows, DIM)).astype(np.float32)
    counts = {SINGLE: 0, "1 shard": 1, "2 shards": 2, "4 shards": 4}
    rounds = {name: life(shards, keys, values) for name, shards in counts.items()}
    rounds[gather.NAME] = gather.round_of(
        INT64, dict.fromkeys(("insert", "find", "get", "erase"), keys)
    )
    return samples(in_turn(rounds, scale, scale.rounds(rows)), rows=rows)


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured, ours=SINGLE)
