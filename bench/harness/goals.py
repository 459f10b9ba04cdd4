"""The goals, and whether they were reached. All results are computed from the data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.case import FULL, Sample, Scale, rows_text
from harness.clock import median
from harness.keys import HIT, INSERT, MISS, STRUCTURED
from harness.report import ALL_THREADS, GATHER, LIMITS, ONE_THREAD, OURS, markdown, number
from harness.store import SuiteData

LARGE = (1_000_000, 10_000_000)


class Measured:
    """All samples, selected by suite, contender and labels."""

    def __init__(self, suites: dict[str, SuiteData]) -> None:
        self.suites = suites

    def samples(self, suite: str, **labels: Any) -> list[Sample]:
        wanted = labels.items()
        known = self.suites.get(suite, SuiteData()).samples
        return [s for s in known if all(s.labels.get(name) == value for name, value in wanted)]

    def seconds(self, suite: str, who: str, **labels: Any) -> float | None:
        for sample in self.samples(suite, **labels):
            if sample.who == who and sample.seconds:
                return median(sample.seconds)
        return None

    def ratio(self, suite: str, slow: str, fast: str, **labels: Any) -> float | None:
        above, below = (self.seconds(suite, who, **labels) for who in (slow, fast))
        return above / below if above and below else None

    def threads(self) -> int:
        return max((sample.labels["threads"] for sample in self.samples("cpp")), default=1)


# A condition such as "1e6", and the value measured under it; None: not measured.
Values = Iterator[tuple[str, float | None]]


@dataclass(frozen=True)
class Goal:
    what: str
    target: float
    unit: str
    values: Callable[[Measured], Values]
    at_most: bool = False


@dataclass(frozen=True)
class Verdict:
    """A goal and the measured values by condition. The worst value decides."""

    goal: Goal
    measured: dict[str, float]
    earlier: bool = False  # from a run before this one

    @property
    def score(self) -> float:
        """At least 1 if the goal was reached."""
        if self.goal.at_most:
            return self.goal.target / max(self.measured.values())
        return min(self.measured.values()) / self.goal.target

    def text(self) -> str:
        parts = [
            f"{where}: {number(v)}" if where else number(v) for where, v in self.measured.items()
        ]
        return ", ".join(parts)

    def goal_text(self) -> str:
        unit = self.goal.unit if self.goal.unit in ("", "x") else f" {self.goal.unit}"
        return f"{'under ' if self.goal.at_most else ''}{self.goal.target:g}{unit}"

    def outcome(self) -> str:
        if self.score >= 1:
            return "reached"
        return f"missed: {self.score:.0%} of the goal"


def of_gather(operation: str, key: str, *rows: int) -> Callable[[Measured], Values]:
    def values(data: Measured) -> Values:
        where = {"key": key, "operation": operation, "threads": data.threads()}
        for n in rows:
            yield rows_text(n), data.ratio("cpp", GATHER, OURS, rows=n, **where)

    return values


def best_peer(operation: str, key: str) -> Callable[[Measured], Values]:
    def values(data: Measured) -> Values:
        for rows in LARGE:
            found = data.samples("cpp", key=key, rows=rows, threads=1, operation=operation)
            peers = [median(s.seconds) for s in found if s.who not in (OURS, *LIMITS)]
            ours = [median(s.seconds) for s in found if s.who == OURS]
            yield rows_text(rows), min(peers) / ours[0] if peers and ours else None

    return values


def threads_gain(operation: str, key: str) -> Callable[[Measured], Values]:
    """Our gain from more threads, relative to the gather's gain."""

    def values(data: Measured) -> Values:
        for rows in LARGE:
            where = {"key": key, "rows": rows, "operation": operation}
            one = data.ratio("threads", GATHER, OURS, threads=ONE_THREAD, **where)
            all_ = data.ratio("threads", GATHER, OURS, threads=ALL_THREADS, **where)
            yield rows_text(rows), all_ / one if one and all_ else None

    return values


def open3d(operation: str, key: str) -> Callable[[Measured], Values]:
    def values(data: Measured) -> Values:
        for rows in LARGE:
            where = {"key": key, "rows": rows, "operation": operation}
            yield rows_text(rows), data.ratio("tables", "Open3D", OURS, **where)

    return values


