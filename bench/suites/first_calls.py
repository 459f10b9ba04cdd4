"""The first call in a fresh process beside later ones: threads start, memory is fresh, modules load."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness import keys, process
from harness.case import Case, Sample, Scale
from harness.clock import median
from harness.report import OURS, grouped, markdown, milliseconds, noise, number, ratio

TITLE = "First calls in a fresh process"
ABOUT = """
Each call is the first one in a process that has imported tensorhash and made the arrays, beside the median of ten later
calls in the same process. Medians of several processes. `import` is not included; the section "Overheads" has it.
"""
FIRST, WARM = "first call", "warm"
ROWS, VOXELS = 1_000_000, 100_000
WARM_CALLS = 10


def cases(scale: Scale) -> list[Case]:
    every = scale.pick(tuple(CALLS), ("insert", "group_by", "kernel map 3^3"))
    return [
        Case(f"first_calls/{name}", partial(measure, name=name, rows=scale.rows(ROWS)[0]))
        for name in every
    ]


def _keys(rows: int) -> np.ndarray:
    return keys.INT64.random(rows, seed=1)


def insert(rows: int) -> Callable[[], Any]:
    from peers import ours

    batch = _keys(rows)
    return lambda: ours.Table(rows, keys.INT64).insert(batch, batch)


def unique(rows: int) -> Callable[[], Any]:
    import tensorhash

    batch = _keys(rows).ravel()
    return lambda: tensorhash.unique(batch)


def group_by(rows: int) -> Callable[[], Any]:
    import tensorhash

    batch = _keys(rows).ravel() % 1000
    values = np.random.default_rng(0).random(rows)
    return lambda: tensorhash.group_by(batch).agg(sum=values)


def join(rows: int) -> Callable[[], Any]:
    import tensorhash

    batch = _keys(rows).ravel()
    return lambda: tensorhash.join(batch, batch[: rows // 5])


def kernel_map(rows: int) -> Callable[[], Any]:
    from suites.kernel_maps import uniform
    from tensorhash.coords import generate_kernel_map

    coords = uniform(min(rows, VOXELS))
    return lambda: generate_kernel_map(coords, coords, 1, 3)


def neighbours(rows: int) -> Callable[[], Any]:
    from suites.points import street
    from tensorhash.geometry import knn_search

    points = street(min(rows, VOXELS), 0)
    return lambda: knn_search(points, points, 8)


def downsample(rows: int) -> Callable[[], Any]:
    from suites.points import street
    from tensorhash.coords import voxel_downsample

    points = street(rows, 0)
    return lambda: voxel_downsample(points, 0.1)


def convolution(rows: int) -> Callable[[], Any]:
    from suites.convolution import Layer

    return Layer(32, min(rows, VOXELS)).forward


CALLS: dict[str, Callable[[int], Callable[[], Any]]] = {
    "insert": insert,
    "unique": unique,
    "group_by": group_by,
    "inner join": join,
    "kernel map 3^3": kernel_map,
    "kNN, k = 8": neighbours,
    "voxel_downsample": downsample,
    "convolution, 32 channels": convolution,
}


def seconds_of(name: str, rows: int) -> tuple[float, float]:
    """(the first call, the median of the later ones); runs in its own process."""
    work = CALLS[name](rows)
    taken = []
    for _ in range(1 + WARM_CALLS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken[0], median(taken[1:])


def measure(scale: Scale, name: str, rows: int) -> list[Sample]:
    """Processes one after the other, until the budget is used or five have run."""
    first, warm = Sample(FIRST, {"call": name}), Sample(WARM, {"call": name})
    start = time.perf_counter()
    for _ in range(5):
        times = process.call("suites.first_calls:seconds_of", name, rows)
        for sample, seconds in zip((first, warm), times, strict=True):
            sample.seconds.append(seconds)
        if time.perf_counter() - start > scale.budget:
            break
    return [first, warm]


def tables(measured: list[Sample]) -> list[str]:
    lines = [
        [
            labels["call"],
            milliseconds(row[FIRST]),
            milliseconds(row[WARM]),
            f"{number(ratio(row[FIRST], row[WARM]))}x",
            noise(row),
        ]
        for labels, row in grouped(measured)
    ]
    return markdown(["call", f"{OURS}, first, ms", "warm, ms", "first of warm", "spread"], lines)
