"""A sharded table beside a single one: rounds in turn, in one process, the same keys for all."""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from measure import Clock

import tensorhash
from tensorhash import HashMap, ShardedHashMap


def tables(rows: int, dim: int) -> dict[str, HashMap]:
    """One table, and the same on 1, 2 and 4 devices."""
    element = ("int64", (), "float32", (dim,))
    made: dict[str, HashMap] = {"single": HashMap(rows, *element)}
    for count in (1, 2, 4):
        devices = [f"cpu:{i}" for i in range(count)]
        made[f"{count} shards"] = ShardedHashMap(rows, *element, devices=devices)
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


def main() -> None:
    """Prints medians in ms, and each as a multiple of the single table's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    clocks: dict[str, Clock] = {}
    for _ in range(given.rounds):
        one_round(given.rows, given.dim, clocks)
    print(
        f"int64 keys, float32 ({given.dim},) values, {given.rows} random rows, "
        f"{tensorhash.get_num_threads()} threads, median of {given.rounds} rounds in turn\n"
    )
    operations = list(clocks["single"].times)
    print("| | " + " | ".join(operations) + " |")
    print("|---|" + "--:|" * len(operations))
    for name, clock in clocks.items():
        cells = []
        for operation in operations:
            mine = statistics.median(clock.times[operation])
            single = statistics.median(clocks["single"].times[operation])
            cells.append(f"{mine * 1e3:.1f} ms, {mine / single:.2f}x")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