def unique(key: str, peer: str) -> Callable[[Measured], Values]:
    where = {"key": key, "rows": 1_000_000, "keys": "random"}
    return lambda data: iter([("", data.ratio("unique", peer, OURS, **where))])


def spconv(kernel: str, rows: int) -> Callable[[Measured], Values]:
    def values(data: Measured) -> Values:
        for voxels in ("uniform", "LiDAR"):
            where = {"part": "spconv", "voxels": voxels, "rows": rows, "kernel": kernel}
            yield voxels, data.ratio("kernel_maps", "spconv", OURS, **where)

    return values


def tensorflow(operation: str, *dims: int) -> Callable[[Measured], Values]:
    def values(data: Measured) -> Values:
        for dim in dims:
            where = {"dim": dim, "operation": operation}
            both = [
                data.ratio("tensorflow", peer, OURS, **where)
                for peer in ("MutableHashTable", "DenseHashTable")
            ]
            yield f"dim {dim}", min(both) if all(both) else None

    return values


def data_frames(operation: str, *peers: str) -> Callable[[Measured], Values]:
    """Against the fastest of these peers, for every number of groups."""

    def values(data: Measured) -> Values:
        for sample in data.samples("data", operation=operation):
            if sample.who != OURS:
                continue
            where = sample.labels
            known = [data.ratio("data", peer, OURS, **where) for peer in peers]
            yield f"{rows_text(where['groups'])} groups", min(filter(None, known), default=None)

    return values


def geometry(*operations: str) -> Callable[[Measured], Values]:
    def values(data: Measured) -> Values:
        for operation in operations:
            yield operation, data.ratio("geometry", "Open3D", OURS, operation=operation)

    return values


def growth(data: Measured) -> Values:
    for rows in LARGE:
        grown = data.seconds("growth", OURS, rows=rows, operation="from zero")
        reserved = data.seconds("growth", OURS, rows=rows, operation="reserved")
        yield rows_text(rows), grown / reserved if grown and reserved else None


def bytes_beyond(wide: bool) -> Callable[[Measured], Values]:
    def values(data: Measured) -> Values:
        for sample in data.samples("overhead", what="memory"):
            key, rows = sample.labels["key"], sample.labels["rows"]
            if (key != "int64") == wide and rows in LARGE:
                yield f"{key} {rows_text(rows)}", sample.numbers["bytes beyond"]

    return values


def one_key(data: Measured) -> Values:
    seconds = data.seconds("overhead", OURS, what="call", rows=1)
    yield "", seconds * 1e6 if seconds else None


def patterns(data: Measured) -> Values:
    for key in ("int64", "int32x3"):
        for operation in (INSERT, HIT):
            where = {"key": key, "operation": operation}
            random = data.seconds("patterns", OURS, keys="random", **where)
            slow = [data.seconds("patterns", OURS, keys=name, **where) for name in STRUCTURED]
            yield f"{operation} {key}", max(slow) / random if random and all(slow) else None


def packed(data: Measured) -> Values:
    for rows in (100_000, 1_000_000):
        for operation in ("hit", "miss"):
            where = {"rows": rows, "operation": operation}
            ratio = data.ratio("packed", "TorchHashTable", "PackedHashTable", **where)
            yield f"{operation} {rows_text(rows)}", ratio


def map_memory(data: Measured) -> Values:
    for sample in data.samples("kernel_maps", part="memory"):
        yield sample.labels["voxels"], sample.numbers["peak"] / sample.numbers["pairs"]


def conv_rate(operation: str, channels: int) -> Callable[[Measured], Values]:
    """Our multiplications per second, divided by those of a dense matrix product."""

    def values(data: Measured) -> Values:
        found = {}
        for sample in data.samples("convolution", part="matmul", channels=channels):
            if sample.seconds:
                rate = sample.numbers["products"] / median(sample.seconds)
                found[sample.who, sample.labels["operation"]] = rate
        ours, dense = found.get((OURS, operation)), found.get(("dense matmul", "forward"))
        yield "", ours / dense if ours and dense else None

    return values


def conv_time(part: str, other: str, channels: int, **more: str) -> Callable[[Measured], Values]:
    """The time of another contender, or of us in other conditions, divided by ours."""

    def values(data: Measured) -> Values:
        yield "", data.ratio("convolution", other, OURS, part=part, channels=channels, **more)

    return values


