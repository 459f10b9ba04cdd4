"""A table that grows batch by batch, beside one that is reserved."""

from __future__ import annotations

from functools import partial
from typing import Any

from harness import keys
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import Clock, Round, in_turn, samples
from harness.report import beside

TITLE = "Growth"
ABOUT = """
Random int64 keys with an int64 value, inserted in batches of 10^5. `from zero` starts with `capacity = 0`. `reserved`
starts with the final capacity and includes the construction; `ready` does not. Each can reuse the memory that earlier
rounds have freed.
"""
BATCH = 100_000
ROUNDS = 13  # the first few take fresh memory and leave blocks of every size behind
OPEN3D_AT_MOST = 1_000_000


def cases(scale: Scale) -> list[Case]:
    every = scale.pick((1_000_000, 10_000_000), (1_000_000,))
    return [
        Case(f"growth/{rows_text(rows)}", partial(measure, rows=rows))
        for rows in scale.rows(*every)
    ]


def life(peer: Any, rows: int) -> Round:
    # Open3D does not accept a capacity of zero.
    least = 0 if peer.NAME == "tensorhash" else 1
    starts = range(0, rows, BATCH)
    numbers = keys.INT64.random(rows, seed=1)
    batches = [peer.batch(numbers[start : start + BATCH]) for start in starts]

    def one_round(clock: Clock) -> None:
        with clock("from zero"):
            table = peer.Table(least, keys.INT64)
            for batch in batches:
                table.insert(batch, batch)
        del table
        with clock("reserved"):
            table = peer.Table(rows, keys.INT64)
            for batch in batches:
                table.insert(batch, batch)
        del table
        table = peer.Table(rows, keys.INT64)
        with clock("ready"):
            for batch in batches:
                table.insert(batch, batch)

    return one_round


def measure(scale: Scale, rows: int) -> list[Sample]:
    from peers import gather, open3d_cpu, ours

    peers = [ours, open3d_cpu] if rows <= OPEN3D_AT_MOST else [ours]
    rounds = {peer.NAME: life(peer, rows) for peer in peers}
    inserted = keys.INT64.random(rows, seed=1)
    limit = dict.fromkeys(("from zero", "reserved", "ready"), inserted)
    rounds[gather.NAME] = gather.round_of(keys.INT64, limit)
    count = max(ROUNDS if scale.full else 1, scale.rounds(rows))
    return samples(in_turn(rounds, scale, count), rows=rows)


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
