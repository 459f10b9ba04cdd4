"""The gain of more threads, and its cost: the C++ program on one processor and on all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from harness import keys, machine
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import median
from harness.keys import KeyKind
from harness.report import ALL_THREADS, ONE_THREAD, markdown, milliseconds, number
from suites import cpp

TITLE = "Threads"
ABOUT = """
The C++ interface again, in three ways that take turns: one thread; all threads on one processor; all threads on all
processors. With several threads, an insert must claim its slot with a compare-and-swap, as ours and the scatter limit
do in the second and third column. One thread alone uses a plain store. `gain` is the speed-up of all threads over one
thread. `gain of the same code` is their speed-up over all threads on one processor.
"""
ONE, SHARING, ALL = ONE_THREAD, "all threads on one processor", ALL_THREADS
OPERATIONS = ("insert", "find_hit")
TURNS = 2  # each in its own process, because speed differs from process to process


def cases(scale: Scale) -> list[Case]:
    counts = scale.rows(*scale.pick((1_000_000, 10_000_000), (1_000_000,)))
    return [
        Case(f"threads/{kind.name}/{rows_text(rows)}", partial(measure, kind=kind, rows=rows))
        for kind in scale.pick((keys.INT64, keys.INT32X3), (keys.INT64,))
        for rows in counts
    ]


@contextmanager
def one_processor() -> Iterator[None]:
    """Restricts children to the first of our processors."""
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(ours)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, ours)


def measure(scale: Scale, kind: KeyKind, rows: int) -> list[Sample]:
    threads = machine.threads()  # before the restriction to one processor
    if threads == 1:
        return []  # nothing to gain
    ways = {ONE: (1, one_processor), SHARING: (threads, one_processor), ALL: (threads, nullcontext)}
    rounds = scale.rounds(rows)
    measured: dict[tuple[str, str, str], Sample] = {}
    begun = time.perf_counter()
    # More turns if they are short, at the full scale.
    for turn in range(4 * TURNS if scale.full and rows <= 1_000_000 else TURNS):
        if turn > 0 and time.perf_counter() - begun > scale.budget:
            break
        for way, (count, place) in ways.items():
            with place():
                lines = cpp.run(kind, rows, count, OPERATIONS, rounds)
            for sample in cpp.read(kind, lines):
                labels = {**sample.labels, "threads": way}
                known = Sample(sample.contender, labels)
                at = (sample.contender, sample.labels["operation"], way)
                measured.setdefault(at, known).seconds.extend(sample.seconds)
    return list(measured.values())


def gains(row: dict[str, Sample]) -> tuple[float, float]:
    """The speed-up over one thread, and over the same code on one processor."""
    one, sharing, all_ = (median(row[way].seconds) for way in (ONE, SHARING, ALL))
    return one / all_, sharing / all_


def tables(measured: list[Sample]) -> list[str]:
    rows: dict[tuple[Any, ...], dict[str, Sample]] = {}
    for sample in measured:
        label = (sample.labels["key"], sample.labels["rows"], sample.labels["operation"])
        rows.setdefault((*label, sample.contender), {})[sample.labels["threads"]] = sample
    ways = (ONE, SHARING, ALL)
    lines = []
    for (key, count, operation, contender), row in sorted(
        rows.items(), key=lambda item: item[0][:3]
    ):
        cells = [key, rows_text(count), operation, contender]
        cells += [milliseconds(row[way]) for way in ways]
        lines.append([*cells, *(f"{number(gain)}x" for gain in gains(row))])
    header = ["key", "rows", "operation", "contender", *(f"{way}, ms" for way in ways)]
    return markdown([*header, "gain", "gain of the same code"], lines, texts=4)
