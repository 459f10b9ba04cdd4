"""Kernel maps beside spconv, probes counted, memory: `python bench/kernel_maps.py --help`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import lidar
import measure
import numpy as np
from peers import ours, spconv_cpu
from report import Report, machine

import tensorhash.coords as thc

ROWS = (100_000, 500_000)
SIZES = (3, 5, 7)
GOALS = {3: 5, 5: 8, 7: 8}
MEMORY_GOAL = 3
FILLED = 0.1  # of the cells of the uniform grid


def uniform(count: int) -> np.ndarray:
    """int32 [count, 4], distinct, in random order: a tenth of a cube's cells."""
    side = round((count / FILLED) ** (1 / 3))
    cells = np.random.default_rng(0).choice(side**3, count, replace=False)
    return np.column_stack(np.unravel_index(cells, (1, side, side, side))).astype(np.int32)


DATA: dict[str, Callable[[int], np.ndarray]] = {"uniform": uniform, "LiDAR": lidar.voxels}


def interleaved(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds by contender, in turn; a first round warms up and is thrown away."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            result = call()
            taken = time.perf_counter() - start
            del result
            if number > 0:
                times[name].append(taken)
    return times


def checked_counts(coords: np.ndarray, size: int) -> np.ndarray:
    """Pairs per offset, by two paths that must agree in every bit."""
    merge = thc.generate_kernel_map(coords, coords, 1, size)
    flat = thc.generate_kernel_map(coords, coords, 1, size, strategy="flat")
    for name in ("in_maps", "out_maps", "offsets"):
        if not np.array_equal(getattr(merge, name), getattr(flat, name)):
            raise AssertionError(f"two paths differ in {name}: {len(coords)} rows, {size}^3")
    return np.diff(merge.offsets)


def beside_spconv(report: Report, rows: list[int], rounds: int) -> None:
    report.add(
        f"{ours.NAME} beside {spconv_cpu.NAME}: {machine()}.",
        "",
        "Submanifold maps of distinct voxels in random order: a tenth of a cube's cells, and a batch",
        "of one real LiDAR scan turned by various angles, at 5 cm. Medians of calls in turn in one",
        "process; the spread is half the quartile range, the larger of the two. `wrong`: pairs that",
        "spconv finds and that are not there, or the other way round; seen where the grid has more",
        "than 2^31 cells.",
        "",
        "| voxels | rows | kernel | pairs | tensorhash, ms | spconv, ms | spread | ratio | goal | wrong |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    )
    for data, make in DATA.items():
        for count in rows:
            coords = make(count)
            theirs = spconv_cpu.batch(coords)
            for size in SIZES:
                own = checked_counts(coords, size)
                pairs = int(own.sum())
                found = spconv_cpu.counts(spconv_cpu.kernel_map(theirs, size), size)
                wrong = int(np.abs(own[: len(found)] - found).sum())
                times = interleaved(
                    {
                        "ours": lambda c=coords, s=size: thc.generate_kernel_map(c, c, 1, s),
                        "theirs": lambda t=theirs, s=size: spconv_cpu.kernel_map(t, s),
                    },
                    rounds,
                )
                fast, slow = (measure.median(times[name]) for name in ("ours", "theirs"))
                noise = max(measure.spread(taken) for taken in times.values())
                report.add(
                    f"| {data} | {count:.0e} | {size}^3 | {pairs:.2e} | {fast * 1e3:.1f} "
                    f"| {slow * 1e3:.1f} | ±{noise:.0%} | {slow / fast:.1f}x | {GOALS[size]}x "
                    f"| {wrong or ''} |"
                )


def paths(report: Report, count: int, rounds: int) -> None:
    report.add(
        "",
        "The four paths, and what they look up. Coarse cells are 4 voxels wide; `occupied` is the",
        "part of a kernel's offsets that fall into a coarse cell which holds anything.",
        "",
        "| voxels | rows | kernel | blocks, ms | merge, ms | flat, ms | hierarchical, ms | flat probes "
        "| coarse + fine probes | occupied |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    )
    for data, make in DATA.items():
        coords = make(count)
        for size in SIZES:
            names = ("blocks", "merge", "flat", "hierarchical")
            times = interleaved(
                {
                    name: lambda c=coords, s=size, n=name: thc.generate_kernel_map(
                        c, c, 1, s, strategy=n
                    )
                    for name in names
                },
                rounds,
            )
            made = {
                name: thc.generate_kernel_map(coords, coords, 1, size, strategy=name)
                for name in names[2:]
            }
            coarse, fine = made["hierarchical"].probes
            flat = made["flat"].probes[1]
            milliseconds = " | ".join(f"{measure.median(times[name]) * 1e3:.1f}" for name in names)
            report.add(
                f"| {data} | {count:.0e} | {size}^3 | {milliseconds} | {flat:.2e} "
                f"| {coarse:.2e} + {fine:.2e} | {fine / flat:.0%} |"
            )


def peak_memory(data: str, count: int, size: int) -> tuple[int, int]:
    """(bytes above what was there before the call, bytes of the pairs), in a process of its own."""
    program = (
        "import json, resource, sys; sys.path.insert(0, sys.argv[1])\n"
        "import kernel_maps as bench, tensorhash.coords as thc\n"
        "coords = bench.DATA[sys.argv[2]](int(sys.argv[3])); size = int(sys.argv[4])\n"
        "thc.generate_kernel_map(coords[:1000], coords[:1000], 1, 3)\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "status = lambda key: int(next(l for l in open('/proc/self/status') if l.startswith(key)).split()[1])\n"
        "before = status('VmRSS')\n"
        "made = thc.generate_kernel_map(coords, coords, 1, size)\n"
        "print(json.dumps([(status('VmHWM') - before) * 1024, 8 * len(made.in_maps)]))\n"
    )
    folder = str(Path(__file__).parent)
    arguments = [folder, data, str(count), str(size)]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True
    )
    peak, pairs = json.loads(done.stdout)
    return peak, pairs


def memory(report: Report, count: int) -> None:
    report.add(
        "",
        "Peak memory of one call beyond what was there before, in a process of its own.",
        "",
        "| voxels | rows | kernel | pairs, MB | peak, MB | ratio | goal |",
        "|---|--:|--:|--:|--:|--:|--:|",
    )
    for data in DATA:
        peak, pairs = peak_memory(data, count, 7)
        report.add(
            f"| {data} | {count:.0e} | 7^3 | {pairs / 1e6:.0f} | {peak / 1e6:.0f} "
            f"| {peak / pairs:.2f}x | {MEMORY_GOAL}x |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="voxels")
    parser.add_argument("--rounds", type=int, default=5, help="calls of each contender")
    parser.add_argument("--write", action="store_true", help="write bench/results.md too")
    options = parser.parse_args()

    report = Report("kernel maps")
    report.add("## Kernel maps", "")
    beside_spconv(report, options.rows, options.rounds)
    paths(report, min(options.rows), options.rounds)
    memory(report, max(options.rows))
    if options.write:
        report.write()


if __name__ == "__main__":
    main()
