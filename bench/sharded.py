"""A sharded table beside a single one: rounds in turn, in one process, the same keys for all."""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from measure import Clock
from report import Report, machine

from tensorhash import HashMap, ShardedHashMap


def tables(rows: int, dim: int) -> dict[str, HashMap]:
    """One table, and the same on 1, 2 and 4 devices."""
    element = ("int64", (), "float32", (dim,))
    made: dict[str, HashMap] = {"single": HashMap(rows, *element)}
    for count in (1, 2, 4):
        devices = [f"cpu:{i}" for i in range(count)]
        made["1 shard" if count == 1 else f"{count} shards"] = ShardedHashMap(
            rows, *element, devices=devices
        )
    return made


def one_round(rows: int, dim: int, clocks: dict[str, Clock]) -> None:
    """Every operation on every table; results are checked by their counts."""
    rng = np.random.default_rng(1)
    keys = rng.integers(-(2**62), 2**62, rows)
    values = rng.normal(size=(rows, dim)).astype(np.float32)
    for name, table in tables(rows, dim).items():
        clock = clocks.setdefault(name, Clock())
        with clock("insert"):
            _, added = table.insert(keys, values)
        with clock("find"):
            _, found = table.find(keys)
        with clock("get"):
            got = table.get(keys)
        with clock("erase"):
            table.erase(keys)
        if not (added.all() and found.all() and np.array_equal(got, values) and not len(table)):
            raise AssertionError(f"{name} gave a wrong answer")


def table_of(clocks: dict[str, Clock]) -> list[str]:
    """A row for each table: medians in ms, and each as a multiple of the single table's."""
    operations = list(clocks["single"].times)
    lines = ["| | " + " | ".join(operations) + " |", "|---|" + "--:|" * len(operations)]
    for name, clock in clocks.items():
        cells = []
        for operation in operations:
            mine = statistics.median(clock.times[operation])
            single = statistics.median(clocks["single"].times[operation])
            cells.append(f"{mine * 1e3:.1f} ms, {mine / single:.2f}x")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write bench/results.md too")
    given = parser.parse_args()
    clocks: dict[str, Clock] = {}
    for _ in range(given.rounds):
        one_round(given.rows, given.dim, clocks)
    report = Report("sharded")
    report.add(
        "## Sharded tables beside a single one",
        "",
        f"`ShardedHashMap` on the CPU devices of {machine()}: shards share its cores.",
        "",
        f"int64 keys, float32 ({given.dim},) values, {given.rows} random rows, median of {given.rounds} rounds in turn",
        "in one process; in times of the single table's, less is faster.",
        "",
        *table_of(clocks),
    )
    if given.write:
        report.write()


if __name__ == "__main__":
    main()
