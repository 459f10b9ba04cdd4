"""The list of goals. Those that an earlier record reached are floors now: 0.9 of the record in floors.json."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from harness import bounds as by
from harness import goal_values as of
from harness.goal_values import LARGE, Goal
from harness.keys import HIT, INSERT, MISS

RECORDS = Path(__file__).resolve().parents[1] / "floors.json"
KEPT = 0.9  # of a record
MILLION, MOST = LARGE

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
SPCONV = {"3^3": 12, "5^3": 40, "7^3": 80}
# Expected parts of a dense product's rate, forward, and speed-ups with the map, by channels.
CONVOLUTION = {16: (0.9, 6, 4.5), 32: (0.95, 5, 4), 64: (1.15, 3, 3), 128: (1.2, 2, 2)}
# Expected multiples of one process' time.
RANKS = {"insert": 4, "get": 3, "accumulate": 3}
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
STRINGS = ("pandas", "Arrow", "polars", "NumPy U", "NumPy S", "object")
KEPT_SEARCHES = ("kNN, kept", "radius, kept", "hybrid, kept")

ROWS = 5_000_000  # of the columns
QUERIES = 100_000  # of the neighbours

REDUCTIONS = (
    Goal(
        "group-by sum, 1,000 groups, spread keys, against the best peer", 4, "x", of.group_by(1000),
        bound=by.work("group-by sum, 1,000 groups", "data", operation="group-by sum", groups=1000, keys="spread"),
    ),
    Goal(
        "group-by sum, 10^6 groups, spread keys, against the best peer", 6, "x", of.group_by(MILLION),
        bound=by.work(
            "group-by sum, five rows per group", "data", operation="group-by sum", groups=MILLION, keys="spread"
        ),
    ),
    Goal(
        "group-by sum, all other keys, against the best peer", 1, "x", of.other_groups,
        bound=by.instructions("group-by sum, 1,000 groups", "group-by sum, five rows per group"),
    ),
    Goal(
        "kNN, k = 8, with the index, against the best peer", 2.5, "x", of.points("kNN, k = 8", 200_000),
        bound=by.work("kNN, k = 8", "points", QUERIES, operation="kNN, k = 8"),
    ),
    Goal(
        "radius 0.3, with the index, against the best peer", 3.5, "x", of.points("radius 0.3", 200_000),
        bound=by.work("radius 0.3", "points", QUERIES, operation="radius 0.3"),
    ),
    Goal(
        "voxel_downsample, 2M points, against the best peer", 3.5, "x", of.points("voxel_downsample", 2 * MILLION),
        bound=by.work("voxel_downsample", "points", 2 * MILLION, operation="voxel_downsample", data="2e6 points"),
    ),
)  # fmt: skip
TABLES = (
    *(
        Goal(
            f"{operation} on 2 ranks, of one process' time", target, "x", of.ranks(operation), at_most=True,
            bound=by.messages(operation),
        )
        for operation, target in RANKS.items()
    ),
    Goal("2 ranks: the model's error", 0.25, "of the measured time", of.model_error, at_most=True, bound=by.network),
    Goal("two shards, of one table's time", 1.2, "x", of.two_shards, at_most=True, bound=by.shards),
    Goal("64-byte keys, of their cache lines", 0.6, LIMIT, of.of_lines("bytes64", *LARGE), bound=by.WIDE),
    *(
        Goal(
            f"{operation} of 10^3 and 10^4 keys, against Boost", 1.2, "x", of.small_batches(operation),
            bound=by.small(operation),
        )
        for operation in (HIT, INSERT, "erase")
    ),
    Goal(
        "insert, each key 8 times, of random keys' time", 1.3, "x", of.repeated_keys, at_most=True, bound=by.REPEATED
    ),
    Goal(
        "find, 8-byte keys, 10^7", 0.9, LIMIT, of.of_gather(HIT, "int64", MOST), bound=by.of_limit(HIT, "int64", MOST)
    ),
    Goal(
        "insert, 8-byte keys, 10^7", 0.7, LIMIT, of.of_gather(INSERT, "int64", MOST),
        bound=by.of_limit(INSERT, "int64", MOST),
    ),
    Goal(
        "insert, int64, 10^6, one thread, against the best C++ map", 3, "x", of.best_peer(INSERT, "int64", MILLION),
        bound=by.best_of_limit(INSERT, "int64", MILLION),
    ),
    Goal("erase, 8-byte keys", 0.65, LIMIT, of.erase_of_gather, bound=by.of_limit("erase", "int64", MOST)),
    *(
        Goal(
            f"{name}, of the time before", most, "x", of.before(operation), at_most=True,
            bound=by.all_of(by.bytes_held, by.instructions(*counted)),
        )
        for name, operation, most, counted in (
            ("find, mean of 16 sizes", "find", 1.05, ("find (hit), int64", "find (hit), int32x3")),
            ("insert into a ready table", "insert", 1.05, ("insert, int64", "insert, int32x3")),
            ("growth from zero", "from zero", 1, ("insert, int64", "insert, int32x3")),
        )
    ),
    *(
        Goal(
            f"bytes per entry while growing from zero, {key}", most, "bytes", of.bytes_per_key(key), at_most=True,
            bound=by.bytes_held,
        )
        for key, most in (("int64", 48), ("int32x3", 44))
    ),
    Goal(
        "churn, 1,000 rounds, time of the last 100, of the first 100", 1.05, "x", of.churn("seconds"), at_most=True,
        bound=by.bytes_held,
    ),
    Goal(
        "churn, 1,000 rounds, capacity at the end, of that at the start", 1, "x", of.churn("capacity"), at_most=True,
        bound=by.bytes_held,
    ),
)  # fmt: skip
COLUMNS = (
    Goal(
        "unique of 5M int32 x 3, against polars", 12, "x", of.unique("int32x3", "polars", ROWS),
        bound=by.work("unique, int32x3", "unique", key="int32x3", rows=ROWS, keys="random"),
    ),
    Goal(
        "left join, against polars", 6, "x", of.left_join,
        bound=by.work("left join", "data", operation="left join"),
    ),
    Goal(
        "inner join, against the best peer", 1, "x", of.data_frames("inner join"),
        bound=by.time_of("data", operation="inner join"),
    ),
    Goal(
        "factorize int64, against pandas", 1, "x", of.data_frames("factorize"),
        bound=by.time_of("data", operation="factorize"),
    ),
    *(
        Goal(
            f"StringIndex, {form} strings, against pandas.factorize", 3, "x", of.data_frames(f"strings ({form})"),
            bound=by.work("StringIndex", "data", operation=f"strings ({form})"),
        )
        for form in STRINGS
    ),
)  # fmt: skip
SPATIAL = (
    *(
        Goal(
            f"kernel map {kernel} of 1e5 voxels, against spconv", target, "x", of.spconv(kernel, 100_000),
            bound=by.pairs(kernel, 100_000),
        )
        for kernel, target in SPCONV.items()
    ),
    Goal(
        "expansion to 10^7 voxels, transient memory", 1, "of the output", of.transient_memory, at_most=True,
        bound=by.expansion,
    ),
    *(
        Goal(
            f"convolution, {n} channels, {operation}, of a dense product's rate",
            target, "", of.conv_rate(operation, n), bound=by.dense,
        )
        for n, (forward, _, _) in CONVOLUTION.items()
        for operation, target in (("forward", forward), ("input gradient", 0.8), ("weight gradient", 0.8))
    ),
    *(
        Goal(
            f"convolution, {n} channels, with its map, {kind} voxels, against spconv",
            target, "x", of.conv_time("spconv", "spconv", n, kind=kind),
            bound=by.time_of("convolution", part="spconv", channels=n, kind=kind),
        )
        for n, (_, *targets) in CONVOLUTION.items()
        for kind, target in zip(("uniform", "room"), targets, strict=True)
    ),
    *(
        Goal(
            f"convolution, {n} channels, beside a busy process", 2.5, "x", of.conv_time("busy", BUSY, n), at_most=True,
            bound=by.even_share,
        )
        for n in CONVOLUTION
    ),
    Goal(
        "MinkUNet step of 1e5 voxels, against spconv", 3, "x", of.network_time,
        bound=by.all_of(*(by.time_of("networks", kind=kind) for kind in ("uniform", "room"))),
    ),
    *(
        Goal(
            f"VoxelBlockGrid, {method}, against Open3D", 1, "x", of.geometry(method),
            bound=by.time_of("geometry", operation=method),
        )
        for method in GRID_METHODS
    ),
    Goal(
        "neighbours, on an index that is there, against Open3D", 1, "x", of.searches(*KEPT_SEARCHES),
        bound=by.instructions("kNN, k = 8", "radius 0.3"),
    ),
)  # fmt: skip
EARLIER = (
    Goal("find, 8-byte keys, 10^6", 0.55, LIMIT, of.of_gather(HIT, "int64", MILLION)),
    Goal("insert, 8-byte keys, 10^6", 0.35, LIMIT, of.of_gather(INSERT, "int64", MILLION)),
    Goal("find, 12-byte keys, two cache lines per key", 0.60, LIMIT, of.of_gather(HIT, "int32x3", *LARGE)),
    *(
        Goal(
            f"{operation}, {key}, one thread, against the best C++ map", 3, "x", of.best_peer(operation, key, *LARGE),
            bound=by.best_of_limit(operation, key, *LARGE),
        )
        for operation in (HIT, MISS, INSERT)
        for key in ("int64", "int32x3")
        if (operation, key) != (INSERT, "int64")
    ),
    *(
        Goal(f"{operation}, {key}, against Open3D", target, "x", of.open3d(operation, key))
        for operation, targets in OPEN3D.items()
        for key, target in zip(("int64", "int32x3"), targets, strict=True)
    ),
    *(
        Goal(
            f"{operation}, {key}, gain of all threads, of the gather's", 0.9, "", of.threads_gain(operation, key),
            bound=by.scatters_gain(key) if operation == INSERT else by.instructions(f"{operation}, {key}"),
        )
        for operation in (HIT, INSERT)
        for key in ("int64", "int32x3")
    ),
    Goal("unique of 10^6 int32 x 3, against torch.unique(dim=0)", 50, "x", of.unique("int32x3", "torch")),
    Goal("unique of 10^6 int32 x 3, against np.unique(axis=0)", 20, "x", of.unique("int32x3", "np.unique")),
    Goal("unique of 10^6 int64, against torch.unique", 1.5, "x", of.unique("int64", "torch")),
    Goal("unique of 10^6 int64, against polars", 2, "x", of.unique("int64", "polars")),
    *(
        Goal(f"kernel map {kernel} of 5e5 voxels, against spconv", target, "x", of.spconv(kernel, 500_000))
        for kernel, target in (("3^3", 5), ("5^3", 8), ("7^3", 8))
    ),
    *(
        Goal(f"{operation}, {name}, against TensorFlow's better table", target, "x", of.tensorflow(operation, *dims))
        for operation in ("insert", "lookup")
        for name, target, dims in (("vectors", 3, (16, 64)), ("single values", 1.5, (1,)))
    ),
    Goal("growth from zero, time of reserved", 2, "x", of.growth, at_most=True),
    Goal("bytes per entry beyond key and value, 8-byte keys", 40, "bytes", of.bytes_beyond(False), True),
    Goal("bytes per entry beyond key and value, wider keys", 24, "bytes", of.bytes_beyond(True), True),
    Goal("find of one key from Python", 4, "µs", of.one_key, at_most=True),
    Goal("structured keys, time of random ones", 3, "x", of.patterns, at_most=True),
    Goal("packed search, against vector keys", 2.5, "x", of.packed),
    Goal("kernel map's peak memory, of its pairs", 3, "x", of.map_memory, at_most=True),
)  # fmt: skip


def floor(goal: Goal, records: dict[str, float]) -> Goal:
    """The goal as a floor if a record reached it, else as it is."""
    record = records.get(goal.what)
    if record is None:
        return goal
    target = record / KEPT if goal.at_most else record * KEPT
    return replace(goal, target=target, record=record)


GOALS = (
    *REDUCTIONS,
    *TABLES,
    *COLUMNS,
    *SPATIAL,
    *(floor(goal, json.loads(RECORDS.read_text())) for goal in EARLIER),
)
