"""Makes Markdown tables of samples, and writes the sections of bench/results.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.case import Sample, rows_text
from harness.clock import median, spread
from harness.store import SuiteData

RESULTS = Path(__file__).resolve().parents[1] / "results.md"
TITLE = """# Benchmark results

Made by `make bench`, from the samples in build/bench.

<picture>
  <source media="(prefers-color-scheme: dark)" srcset="pictures/goals-dark.svg">
  <img alt="measured values as multiples of their goals" src="pictures/goals-light.svg">
</picture>
"""
OURS, GATHER, SCATTER = "tensorhash", "gather", "scatter"
LIMITS = (GATHER, SCATTER)
BEFORE = "before"  # an older version of the library
# The gain of more threads is computed from these two.
ONE_THREAD, ALL_THREADS = "one thread", "all threads"

# One row of a table: its labels, and its samples by contender.
Row = tuple[dict[str, Any], dict[str, Sample]]
Column = Callable[[dict[str, Any], dict[str, Sample]], str]


def number(value: float) -> str:
    """About three significant digits, never as 1e+03."""
    if value >= 100:
        return f"{value:.0f}"
    digits = 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f}"


def milliseconds(sample: Sample | None) -> str:
    return number(median(sample.seconds) * 1e3) if sample and sample.seconds else ""


def ratio(slow: Sample, fast: Sample) -> float:
    return median(slow.seconds) / median(fast.seconds)


def noise(row: dict[str, Sample]) -> str:
    """The largest spread of the row, and the contenders with only one round."""
    known = [spread(sample.seconds) for sample in row.values() if len(sample.seconds) > 1]
    once = [contender for contender, sample in row.items() if len(sample.seconds) == 1]
    parts = [f"±{max(known):.0%}"] if known else []
    if once:
        parts.append(f"1 round: {', '.join(once)}")
    return "; ".join(parts)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> list[str]:
    """A table. The first `texts` columns are text, the others numbers."""
    rule = ["---" if column < texts else "--:" for column in range(len(header))]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def grouped(samples: Sequence[Sample]) -> list[Row]:
    """Groups samples with the same labels into rows, in order of first occurrence."""
    rows: dict[tuple[Any, ...], Row] = {}
    for sample in samples:
        key = tuple(sample.labels.items())
        rows.setdefault(key, (sample.labels, {}))[1][sample.contender] = sample
    return list(rows.values())


def label_text(name: str, value: Any) -> str:
    return rows_text(value) if name == "rows" else str(value)


def beside(
    samples: Sequence[Sample], ours: str = OURS, more: dict[str, Column] | None = None
) -> list[str]:
    """The table of most suites: our time, its part of each limit, and for each peer its time and the ratio."""
    rows = grouped(samples)
    contenders = dict.fromkeys(sample.contender for sample in samples)
    peers = [contender for contender in contenders if contender not in (ours, *LIMITS)]
    columns: dict[str, Column] = {f"{ours}, ms": lambda _, row: milliseconds(row.get(ours))}
    if any("rows" in labels for labels, _ in rows):
        columns["million rows/s"] = lambda labels, row: (
            number(labels["rows"] / median(row[ours].seconds) / 1e6) if ours in row else ""
        )
    for limit in (limit for limit in LIMITS if limit in contenders):
        columns[f"of the {limit} limit"] = lambda _, row, limit=limit: (
            f"{ratio(row[limit], row[ours]):.2f}" if {limit, ours} <= row.keys() else ""
        )
    for peer in peers:
        columns[f"{peer}, ms"] = lambda _, row, peer=peer: milliseconds(row.get(peer))
        columns["ratio" + "\u200b" * peers.index(peer)] = lambda _, row, peer=peer: (
            f"{number(ratio(row[peer], row[ours]))}x" if {peer, ours} <= row.keys() else ""
        )
    columns |= more or {}
    columns["spread"] = lambda _, row: noise(row)
    names = list(rows[0][0])
    lines = [
        [label_text(name, labels.get(name, "")) for name in names]
        + [cell(labels, row) for cell in columns.values()]
        for labels, row in rows
    ]
    header = [*names, *(name.strip("\u200b") for name in columns)]
    return markdown(header, lines, texts=len(names))


def section(suite: Any, data: SuiteData) -> list[str]:
    """Title, machine, description and tables of a suite."""
    versions = ", ".join(f"{name} {version}" for name, version in data.versions.items())
    head = [f"## {suite.TITLE}", "", f"{data.machine}; {versions}.", "", suite.ABOUT.strip(), ""]
    return [*head, *notes(data), *suite.tables(data.recorded())]


def notes(data: SuiteData) -> list[str]:
    """The contenders that were left out, and the cases that were run again."""
    lines = []
    if data.missing:
        lines += [f"Left out, because they are not installed: {', '.join(data.missing)}.", ""]
    if again := [f"{case} ({runs} runs)" for case, runs in data.runs().items()]:
        lines += [f"Run again and recorded with the median of their runs: {', '.join(again)}.", ""]
    return lines


def write(sections: dict[str, list[str]], order: Sequence[str], earlier: str) -> Path:
    """Writes bench/results.md with its sections in this order. Others stay as `earlier` has them."""
    blocks = dict(re.findall(r"<!-- begin (.*?) -->\n(.*?)\n<!-- end \1 -->", earlier, re.DOTALL))
    blocks |= {name: "\n".join(lines) for name, lines in sections.items()}
    known = [f"<!-- begin {n} -->\n{blocks[n]}\n<!-- end {n} -->\n" for n in order if n in blocks]
    RESULTS.write_text("\n".join([TITLE, *known]))
    return RESULTS
