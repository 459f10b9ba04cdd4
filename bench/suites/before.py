"""Tables that grow, beside an older version of the library: the same C++ program linked with each."""

from __future__ import annotations

import json
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

from harness import machine, process
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import median
from harness.keys import HIT, INSERT, MISS
from harness.report import BEFORE, OURS, grouped, markdown, noise, number, ratio
from harness.store import BUILD
from peers import optional

TITLE = "Growing tables beside an older version"
ABOUT = """
`before` is commit c6021e5, the last one with a power of two of buckets ([decision
38](../docs/decisions/0038-any-number-of-buckets.md)). `tools/build-before` makes it. Keys with an int64 value, inserted
100,000 at a time, all threads. The finds ask 10^6 keys of a table at 16 sizes from 10^6 to 2 * 10^7 keys; the numbers
are means of these sizes. `insert` fills a table made for its keys, `from zero` one of capacity 0. Both versions take
turns, each turn in a process of its own; its first round, which takes fresh memory, does not count.
"""
PROGRAMS = {OURS: BUILD / "tensorhash-growth", BEFORE: BUILD.parent / "before/tensorhash-growth"}
KEYS = ("int64", "int32x3")
FROM_ZERO = "from zero"
# The rows of each measure. Finds take longest: they come last and get what the others leave.
MEASURES = {"ready": 5_000_000, "grow": 5_000_000, "find": 20_000_000}
ROUNDS, TURNS = 5, 5


def cases(scale: Scale) -> list[Case]:
    return [
        Case(
            f"before/{what}/{key}",
            partial(measure, what=what, key=key, rows=min(rows, 2 * scale.most_rows)),
        )
        for what, rows in MEASURES.items()
        for key in scale.pick(KEYS, KEYS[:1])
    ]


def programs() -> dict[str, Path]:
    """The versions that were built, ours first."""
    if not PROGRAMS[OURS].exists():
        raise FileNotFoundError(f"{PROGRAMS[OURS]} does not exist: tools/build-bench makes it")
    if not PROGRAMS[BEFORE].exists():
        optional.leave_out("before (tools/build-before makes it)")
    return {name: program for name, program in PROGRAMS.items() if program.exists()}


def one_turn(program: Path, what: str, key: str, rows: int) -> dict[str, float]:
    """Seconds per key by operation."""
    command = [str(program), "--measure", what, "--key", key, "--rows", str(rows)]
    command += ["--threads", str(machine.threads()), "--rounds", str(ROUNDS)]
    line = json.loads(process.run(command))
    if what == "find":
        means = {HIT: "hit_ns", MISS: "miss_ns"}
        return {operation: statistics.mean(line[name]) / 1e9 for operation, name in means.items()}
    operation = INSERT if what == "ready" else FROM_ZERO
    return {operation: median(line["seconds"][1:]) / rows}


def measure(scale: Scale, what: str, key: str, rows: int) -> list[Sample]:
    """Turns until the budget is used."""
    made: dict[tuple[str, str], Sample] = {}
    start = time.perf_counter()
    versions = programs()
    for _ in range(TURNS):
        for contender, program in versions.items():
            for operation, seconds in one_turn(program, what, key, rows).items():
                labels: dict[str, Any] = {"key": key, "rows": rows, "operation": operation}
                known = made.setdefault((contender, operation), Sample(contender, labels))
                known.seconds.append(seconds)
        if time.perf_counter() - start > scale.budget:
            break
    return list(made.values())


def tables(measured: list[Sample]) -> list[str]:
    lines = []
    for labels, row in grouped(measured):
        cells = [
            number(median(row[name].seconds) * 1e9) if name in row else "" for name in PROGRAMS
        ]
        times = f"{ratio(row[OURS], row[BEFORE]):.2f}x" if BEFORE in row else ""
        rows = (
            f"up to {rows_text(labels['rows'])}"
            if labels["operation"] in (HIT, MISS)
            else rows_text(labels["rows"])
        )
        lines.append([labels["key"], rows, labels["operation"], *cells, times, noise(row)])
    head = ["key", "rows", "operation", *(f"{name}, ns" for name in PROGRAMS)]
    return markdown([*head, "of the time before", "spread"], lines, texts=3)
