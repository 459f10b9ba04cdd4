"""Keys that are not random: duplicates, skew and structure, each beside random keys."""

from __future__ import annotations

from functools import partial

import numpy as np

from harness import keys
from harness.case import Case, Sample, Scale
from harness.clock import Clock, Round, in_turn, median, samples
from harness.keys import HIT, INSERT, KeyKind
from harness.report import GATHER, OURS, beside, grouped, number

TITLE = "Keys that are not random"
ABOUT = """
Insert into a table that exists already, then find all keys in another order; `capacity = rows`. All patterns take
turns in one process. `shifted` keys are i << 32; `packed voxels` are the voxels of a full cube in raster order. These
two and the sequential keys may take at most 3 times as long as random keys. Repeated keys cost more to insert,
because their rows must find out which one was first.
"""
ROWS = 1_000_000


def cases(scale: Scale) -> list[Case]:
    kinds = scale.pick((keys.INT64, keys.INT32X3), (keys.INT64,))
    return [Case(f"patterns/{kind.name}", partial(measure, kind=kind)) for kind in kinds]


def batches(kind: KeyKind, pattern: str, rows: int) -> dict[str, np.ndarray]:
    """The keys to insert, and the keys to find."""
    batch = keys.PATTERNS[pattern](rows, kind)
    return {INSERT: batch, HIT: np.random.default_rng(4).permutation(batch)}


def life(kind: KeyKind, pattern: str, rows: int) -> Round:
    from peers import ours

    batch, asked = batches(kind, pattern, rows).values()
    values = keys.INT64.random(rows, seed=9)

    def one_round(clock: Clock) -> None:
        table = ours.Table(rows, kind)
        with clock(INSERT):
            table.insert(batch, values)
        table.find(asked)
        with clock(HIT):
            found = table.find(asked)
        if not found.all():
            raise AssertionError(f"{pattern}: not every key was found")

    return one_round


def limit(kind: KeyKind, pattern: str, rows: int) -> Round:
    from peers import gather

    return gather.round_of(kind, batches(kind, pattern, rows))


def measure(scale: Scale, kind: KeyKind) -> list[Sample]:
    (rows,) = scale.rows(ROWS)
    rounds = {
        (contender, pattern): make(kind, pattern, rows)
        for pattern in keys.PATTERNS
        for contender, make in ((OURS, life), (GATHER, limit))
    }
    times = in_turn(rounds, scale, scale.rounds(rows))
    return [
        sample
        for (contender, pattern), taken in times.items()
        for sample in samples({contender: taken}, key=kind.name, rows=rows, keys=pattern)
    ]


def tables(measured: list[Sample]) -> list[str]:
    random = {
        (labels["key"], labels["operation"]): row[OURS]
        for labels, row in grouped(measured)
        if labels["keys"] == "random"
    }

    def times_random(labels: dict, row: dict[str, Sample]) -> str:
        base = random[labels["key"], labels["operation"]]
        return f"{number(median(row[OURS].seconds) / median(base.seconds))}x"

    return beside(measured, more={"time, of random": times_random})
