"""Wider values: insert and get of 4, 64 and 256 bytes per key."""

from __future__ import annotations

from functools import partial

import numpy as np

from harness import keys
from harness.case import Case, Sample, Scale
from harness.clock import Clock, Round, in_turn, samples
from harness.report import beside

TITLE = "Wider values"
ABOUT = """
Random int64 keys with float32 values, in tables that exist already. `get` returns the values of a shuffled batch;
with Open3D that is `find` and an index into `value_tensor()`. The gather limit covers the keys only, not the values.
"""
ROWS = 1_000_000
WIDTHS = (4, 64, 256)


def cases(scale: Scale) -> list[Case]:
    return [Case(f"values/{width} bytes", partial(measure, width=width)) for width in WIDTHS]


def measure(scale: Scale, width: int) -> list[Sample]:
    from peers import gather, open3d_cpu, ours

    (rows,) = scale.rows(ROWS)
    there = keys.INT64.random(rows, seed=1)
    values = np.random.default_rng(2).random((rows, width // 4), np.float32)
    order = np.random.default_rng(3).permutation(rows)

    def life(peer) -> Round:
        batch, column, asked = map(peer.batch, (there, values, there[order]))

        def one_round(clock: Clock) -> None:
            table = peer.Table(rows, keys.INT64, ("float32", (width // 4,)))
            with clock("insert"):
                table.insert(batch, column)
            with clock("get"):
                got = table.get(asked)
            row = got[7] if peer is ours else got[7].numpy()
            if not np.array_equal(row, values[order[7]]):
                raise AssertionError(f"{peer.NAME} gave a wrong value of {width} bytes")

        return one_round

    rounds = {peer.NAME: life(peer) for peer in (ours, open3d_cpu)}
    rounds[gather.NAME] = gather.round_of(keys.INT64, {"insert": there, "get": there[order]})
    times = in_turn(rounds, scale, scale.rounds(rows))
    return samples(times, **{"value bytes": width, "rows": rows})


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
