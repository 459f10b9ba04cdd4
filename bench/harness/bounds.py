"""The figures that bound a goal, from the same run: instructions per row, memory limits, messages, times.

A goal that is missed prints them. docs/performance.md says what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.case import Sample, rows_text
from harness.clock import median
from harness.goal_values import Measured
from harness.keys import HIT, INSERT
from harness.report import ALL_THREADS, GATHER, ONE_THREAD, OURS, SCATTER, number

Bound = Callable[[Measured], str]
# Valgrind knows no AVX-512, so it counts this level, also where the timed calls run a higher one.
COUNTED = "of x86-64-v3"
BOOST = "boost::unordered_flat_map"


def all_of(*bounds: Bound) -> Bound:
    """The texts that are not empty."""
    return lambda data: "; ".join(filter(None, (bound(data) for bound in bounds)))


def per_row(data: Measured, operation: str) -> float | None:
    """Instructions per row of a call of bench/cpp/instructions.cpp."""
    for sample in data.samples("instructions", operation=operation):
        return sample.numbers["per row"]
    return None


def instructions(*operations: str) -> Bound:
    def text(data: Measured) -> str:
        known = {operation: per_row(data, operation) for operation in operations}
        parts = [f"{operation} {number(n)}" for operation, n in known.items() if n]
        return f"instructions per row, {COUNTED}: {', '.join(parts)}" if parts else ""

    return text


def work(operation: str, suite: str, /, count: int = 0, **labels: Any) -> Bound:
    """Instructions per row, and the time that a thread has for them in the timed call.

    `count` are the rows of a call if its samples do not have them."""

    def text(data: Measured) -> str:
        counted, seconds = per_row(data, operation), data.seconds(suite, OURS, **labels)
        if not counted or not seconds:
            return ""
        rows = data.samples(suite, **labels)[0].labels.get("rows", count)
        taken = seconds * data.threads() * 1e9 / rows
        return f"{number(counted)} instructions per row, {COUNTED}; {number(taken)} ns per row and thread"

    return text


def pairs(kernel: str, rows: int) -> Bound:
    """The same for the pairs of a kernel map."""

    def text(data: Measured) -> str:
        parts = []
        for sample in data.samples("kernel_maps", part="spconv", kernel=kernel, rows=rows):
            if sample.contender == OURS and sample.seconds and "pairs" in sample.numbers:
                taken = median(sample.seconds) * 1e9 / sample.numbers["pairs"]
                parts.append(f"{number(taken)} ns per pair ({sample.labels['voxels']})")
        counted = per_row(data, f"kernel map {kernel}, per pair")
        parts += (
            [f"{number(counted)} instructions per pair, {COUNTED}"] if counted and parts else []
        )
        return ", ".join(parts)

    return text


def limit_of(peer: str, limit: str, operation: str, *rows: int) -> Bound:
    """What a call would reach that does no more than the limit: a peer's time as a multiple of it."""

    def text(data: Measured) -> str:
        where = {"key": "int64", "threads": 1, "operation": operation}
        known = {n: data.ratio("cpp", peer, limit, rows=n, **where) for n in rows}
        parts = [f"{rows_text(n)} {number(ratio)}x" for n, ratio in known.items() if ratio]
        return f"the {limit} limit itself would reach {', '.join(parts)}" if parts else ""

    return text


def best_of_limit(operation: str, key: str, *rows: int) -> Bound:
    """The same for the fastest C++ map."""
    limit = SCATTER if operation == INSERT else GATHER

    def text(data: Measured) -> str:
        parts = []
        for n in rows:
            where = {"key": key, "threads": 1, "operation": operation, "rows": n}
            best, ours = data.best("cpp", **where), data.ratio("cpp", limit, OURS, **where)
            parts += [f"{rows_text(n)} {number(best / ours)}x"] if best and ours else []
        return f"the {limit} limit itself would reach {', '.join(parts)}" if parts else ""

    return text


def scatter_of_gather(key: str, rows: int) -> Bound:
    """What an insert that decides nothing reaches of the gather limit."""

    def text(data: Measured) -> str:
        where = {"key": key, "rows": rows, "operation": INSERT, "threads": data.threads()}
        ratio = data.ratio("cpp", GATHER, SCATTER, **where)
        return f"the scatter limit is {ratio:.2f} of it" if ratio else ""

    return text


