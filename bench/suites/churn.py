"""A table of constant size: old keys leave, new keys come."""

from __future__ import annotations

from functools import partial
from typing import Any

from harness import keys
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import Clock, Round, in_turn, samples
from harness.report import beside

TITLE = "Churn"
ABOUT = """
A full table of random int64 keys. Each step erases the oldest tenth and inserts as many new keys, until every key has
been replaced twice. Times are medians of the steps. The capacity must not grow.
"""
STEPS = 20


def cases(scale: Scale) -> list[Case]:
    return [
        Case(f"churn/{rows_text(rows)}", partial(measure, rows=rows))
        for rows in scale.rows(*scale.pick((100_000, 1_000_000), (100_000,)))
    ]


def life(peer: Any, rows: int) -> Round:
    step = rows // 10
    numbers = keys.INT64.random(rows + STEPS * step, seed=1)
    filling = peer.batch(numbers[:rows])
    batches = [peer.batch(numbers[at : at + step]) for at in range(0, len(numbers), step)]

    def one_round(clock: Clock) -> None:
        table = peer.Table(rows, keys.INT64)
        table.insert(filling, filling)
        capacity = table.map.capacity()
        for old, new in zip(batches, batches[10:], strict=False):
            with clock("erase a tenth"):
                table.erase(old)
            with clock("insert a tenth"):
                table.insert(new, new)
        if table.size() != rows or (peer.NAME == "tensorhash" and table.map.capacity() != capacity):
            raise AssertionError(
                f"{peer.NAME}: expected {rows} keys and capacity {capacity}, "
                f"got {table.size()} and {table.map.capacity()}"
            )

    return one_round


def measure(scale: Scale, rows: int) -> list[Sample]:
    from peers import gather, open3d_cpu, ours

    rounds = {peer.NAME: life(peer, rows) for peer in (ours, open3d_cpu)}
    step = keys.INT64.random(rows // 10, seed=1)
    limit = {"erase a tenth": step, "insert a tenth": step}
    rounds[gather.NAME] = gather.round_of(keys.INT64, limit, table_rows=rows)
    times = in_turn(rounds, scale, scale.rounds(rows))
    return samples(times, **{"table rows": rows_text(rows), "rows": rows // 10})


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
