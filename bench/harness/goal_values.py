"""What a goal is, and what the goals measure: each function gives the values of one goal by condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.case import Sample, rows_text
from harness.clock import median
from harness.keys import HIT, INSERT, MISS, STRUCTURED
from harness.report import ALL_THREADS, BEFORE, GATHER, LIMITS, ONE_THREAD, OURS, SCATTER

LARGE = (1_000_000, 10_000_000)


class Measured:
    """All samples, selected by suite, contender and labels."""

    def __init__(self, suites: dict[str, list[Sample]]) -> None:
        self.suites = suites

    def samples(self, suite: str, **labels: Any) -> list[Sample]:
        wanted = labels.items()
        known = self.suites.get(suite, [])
        return [s for s in known if all(s.labels.get(name) == value for name, value in wanted)]

    def seconds(self, suite: str, contender: str, **labels: Any) -> float | None:
        for sample in self.samples(suite, **labels):
            if sample.contender == contender and sample.seconds:
                return median(sample.seconds)
        return None

    def ratio(self, suite: str, slow: str, fast: str, **labels: Any) -> float | None:
        above, below = (self.seconds(suite, contender, **labels) for contender in (slow, fast))
        return above / below if above and below else None

    def best(self, suite: str, **labels: Any) -> float | None:
        """The time of the fastest contender other than us and the limits, divided by ours."""
        found = [sample for sample in self.samples(suite, **labels) if sample.seconds]
        peers = [median(s.seconds) for s in found if s.contender not in (OURS, *LIMITS)]
        ours = self.seconds(suite, OURS, **labels)
        return min(peers) / ours if peers and ours else None

    def threads(self) -> int:
        return max((sample.labels["threads"] for sample in self.samples("cpp")), default=1)


# A condition such as "1e6", and the value measured under it; None: not measured.
Values = Iterator[tuple[str, float | None]]


@dataclass(frozen=True)
class Goal:
    """`record` is the value of the record that reached an earlier goal: its target is a floor.

    `bound` gives the figures that a missed goal prints."""

    what: str
    target: float
    unit: str
    values: Callable[[Measured], Values]
    at_most: bool = False
    bound: Callable[[Measured], str] = lambda data: ""
    record: float | None = None


def of_gather(operation: str, key: str, *rows: int) -> Callable[[Measured], Values]:
    def values(data: Measured) -> Values:
        where = {"key": key, "operation": operation, "threads": data.threads()}
        for n in rows:
            yield rows_text(n), data.ratio("cpp", GATHER, OURS, rows=n, **where)

    return values


def of_lines(key: str, *rows: int) -> Callable[[Measured], Values]:
    """Our part of the limit of the cache lines of a wide key: reads for a find, else writes."""

    def values(data: Measured) -> Values:
        where = {"key": key, "threads": data.threads()}
        limits = {HIT: GATHER, MISS: GATHER, INSERT: SCATTER}
        for operation, limit in limits.items():
            for n in rows:
                ratio = data.ratio("cpp", limit, OURS, rows=n, operation=operation, **where)
                yield f"{operation} {rows_text(n)}", ratio

    return values


def erase_of_gather(data: Measured) -> Values:
    for threads in sorted({1, data.threads()}):
        where = {"key": "int64", "operation": "erase", "threads": threads}
        for n in LARGE:
            counted = f"{threads} thread{'s' * (threads > 1)}"
            yield f"{rows_text(n)}, {counted}", data.ratio("cpp", GATHER, OURS, rows=n, **where)


def small_batches(operation: str) -> Callable[[Measured], Values]:
    def values(data: Measured) -> Values:
        for rows in (1_000, 10_000):
            where = {"key": "int64", "rows": rows, "threads": 1, "operation": operation}
            yield rows_text(rows), data.ratio("cpp", "boost::unordered_flat_map", OURS, **where)

    return values


def best_peer(operation: str, key: str, *rows: int) -> Callable[[Measured], Values]:
    """Against the fastest C++ map on one thread."""

    def values(data: Measured) -> Values:
        for n in rows:
            where = {"key": key, "rows": n, "threads": 1, "operation": operation}
            yield rows_text(n), data.best("cpp", **where)

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


def unique(key: str, peer: str, rows: int = 1_000_000) -> Callable[[Measured], Values]:
    where = {"key": key, "rows": rows, "keys": "random"}
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


HARD_GROUPS = (1_000, 1_000_000)  # with spread keys: these have goals of their own


def group_by(groups: int) -> Callable[[Measured], Values]:
    """The fastest peer's time of a sum by spread keys."""
    where = {"operation": "group-by sum", "groups": groups, "keys": "spread"}
    return lambda data: iter([("", data.best("data", **where))])


