"""A table of constant size: old keys leave, new keys come."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from harness import keys, machine, process
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import Clock, Round, in_turn, samples
from harness.report import OURS, beside, markdown, number
from harness.store import BUILD

TITLE = "Churn"
ABOUT = """
A full table of random int64 keys. Each step erases the oldest tenth and inserts as many new keys, until every key has
been replaced twice. Times are medians of the steps. The capacity must not grow. Then 1,000 rounds of an erased and an
inserted tenth through the C++ interface, in a table that grew from zero: medians of the first and of the last hundred
rounds, the capacity, and the bytes per entry, key and value included.
"""
STEPS = 20
PROGRAM = BUILD / "tensorhash-growth"
MANY = "1,000 rounds"


def cases(scale: Scale) -> list[Case]:
    made = [
        Case(f"churn/{rows_text(rows)}", partial(measure, rows=rows))
        for rows in scale.rows(*scale.pick((100_000, 1_000_000), (100_000,)))
    ]
    (rows,) = scale.rows(1_000_000)
    return [*made, Case(f"churn/{rows_text(rows)}/{MANY}", partial(many_rounds, rows=rows))]


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


def many_rounds(scale: Scale, rows: int) -> list[Sample]:
    if not PROGRAM.exists():
        raise FileNotFoundError(f"{PROGRAM} does not exist: tools/build-bench makes it")
    rounds = 1_000 if scale.full else 100
    command = [str(PROGRAM), "--measure", "churn", "--rows", str(rows), "--rounds", str(rounds)]
    line = json.loads(process.run([*command, "--threads", str(machine.threads())]))
    numbers = {
        "first seconds": line["first_seconds"],
        "last seconds": line["last_seconds"],
        "first capacity": line["capacity"],
        "last capacity": line["capacity_after"],
        "bytes": line["bytes"],
        "most bytes": line["most_bytes"],
    }
    return [Sample(OURS, {"operation": MANY, "rows": rows}, numbers=numbers)]


def tables(measured: list[Sample]) -> list[str]:
    lines = []
    if timed := [sample for sample in measured if sample.seconds]:
        lines += [*beside(timed), ""]
    if counted := [sample for sample in measured if sample.numbers]:
        lines += rounds_table(counted)
    return lines


def rounds_table(measured: list[Sample]) -> list[str]:
    lines = []
    for sample in measured:
        have = sample.numbers
        cells = [number(have[f"{part} seconds"] * 1e3) for part in ("first", "last")]
        cells += [f"{have[f'{part} capacity']:.0f}" for part in ("first", "last")]
        cells += [f"{have[name]:.1f}" for name in ("bytes", "most bytes")]
        lines.append([MANY, rows_text(sample.labels["rows"]), *cells])
    head = [
        "churn",
        "keys",
        "first 100, ms",
        "last 100, ms",
        "capacity",
        "after",
        "bytes",
        "most bytes",
    ]
    return markdown(head, lines)
