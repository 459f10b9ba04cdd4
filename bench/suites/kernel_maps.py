"""Kernel maps beside spconv's, the four paths beside each other, and the memory of a call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness import lidar, process
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import call, in_turn, samples
from harness.report import OURS, beside, grouped, markdown, milliseconds

TITLE = "Kernel maps"
ABOUT = """
Submanifold maps of distinct voxels in random order: a tenth of a cube's cells, and batches of one real LiDAR scan,
each turned by another angle, at 5 cm. `wrong` counts the pairs by which spconv differs from the true map, which
happens if the grid has more than 2^31 cells. Then the four paths and their lookups, also for a sparse grid in which
a fifth of the coarse cells hold a voxel. Coarse cells are 4 voxels wide. `coarse occupied` is the part of the coarse
lookups that find a voxel; `of flat` is the number of fine lookups relative to flat's. Last, the peak memory of one
call beyond the memory before it, in a separate process.
"""
ROWS = (100_000, 500_000)
SIZES = (3, 5, 7)
FILLED = 0.1  # of the cells of the uniform grid
COARSE = 4  # width of a coarse cell in voxels
SPARSE = 1 - 0.8 ** (1 / COARSE**3)  # of the cells: then a fifth of the coarse cells hold a voxel
PATHS = ("blocks", "merge", "flat", "hierarchical")
PROBING = ("flat", "hierarchical")  # the others make no lookups


def uniform(count: int, filled: float = FILLED) -> np.ndarray:
    """int32 [count, 4], distinct, in random order: the part `filled` of a cube's cells."""
    side = round((count / filled) ** (1 / 3)) + 1
    cells = np.random.default_rng(0).choice(side**3, count, replace=False)
    return np.column_stack(np.unravel_index(cells, (1, side, side, side))).astype(np.int32)


DATA: dict[str, Callable[[int], np.ndarray]] = {
    "uniform": uniform,
    "LiDAR": lidar.voxels,
    "sparse": partial(uniform, filled=SPARSE),
}
BESIDE = ("uniform", "LiDAR")  # the data for spconv and for memory


def cases(scale: Scale) -> list[Case]:
    small = min(scale.rows(*ROWS))
    every = [(data, rows, size) for data in DATA for rows in scale.rows(*ROWS) for size in SIZES]
    few = [("uniform", rows, size) for rows in scale.rows(100_000) for size in SIZES]
    peers, paths = [], []
    for data, rows, size in scale.pick(every, few):
        name = f"{data}/{rows_text(rows)}/{size}^3"
        given = {"data": data, "rows": rows, "size": size}
        if data in BESIDE:
            peers.append(Case(f"kernel_maps/spconv/{name}", partial(beside_spconv, **given)))
        if rows == small:
            paths.append(Case(f"kernel_maps/paths/{name}", partial(every_path, **given)))
    (most,) = scale.rows(max(ROWS))
    memory = [
        Case(f"kernel_maps/memory/{data}", partial(memory_of_call, data=data, rows=most, size=7))
        for data in scale.pick(BESIDE, ["uniform"])
    ]
    return peers + paths + memory


def labelled(part: str, data: str, rows: int, size: int) -> dict[str, Any]:
    return {"part": part, "voxels": data, "rows": rows, "kernel": f"{size}^3"}


def checked_counts(coords: np.ndarray, size: int) -> np.ndarray:
    """Pairs per offset, from two paths that must agree in every bit."""
    import tensorhash.coords as thc

    own = thc.generate_kernel_map(coords, coords, 1, size)
    flat = thc.generate_kernel_map(coords, coords, 1, size, strategy="flat")
    for name in ("in_maps", "out_maps", "offsets"):
        if not np.array_equal(getattr(own, name), getattr(flat, name)):
            raise AssertionError(f"two paths differ in {name}: {len(coords)} rows, {size}^3")
    return np.diff(own.offsets)


def beside_spconv(scale: Scale, data: str, rows: int, size: int) -> list[Sample]:
    import tensorhash.coords as thc
    from peers import spconv_cpu

    coords = DATA[data](rows)
    theirs = spconv_cpu.batch(coords)
    own = checked_counts(coords, size)
    kept: list[Any] = []  # spconv's last map: one more would take seconds

    def their_map() -> None:
        kept[:] = [spconv_cpu.kernel_map(theirs, size)]

    rounds = {
        OURS: call("map", lambda: thc.generate_kernel_map(coords, coords, 1, size)),
        spconv_cpu.NAME: call("map", their_map),
    }
    times = in_turn(rounds, scale, scale.rounds(rows))
    made = samples(times, **labelled("spconv", data, rows, size))
    found = spconv_cpu.counts(kept[0], size)
    wrong = int(np.abs(own[: len(found)] - found).sum())
    made[0].numbers = {"pairs": int(own.sum()), "wrong": wrong}
    return made


