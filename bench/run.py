"""Runs the benchmark and prints ratios: `make bench`, or `python bench/run.py --help`."""

from __future__ import annotations

import argparse

import axes
import measure
from peers import open3d_cpu, ours
from report import Report, machine

HEADER = "| key | rows | operation | tensorhash, ms | Open3D, ms | spread | ratio | goal |"
RULE = "|---|--:|---|--:|--:|--:|--:|--:|"


def rows_of_table(kind: axes.KeyKind, rows: int, times: dict[str, measure.Times]) -> list[str]:
    mine, theirs = times[ours.NAME], times[open3d_cpu.NAME]
    lines = []
    for operation in axes.OPERATIONS:
        fast, slow = measure.median(mine[operation]), measure.median(theirs[operation])
        noise = max(measure.spread(mine[operation]), measure.spread(theirs[operation]))
        goal = axes.GOALS.get(operation) if rows >= 1_000_000 else None
        lines.append(
            f"| {kind.name} | {rows:.0e} | {operation} | {fast * 1e3:.2f} | {slow * 1e3:.2f} "
            f"| ±{noise:.0%} | {slow / fast:.1f}x | {f'{goal}x' if goal else ''} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=axes.ROWS, help="rows in a batch")
    parser.add_argument(
        "--rounds", type=int, help="rounds for each; by default more for fewer rows"
    )
    parser.add_argument("--write", action="store_true", help="write bench/results.md too")
    options = parser.parse_args()

    peers = [ours, open3d_cpu]
    report = Report("hash tables")
    report.add(
        "## Hash tables",
        "",
        f"{ours.NAME} beside {open3d_cpu.NAME}: {machine()}.",
        "",
        "Random keys, one int64 value a key, `capacity = rows`. Medians of whole rounds, tensorhash",
        "and Open3D in turn in one process; the spread is half the quartile range, the larger one.",
        "",
        HEADER,
        RULE,
    )
    for kind in axes.KEYS:
        for rows in options.rows:
            rounds = options.rounds or axes.ROUNDS.get(rows, 3)
            report.add(*rows_of_table(kind, rows, measure.interleaved(peers, kind, rows, rounds)))
    if options.write:
        report.write()


if __name__ == "__main__":
    main()
