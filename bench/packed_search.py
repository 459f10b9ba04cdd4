"""Search of PackedHashTable beside the vector-key table: `python bench/packed_search.py --help`.

Rounds go contender after contender, so that a noisy minute hits both alike; a row is the median of
the rounds, and the ratio the median of the rounds' own ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from report import Report, machine

import tensorhash
from tensorhash.coords import PackedHashTable, TorchHashTable

GOAL = 2.5


def distinct_coords(rows: int, seed: int) -> np.ndarray:
    """int32 [rows, 4], distinct, shuffled: two batches of voxels, uniform in a cube."""
    rng = np.random.default_rng(seed)
    coords = rng.integers(-512, 512, (rows + rows // 8 + 16, 4), dtype=np.int32)
    coords[:, 0] &= 1
    return tensorhash.unique(coords)[:rows].copy()


def seconds(search, queries: np.ndarray, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        search(queries)
    return (time.perf_counter() - start) / repeats


def measure(rows: int, rounds: int) -> list[str]:
    coords = distinct_coords(2 * rows, 1)
    there, missing = coords[:rows], coords[rows:]
    packed, vector = PackedHashTable.from_coords(there), TorchHashTable.from_keys(there)
    order = np.random.default_rng(2).permutation(rows)
    lines = []
    for name, queries in (("hit", there[order].copy()), ("miss", missing)):
        assert np.array_equal(packed.search(queries), vector.search(queries))
        repeats = max(1, 1_000_000 // rows)
        times = [
            (seconds(packed.search, queries, repeats), seconds(vector.search, queries, repeats))
            for _ in range(rounds)
        ]
        fast, slow = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
        ratio = statistics.median(b / a for a, b in times)
        lines.append(f"| {rows} | {name} | {fast:.2f} | {slow:.2f} | {ratio:.2f} | {GOAL} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--write", action="store_true", help="write bench/results.md too")
    options = parser.parse_args()
    tensorhash.set_num_threads(options.threads)
    report = Report("packed search")
    report.add(
        "## Packed keys beside vector keys",
        "",
        f"`PackedHashTable.search` beside `TorchHashTable.search`: {machine()}.",
        "",
        "int32 [N, 4], distinct voxels in random order, found (hit) or not (miss). Medians of rounds",
        "in turn in one process; the ratio is the median of the rounds' own ratios.",
        "",
        "| rows | queries | packed, ms | vector keys, ms | ratio | goal |",
        "|--:|---|--:|--:|--:|--:|",
    )
    for rows in options.rows:
        report.add(*measure(rows, options.rounds))
    if options.write:
        report.write()


if __name__ == "__main__":
    main()