def every_path(scale: Scale, data: str, rows: int, size: int) -> list[Sample]:
    import tensorhash.coords as thc

    coords = DATA[data](rows)
    works = {
        path: partial(thc.generate_kernel_map, coords, coords, 1, size, strategy=path)
        for path in PATHS
    }
    rounds = {path: call("map", work) for path, work in works.items()}
    made = samples(
        in_turn(rounds, scale, scale.rounds(rows)), **labelled("paths", data, rows, size)
    )
    for sample in (s for s in made if s.contender in PROBING):
        coarse, fine = works[sample.contender]().probes
        sample.numbers = {"coarse": int(coarse), "fine": int(fine)}
        if coarse:
            reached, occupied = coarse_cells(coords, size)
            if reached != coarse:
                raise AssertionError(f"expected {reached} coarse lookups, got {coarse}")
            sample.numbers["occupied"] = occupied
    return made


def coarse_cells(coords: np.ndarray, size: int) -> tuple[int, int]:
    """(coarse cells that the kernels of all rows reach, how many of them hold a row)."""
    batch, places = coords[:, :1], coords[:, 1:].astype(np.int64)
    first, last = ((places + reach) // COARSE for reach in (-(size // 2), size // 2))
    low, high = first.min(axis=0), last.max(axis=0)
    extent = (int(batch.max()) + 1, *(high - low + 1).tolist())

    def codes(rows: np.ndarray, cells: np.ndarray) -> np.ndarray:
        return np.ravel_multi_index(np.column_stack([rows, cells - low]).T, extent)

    held = np.unique(codes(batch, places // COARSE))
    reached = occupied = 0
    for step in np.ndindex(*(last - first).max(axis=0) + 1):
        cells = first + np.array(step)
        inside = (cells <= last).all(axis=1)
        asked = codes(batch[inside], cells[inside])
        at = np.minimum(np.searchsorted(held, asked), len(held) - 1)
        reached += len(asked)
        occupied += int((held[at] == asked).sum())
    return reached, occupied


def peak_memory(data: str, rows: int, size: int) -> tuple[int, int]:
    """(peak bytes of this process beyond those before the call, bytes of the pairs)."""
    import tensorhash.coords as thc

    coords = DATA[data](rows)
    thc.generate_kernel_map(coords[:1000], coords[:1000], 1, 3)
    process.forget_peak()
    before = process.resident()
    made = thc.generate_kernel_map(coords, coords, 1, size)
    return process.resident("VmHWM") - before, 8 * len(made.in_maps)


def memory_of_call(scale: Scale, data: str, rows: int, size: int) -> list[Sample]:
    peak, pairs = process.call("suites.kernel_maps:peak_memory", data, rows, size)
    labels = labelled("memory", data, rows, size)
    return [Sample(OURS, labels, numbers={"peak": peak, "pairs": pairs})]


def tables(measured: list[Sample]) -> list[str]:
    parts: dict[str, list[Sample]] = {"spconv": [], "paths": [], "memory": []}
    for sample in measured:
        labels = {k: v for k, v in sample.labels.items() if k not in ("part", "operation")}
        part = parts[sample.labels["part"]]
        part.append(Sample(sample.contender, labels, sample.seconds, sample.numbers))
    lines: list[str] = []
    if parts["spconv"]:
        more = {
            "pairs": lambda _, row: f"{row[OURS].numbers['pairs']:.2e}",
            "wrong": lambda _, row: str(row[OURS].numbers["wrong"] or ""),
        }
        lines += [*beside(parts["spconv"], more=more), ""]
    return lines + paths_table(parts["paths"]) + memory_table(parts["memory"])


def paths_table(measured: list[Sample]) -> list[str]:
    if not measured:
        return []
    head = ["voxels", "rows", "kernel", *(f"{path}, ms" for path in PATHS)]
    head += ["flat probes", "coarse + fine probes", "coarse occupied", "of flat"]
    lines = []
    for labels, row in grouped(measured):
        flat, tree = row["flat"].numbers["fine"], row["hierarchical"].numbers
        lines.append(
            [labels["voxels"], rows_text(labels["rows"]), labels["kernel"]]
            + [milliseconds(row[path]) for path in PATHS]
            + [f"{flat:.2e}", f"{tree['coarse']:.2e} + {tree['fine']:.2e}"]
            # Samples of earlier runs do not have it.
            + [f"{tree['occupied'] / tree['coarse']:.0%}" if "occupied" in tree else ""]
            + [f"{tree['fine'] / flat:.0%}"]
        )
    return [*markdown(head, lines), ""]


def memory_table(measured: list[Sample]) -> list[str]:
    lines = []
    for s in measured:
        peak, pairs = s.numbers["peak"], s.numbers["pairs"]
        where = [s.labels["voxels"], rows_text(s.labels["rows"]), s.labels["kernel"]]
        lines.append([*where, f"{pairs / 1e6:.0f}", f"{peak / 1e6:.0f}", f"{peak / pairs:.2f}x"])
    head = ["voxels", "rows", "kernel", "pairs, MB", "peak, MB", "ratio"]
    return markdown(head, lines) if lines else []
