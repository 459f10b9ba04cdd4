"""Memory of a table that grows from zero, and the longest wait for one of its batches."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from harness import keys
from harness.case import Case, Sample, Scale, rows_text
from harness.keys import KeyKind
from harness.report import OURS, markdown

TITLE = "Memory after growth"
ABOUT = """
Random keys with an int64 value, inserted in batches of 10^5 into a table of capacity 0. The bytes per entry, key and
value included, are `memory_usage()["total"] / size()` after each batch, from a tenth of the rows on. The longest batch
includes fresh memory.
"""
BATCH = 100_000
INT32 = KeyKind("int32", "int32", (1,))
KINDS = (INT32, keys.INT64, keys.INT32X3, keys.BYTES64)


def cases(scale: Scale) -> list[Case]:
    return [
        Case(f"memory/{kind.name}/{rows_text(rows)}", partial(measure, kind=kind, rows=rows))
        for kind in KINDS
        for rows in scale.rows(10_000_000)
    ]


def distinct_keys(kind: KeyKind, numbers: np.ndarray) -> np.ndarray:
    """An odd multiple of each number in the first bytes of a key: distinct, also in four bytes."""
    rows, width = len(numbers), min(kind.bytes, 8)
    spread = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    made = np.zeros((rows, kind.bytes), np.uint8)
    made[:, :width] = spread.view(np.uint8).reshape(rows, 8)[:, :width]
    return made.view(kind.dtype).reshape(rows, *kind.shape)


def measure(scale: Scale, kind: KeyKind, rows: int) -> list[Sample]:
    from peers import ours

    table = ours.Table(0, kind)
    step = min(BATCH, max(rows // 10, 1))
    values = np.zeros((step, 1), np.int64)
    held: list[float] = []
    longest = 0.0
    for begin in range(0, rows, step):
        batch = distinct_keys(kind, np.arange(begin, begin + step))
        start = time.perf_counter()
        table.insert(batch, values)
        longest = max(longest, time.perf_counter() - start)
        if table.size() >= rows // 10:
            held.append(table.map.memory_usage()["total"] / table.size())
    table.map.shrink_to_fit()
    numbers = {
        "worst": max(held),
        "best": min(held),
        "shrunk": table.map.memory_usage()["total"] / table.size(),
        "longest": longest,
    }
    return [Sample(OURS, {"key": kind.name, "rows": rows}, numbers=numbers)]


def tables(measured: list[Sample]) -> list[str]:
    lines = [
        [s.labels["key"], rows_text(s.labels["rows"])]
        + [f"{s.numbers[name]:.1f}" for name in ("worst", "best", "shrunk")]
        + [f"{s.numbers['longest'] * 1e3:.0f}"]
        for s in measured
    ]
    head = ["key", "rows", "most bytes", "fewest bytes", "after shrink_to_fit", "longest batch, ms"]
    return markdown(head, lines)
