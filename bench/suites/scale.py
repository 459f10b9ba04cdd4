"""From 10^5 to 2 * 10^8 keys: nanoseconds and bytes per key of a table that grows from zero."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import numpy as np

from harness import keys, process
from harness.case import Case, Sample, Scale, rows_text
from harness.report import OURS, markdown, number
from suites.memory import distinct_keys

TITLE = "From 10^5 to 2 * 10^8 keys"
ABOUT = """
Distinct keys with an int64 value, inserted into a table of capacity 0 in 20 batches, in a process of its own. `insert`
is the time of all batches, growth and fresh memory included. `find` looks up keys of all batches in random order, at
most 10^7. The bytes are `memory_usage()["total"]` per entry, key and value included, after each batch from a tenth of
the keys on. The longest batch is what one call can take.
"""
ROWS = (100_000, 1_000_000, 10_000_000, 100_000_000, 200_000_000)
QUICK = (100_000, 1_000_000)
KINDS = {kind.name: kind for kind in (keys.INT64, keys.INT32X3)}
BATCHES = 20
FOUND_AT_MOST = 10_000_000
BYTES_AT_MOST = 80  # per key while the table grows: two indices, buffers and a batch


def cases(scale: Scale) -> list[Case]:
    rows = {min(n, 20 * scale.most_rows) for n in scale.pick(ROWS, QUICK)}
    return [
        Case(f"scale/{name}/{rows_text(n)}", partial(measure, name=name, rows=n))
        for n in sorted(rows)
        for name in KINDS
    ]


def available() -> int:
    """Bytes of memory that are free or can be freed."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo: expected a line MemAvailable")


def grown(name: str, rows: int) -> dict[str, float]:
    """The numbers of one table; runs in its own process."""
    from peers import ours

    kind, step = KINDS[name], -(-rows // BATCHES)
    table = ours.Table(0, kind)
    values = np.zeros((step, 1), np.int64)
    taken: list[float] = []
    held: list[float] = []
    for begin in range(0, rows, step):
        batch = distinct_keys(kind, np.arange(begin, min(begin + step, rows)))
        start = time.perf_counter()
        table.insert(batch, values[: len(batch)])
        taken.append(time.perf_counter() - start)
        if table.size() >= rows // 10:
            held.append(table.map.memory_usage()["total"] / table.size())
    del batch, values
    asked = distinct_keys(
        kind, np.random.default_rng(1).integers(0, rows, min(rows, FOUND_AT_MOST))
    )
    start = time.perf_counter()
    found = table.find(asked)
    seconds = time.perf_counter() - start
    if not found.all() or table.size() != rows:
        raise AssertionError(f"expected {rows} keys, got {table.size()}, found {found.sum()}")
    return {
        "insert": sum(taken) / rows * 1e9,
        "find": seconds / len(asked) * 1e9,
        "most": max(held),
        "fewest": min(held),
        "longest": max(taken),
    }


def measure(scale: Scale, name: str, rows: int) -> list[Sample]:
    labels = {"key": name, "rows": rows}
    if rows * BYTES_AT_MOST > available():
        return [Sample(OURS, labels, numbers={"needed": rows * BYTES_AT_MOST / 2**30})]
    return [Sample(OURS, labels, numbers=process.call("suites.scale:grown", name, rows))]


def tables(measured: list[Sample]) -> list[str]:
    names = ("insert", "find", "most", "fewest")
    lines = []
    for sample in measured:
        have = sample.numbers
        cells = [number(have[name]) if name in have else "" for name in names]
        longest = f"{have['longest'] * 1e3:.0f}" if "longest" in have else "memory was short"
        lines.append([sample.labels["key"], rows_text(sample.labels["rows"]), *cells, longest])
    head = ["key", "rows", "insert, ns", "find, ns", "most bytes", "fewest bytes"]
    return markdown([*head, "longest batch, ms"], lines)