def scatters_gain(key: str) -> Bound:
    """The gain of threads of an insert that decides nothing, relative to the gather's."""

    def text(data: Measured) -> str:
        parts = []
        for rows in (1_000_000, 10_000_000):
            where = {"key": key, "rows": rows, "operation": INSERT}
            one = data.ratio("threads", GATHER, SCATTER, threads=ONE_THREAD, **where)
            every = data.ratio("threads", GATHER, SCATTER, threads=ALL_THREADS, **where)
            parts += [f"{rows_text(rows)} {every / one:.2f}"] if one and every else []
        return f"the scatter limit: {', '.join(parts)}" if parts else ""

    return text


def messages(operation: str) -> Bound:
    """The part of the messages, and a rank's time without any."""

    def text(data: Measured) -> str:
        one = data.seconds("ranks", "one process", operation=operation)
        for sample in data.samples("ranks", operation=operation):
            if one and {"messages", "alone"} <= sample.numbers.keys():
                part = sample.numbers["messages"] / median(sample.seconds)
                alone = sample.numbers["alone"] / one
                return f"messages are {part:.0%} of the time; a rank without any takes {alone:.2f}x"
        return ""

    return text


def network(data: Measured) -> str:
    """The constants of the ranks' network."""
    for sample in data.samples("ranks"):
        have = sample.numbers
        if {"latency", "message", "bandwidth"} <= have.keys():
            small = (
                f"{have['latency'] * 1e6:.0f} µs latency, {have['message'] * 1e6:.0f} µs a message"
            )
            return f"{small}, {have['bandwidth'] / 1e9:.1f} GB/s"
    return ""


def shards(data: Measured) -> str:
    parts = []
    for verb in ("insert", "find", "get", "erase"):
        two, one = (per_row(data, f"{verb}, {where}") for where in ("2 shards", "1 table"))
        parts += [f"{verb} {number(two)} and {number(one)}"] if two and one else []
    return f"instructions per row, 2 shards and 1 table: {', '.join(parts)}" if parts else ""


def dense(data: Measured) -> str:
    """The rate of the dense product that convolutions are compared with."""
    rates = [
        f"{s.labels['channels']}: {s.numbers['products'] / median(s.seconds) / 1e9:.0f}"
        for s in data.samples("convolution", part="matmul", operation="forward")
        if s.contender == "dense matmul" and s.seconds
    ]
    return f"10^9 products per second of the dense one, {', '.join(rates)}" if rates else ""


def even_share(data: Measured) -> str:
    """The slow-down if the system divided the processors evenly."""
    threads = data.threads()
    return f"an even share of the processors is {(threads + 1) / threads:.2f}x"


def bytes_held(data: Measured) -> str:
    """What the memory of the index buys: it is fuller than a table of the older version."""
    held = {s.labels["key"]: s.numbers for s in data.samples("memory")}
    parts = [
        f"{key} {held[key]['best']:.0f} to {held[key]['worst']:.0f}"
        for key in ("int64", "int32x3")
        if key in held
    ]
    return f"bytes per entry: {', '.join(parts)}" if parts else ""


def expansion(data: Measured) -> str:
    """Megabytes of each output."""
    outputs = [
        f"{s.labels['operation']}, {s.labels['voxels']} {s.numbers['output'] / 1e6:.0f}"
        for s in data.samples("expansion")
    ]
    return f"MB of output: {'; '.join(outputs)}" if outputs else ""


def time_of(suite: str, /, **labels: Any) -> Bound:
    """The times themselves, for calls that are bound by what is around the work."""

    def text(data: Measured) -> str:
        found = [sample for sample in data.samples(suite, **labels) if sample.seconds]
        parts = [f"{sample.contender} {_time(sample)}" for sample in found]
        return ", ".join(parts)

    return text


def _time(sample: Sample) -> str:
    seconds = median(sample.seconds)
    return f"{number(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{number(seconds * 1e6)} µs"


def small(operation: str) -> Bound:
    """Of batches in cache."""
    limit = SCATTER if operation == INSERT else GATHER
    sizes = [f"{operation}, 10^{n} keys" for n in (3, 4)]
    return all_of(limit_of(BOOST, limit, operation, 1_000, 10_000), instructions(*sizes))


def of_limit(operation: str, key: str, rows: int) -> Bound:
    """Of a goal that is a part of the gather limit."""

    def text(data: Measured) -> str:
        where = {"key": key, "rows": rows, "operation": operation, "threads": data.threads()}
        return work(f"{operation}, {key}", "cpp", **where)(data)

    return all_of(text, scatter_of_gather(key, rows)) if operation == INSERT else text


REPEATED = instructions(
    *(f"{how}, {key}" for key in ("int64", "int32x3") for how in ("insert, each key 8 times", INSERT))
)  # fmt: skip
WIDE = instructions(*(f"{operation}, bytes64" for operation in (HIT, INSERT)))