def network_time(data: Measured) -> Values:
    """spconv's time of a network's step, divided by ours."""
    for kind in ("uniform", "room"):
        yield kind, data.ratio("networks", "spconv", OURS, kind=kind)


BUSY = "beside a busy process"
LIMIT = "of the limit"
# Expected speed-ups with int64 and with int32 x 3 keys.
OPEN3D = {
    INSERT: (20, 20),
    HIT: (8, 6),
    "erase": (20, 20),
    "active_buf_indices": (50, 50),
    "reserve": (20, 20),
}
# Expected speed-ups with kernels of 3^3, 5^3 and 7^3.
SPCONV = {100_000: (10, 15, 15), 500_000: (5, 8, 8)}
# Expected parts of a dense product's rate, forward, and speed-ups with the map, by channels.
CONVOLUTION = {16: (0.9, 6, 4.5), 32: (0.95, 5, 4), 64: (1.15, 3, 3), 128: (1.2, 2, 2)}

GRID_METHODS = (
    "compute_unique_block_coordinates",
    "compute_unique_block_coordinates (points)",
    "integrate",
    "integrate (depth only)",
    "ray_cast",
    "extract_point_cloud",
    "extract_triangle_mesh",
    "voxel_indices",
    "voxel_coordinates",
    "voxel_coordinates_and_flattened_indices",
    "attribute",
    "save",
    "load",
)
SEARCHES = (
    "kNN, k = 8",
    "kNN, kept",
    "radius 0.3",
    "radius, kept",
    "hybrid, kept",
)

GOALS = (
    Goal("find, 8-byte keys, 10^7", 0.70, LIMIT, of_gather(HIT, "int64", 10_000_000)),
    Goal("find, 8-byte keys, 10^6", 0.55, LIMIT, of_gather(HIT, "int64", 1_000_000)),
    Goal("insert, 8-byte keys, 10^7", 0.45, LIMIT, of_gather(INSERT, "int64", 10_000_000)),
    Goal("insert, 8-byte keys, 10^6", 0.35, LIMIT, of_gather(INSERT, "int64", 1_000_000)),
    Goal("find, 12-byte keys, two cache lines per key", 0.60, LIMIT, of_gather(HIT, "int32x3", *LARGE)),
    *(
        Goal(f"{operation}, {key}, one thread, against the best C++ map", 3, "x", best_peer(operation, key))
        for operation in (HIT, MISS, INSERT)
        for key in ("int64", "int32x3")
    ),
    *(
        Goal(f"{operation}, {key}, against Open3D", target, "x", open3d(operation, key))
        for operation, targets in OPEN3D.items()
        for key, target in zip(("int64", "int32x3"), targets, strict=True)
    ),
    *(
        Goal(f"{operation}, {key}, gain of all threads, of the gather's", 0.9, "", threads_gain(operation, key))
        for operation in (HIT, INSERT)
        for key in ("int64", "int32x3")
    ),
    Goal("unique of 10^6 int32 x 3, against torch.unique(dim=0)", 50, "x", unique("int32x3", "torch")),
    Goal("unique of 10^6 int32 x 3, against np.unique(axis=0)", 20, "x", unique("int32x3", "np.unique")),
    Goal("unique of 10^6 int64, against torch.unique", 1.5, "x", unique("int64", "torch")),
    Goal("unique of 10^6 int64, against polars", 2, "x", unique("int64", "polars")),
    *(
        Goal(f"kernel map {kernel} of {rows_text(rows)} voxels, against spconv", target, "x", spconv(kernel, rows))
        for rows, targets in SPCONV.items()
        for kernel, target in zip(("3^3", "5^3", "7^3"), targets, strict=True)
    ),
    *(
        Goal(f"convolution, {n} channels, {operation}, of a dense product's rate", target, "", conv_rate(operation, n))
        for n, (forward, _, _) in CONVOLUTION.items()
        for operation, target in (("forward", forward), ("input gradient", 0.8), ("weight gradient", 0.8))
    ),
    *(
        Goal(
            f"convolution, {n} channels, with its map, {kind} voxels, against spconv",
            target, "x", conv_time("spconv", "spconv", n, kind=kind),
        )
        for n, (_, *targets) in CONVOLUTION.items()
        for kind, target in zip(("uniform", "room"), targets, strict=True)
    ),
    Goal("MinkUNet step of 1e5 voxels, against spconv", 3, "x", network_time),
    *(
        Goal(f"convolution, {n} channels, beside a busy process", 2.5, "x", conv_time("busy", BUSY, n), True)
        for n in CONVOLUTION
    ),
    *(
        Goal(f"{operation}, {name}, against TensorFlow's better table", target, "x", tensorflow(operation, *dims))
        for operation in ("insert", "lookup")
        for name, target, dims in (("vectors", 3, (16, 64)), ("single values", 1.5, (1,)))
    ),
    Goal(
        "group-by sum, against the better of pandas and polars",
        1,
        "x",
        data_frames("group-by sum", "pandas", "polars"),
    ),
    Goal("inner join, against the better of pandas and polars", 1, "x", data_frames("inner join", "pandas", "polars")),
    Goal("factorize int64, against pandas", 1, "x", data_frames("factorize", "pandas")),
    *(
        Goal(
            f"StringIndex, {form} strings, against pandas.factorize",
            3,
            "x",
            data_frames(f"strings ({form})", "pandas"),
        )
        for form in ("pandas", "Arrow", "object")
    ),
    Goal("VoxelBlockGrid, each method, against Open3D", 1, "x", geometry(*GRID_METHODS)),
    Goal("neighbours, against Open3D", 1, "x", geometry(*SEARCHES)),
    Goal("growth from zero, time of reserved", 2, "x", growth, at_most=True),
    Goal("bytes per entry beyond key and value, 8-byte keys", 40, "bytes", bytes_beyond(False), True),
    Goal("bytes per entry beyond key and value, wider keys", 24, "bytes", bytes_beyond(True), True),
    Goal("find of one key from Python", 4, "µs", one_key, at_most=True),
    Goal("structured keys, time of random ones", 3, "x", patterns, at_most=True),
    Goal("packed search, against vector keys", 2.5, "x", packed),
    Goal("kernel map's peak memory, of its pairs", 3, "x", map_memory, at_most=True),
)  # fmt: skip