def other_groups(data: Measured) -> Values:
    """The same for all other numbers of groups and keys."""
    for sample in data.samples("data", operation="group-by sum"):
        groups, keys = sample.labels["groups"], sample.labels["keys"]
        if sample.contender == OURS and not (groups in HARD_GROUPS and keys == "spread"):
            yield f"{rows_text(groups)} {keys}", data.best("data", **sample.labels)


def left_join(data: Measured) -> Values:
    yield "", data.ratio("data", "polars", OURS, operation="left join")


def data_frames(operation: str) -> Callable[[Measured], Values]:
    """The fastest peer's time of an operation on columns."""

    def values(data: Measured) -> Values:
        for sample in data.samples("data", operation=operation):
            if sample.contender == OURS:
                yield "", data.best("data", **sample.labels)

    return values


def points(operation: str, rows: int) -> Callable[[Measured], Values]:
    """The fastest peer's time of an operation on points."""
    where = {"operation": operation, "data": f"{rows_text(rows)} points"}
    return lambda data: iter([("", data.best("points", **where))])


def ranks(operation: str) -> Callable[[Measured], Values]:
    """The ranks' time as a multiple of one process'."""
    return lambda data: iter(
        [("", data.ratio("ranks", "2 ranks", "one process", operation=operation))]
    )


def model_error(data: Measured) -> Values:
    """By how much the model of harness/ranks_model.py misses the measured time, as a part of it."""
    for sample in data.samples("ranks"):
        operation = sample.labels["operation"]
        judged = operation in ("insert", "get", "accumulate") and sample.contender == "2 ranks"
        if judged and "model" in sample.numbers:
            yield operation, abs(sample.numbers["model"] / median(sample.seconds) - 1)


def before(operation: str) -> Callable[[Measured], Values]:
    """Our time as a multiple of the time that an older version takes."""

    def values(data: Measured) -> Values:
        for sample in data.samples("before"):
            if sample.contender == OURS and sample.labels["operation"].startswith(operation):
                ratio = data.ratio("before", OURS, BEFORE, **sample.labels)
                yield f"{sample.labels['operation']} {sample.labels['key']}", ratio

    return values


def two_shards(data: Measured) -> Values:
    for operation in ("insert", "find", "get", "erase"):
        yield operation, data.ratio("sharded", "2 shards", "1 table", operation=operation)


def repeated_keys(data: Measured) -> Values:
    """Inserts of keys that come 8 times, as a multiple of random keys' time."""
    for key in ("int64", "int32x3"):
        where = {"key": key, "operation": INSERT}
        random = data.seconds("patterns", OURS, keys="random", **where)
        repeated = data.seconds("patterns", OURS, keys="each 8 times", **where)
        yield key, repeated / random if repeated and random else None


def transient_memory(data: Measured) -> Values:
    """The memory of an expansion beyond its output, as a multiple of the output."""
    for sample in data.samples("expansion"):
        where = f"{sample.labels['operation']}, {sample.labels['voxels']}"
        yield where, sample.numbers["transient"] / sample.numbers["output"]


def bytes_per_key(key: str) -> Callable[[Measured], Values]:
    """The most bytes per entry while a table grows from zero, from 10^6 keys on.

    A sample has the most bytes from a tenth of its rows on, so it must have 10^7 rows.
    """

    def values(data: Measured) -> Values:
        for sample in data.samples("scale", key=key):
            if sample.labels["rows"] >= 10_000_000 and "most" in sample.numbers:
                yield rows_text(sample.labels["rows"]), sample.numbers["most"]

    return values


def churn(what: str) -> Callable[[Measured], Values]:
    """The end of a churn as a multiple of its beginning."""

    def values(data: Measured) -> Values:
        for sample in data.samples("churn", operation="1,000 rounds"):
            yield "", sample.numbers[f"last {what}"] / sample.numbers[f"first {what}"]

    return values


def searches(*operations: str) -> Callable[[Measured], Values]:
    def values(data: Measured) -> Values:
        for operation in operations:
            yield operation, data.ratio("points", "Open3D", OURS, operation=operation)

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
                found[sample.contender, sample.labels["operation"]] = rate
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