def judge(suites: dict[str, SuiteData]) -> list[Verdict]:
    data = Measured(suites)
    return [
        Verdict(goal, {where: value for where, value in goal.values(data) if value is not None})
        for goal in GOALS
    ]


def with_earlier(verdicts: list[Verdict], table: str) -> list[Verdict]:
    """Goals that were not measured keep what the table of an earlier run says."""
    lines = (line.strip("| ").split(" | ") for line in table.splitlines())
    texts = {cells[0]: cells[2] for cells in lines if len(cells) == 4}
    return [
        verdict
        if verdict.measured or verdict.goal.what not in texts
        else Verdict(verdict.goal, _measured_in(texts[verdict.goal.what]), earlier=True)
        for verdict in verdicts
    ]


def _measured_in(text: str) -> dict[str, float]:
    """Reads what Verdict.text() wrote."""
    parts = re.findall(r"(?:^|, )(?:(.+?): )?([\d.]+)(?=, |$)", text)
    return {where: float(value) for where, value in parts}


def section(verdicts: list[Verdict], scale: Scale, machine: str) -> list[str]:
    """The table of all goals that were measured. Marks results of a quick run."""
    known = [verdict for verdict in verdicts if verdict.measured]
    if not known:
        return []
    reached = sum(verdict.score >= 1 for verdict in known)
    summary = f"{reached} of {len(known)} reached. If several values were measured, the worst one decides."
    if len(known) < len(verdicts):
        summary += f" {len(verdicts) - len(known)} more were not measured."
    if earlier := sum(verdict.earlier for verdict in known):
        summary += f" {earlier} are those of an earlier run."
    if scale is not FULL:
        summary += f" From a {scale.name} run: less precise."
    lines = [[v.goal.what, v.goal_text(), v.text(), v.outcome()] for v in known]
    header = ["what", "goal", "measured", "outcome"]
    return ["## Goals", "", f"{machine}.", "", summary, "", *markdown(header, lines, texts=4)]
