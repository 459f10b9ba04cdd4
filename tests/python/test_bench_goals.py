"""The goals of the benchmark: what is measured for each, its floors, and README's factors.

Over 400 lines, because there is one short test per kind of goal.
"""

import json
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from harness import bounds, factors, goal_list, goals, report  # noqa: E402
from harness.case import FULL, Sample  # noqa: E402
from harness.goal_values import Goal, Measured  # noqa: E402
from suites import instructions  # noqa: E402


def judged(suite, samples):
    """The measurement of each goal that these samples decide, by name."""
    return {v.goal.what: v for v in goals.judge({suite: samples}) if v.measured}


def measured(**medians):
    """Data in which Open3D took the given multiple of our time for each operation."""
    samples = []
    for operation, times in medians.items():
        labels = {"key": "int64", "rows": 1_000_000, "operation": operation}
        samples.append(Sample("tensorhash", labels, [1.0, 1.0, 9.0]))
        samples.append(Sample("Open3D", labels, [times] * 3))
    return {"tables": samples}


def test_goals_are_judged_by_the_data():
    samples = [
        Sample(name, {"operation": operation}, [seconds] * 3)
        for operation, times in (("insert", 2.0), ("get", 4.0))
        for name, seconds in (("2 ranks", times), ("one process", 1.0))
    ]
    insert, get = judged("ranks", samples).values()
    assert (insert.score, insert.outcome()) == (2.0, "reached")
    assert (get.score, get.outcome()) == (0.75, "missed: 75% of the goal")


def test_a_goal_that_a_record_reached_is_a_floor_at_nine_tenths_of_it():
    records = json.loads(goal_list.RECORDS.read_text())
    record = records["insert, int64, against Open3D"]
    verdicts = goals.judge(measured(insert=0.95 * record, erase=1.0))
    insert, erase = (v for v in verdicts if v.measured)
    assert insert.goal.target == pytest.approx(0.9 * record)
    assert insert.outcome() == "held"
    assert f"(record {report.number(record)})" in insert.goal_text()
    assert erase.outcome().endswith("of the floor")
    lines = goals.section([insert, erase], FULL, "a machine")
    assert "1 of 2 floors held. If several values were measured, the worst one decides." in lines
    assert lines.index("### Floors") < lines.index("| what | floor | measured | outcome |")


def test_a_floor_from_above_is_the_record_divided_by_nine_tenths():
    record = json.loads(goal_list.RECORDS.read_text())["growth from zero, time of reserved"]
    (goal,) = (g for g in goal_list.GOALS if g.what == "growth from zero, time of reserved")
    assert goal.at_most
    assert goal.target == pytest.approx(record / 0.9)


def test_every_record_belongs_to_a_goal_and_no_goal_comes_twice():
    names = [goal.what for goal in goal_list.GOALS]
    assert len(names) == len(set(names))
    assert json.loads(goal_list.RECORDS.read_text()).keys() <= set(names)


def test_readme_has_the_factors_of_the_results():
    readme, results = factors.README.read_text(), report.RESULTS.read_text()
    assert factors.updated(readme, results) == readme
    texts = goals.measured_texts(results)
    assert [goal for _, goal, _ in factors.FACTORS if goal not in texts] == []


def test_factors_are_rounded_down_and_taken_from_their_condition():
    lines = [
        f"| {goal} | 1x | {f'other: 9, {where}: ' if where else ''}7.96 | reached |"
        for _, goal, where in factors.FACTORS
    ]
    readme = " and\n".join(words.format(123).replace(" ", "\n") for words, _, _ in factors.FACTORS)
    assert factors.updated(readme, "\n".join(lines)) == readme.replace("123x", "7x")


def test_a_factor_that_was_not_measured_stays_and_one_that_readme_lacks_is_an_error():
    words, goal, _ = factors.FACTORS[0]
    assert factors.updated(words.format(5), "") == words.format(5)
    with pytest.raises(ValueError, match="expected .* once, found it 0 times"):
        factors.updated("nothing", f"| {goal} | 1x | 7.96 | reached |")


def test_a_goal_with_an_upper_limit_is_missed_from_above():
    labels = {"what": "call", "rows": 1, "operation": "find"}
    (verdict,) = judged("overhead", [Sample("tensorhash", labels, [8e-6])]).values()
    target = verdict.goal.target
    assert verdict.score == pytest.approx(target / 8)
    assert verdict.goal_text().startswith(f"at most {target:.3g} µs")


def test_packed_search_is_judged_at_both_sizes():
    samples = [
        Sample(contender, {"rows": rows, "operation": operation}, [seconds])
        for rows, slow in ((100_000, 2.0), (1_000_000, 3.0))
        for operation in ("hit", "miss")
        for contender, seconds in (("PackedHashTable", 1.0), ("TorchHashTable", slow))
    ]
    (verdict,) = judged("packed", samples).values()
    assert verdict.measured == {"hit 1e5": 2, "miss 1e5": 2, "hit 1e6": 3, "miss 1e6": 3}
    assert verdict.score == pytest.approx(2 / verdict.goal.target)


def test_the_gain_of_threads_is_compared_with_that_of_gather():
    from suites.threads import ALL, ONE

    seconds = {
        ("gather", ONE): 4.0,
        ("gather", ALL): 2.0,
        ("tensorhash", ONE): 6.0,
        ("tensorhash", ALL): 4.0,
    }
    samples = [
        Sample(
            contender,
            {"key": "int64", "rows": 1_000_000, "operation": "insert", "threads": way},
            [s],
        )
        for (contender, way), s in seconds.items()
    ]
    (verdict,) = judged("threads", samples).values()
    assert verdict.measured == {"1e6": 0.75}


def test_kernel_maps_are_compared_with_spconv_at_both_sizes():
    samples = [
        Sample(
            contender,
            {"part": "spconv", "voxels": voxels, "rows": rows, "kernel": kernel},
            [seconds],
        )
        for voxels in ("uniform", "LiDAR")
        for rows in (100_000, 500_000)
        for kernel in ("3^3", "5^3", "7^3")
        for contender, seconds in (("tensorhash", 1.0), ("spconv", 7.0))
    ]
    verdicts = judged("kernel_maps", samples)
    assert {v.goal.what.split()[4]: [] for v in verdicts.values()}.keys() == {"1e5", "5e5"}
    targets = [verdict.goal.target for verdict in verdicts.values()]
    assert targets[:3] == [12, 40, 80]
    assert [v.score >= 1 for v in verdicts.values()] == [False] * 6


def test_tensorflows_tables_are_judged_for_insert_and_lookup_at_every_dim():
    samples = [
        Sample(contender, {"dim": dim, "operation": operation, "rows": 1_000_000}, [seconds])
        for dim in (1, 16, 64)
        for operation in ("insert", "insert again", "lookup")
        for contender, seconds in (
            ("tensorhash", 1.0),
            ("MutableHashTable", 9.0),
            ("DenseHashTable", 2.0),
        )
    ]
    verdicts = judged("tensorflow", samples)
    both = [{"dim 16": 2, "dim 64": 2}, {"dim 1": 2}]
    assert [v.measured for v in verdicts.values()] == both * 2
    assert [what.split(",")[0] for what in verdicts] == ["insert"] * 2 + ["lookup"] * 2


def test_memory_limits_do_not_count_as_peers():
    labels = {"key": "int64", "rows": 1_000_000, "threads": 1, "operation": "insert"}
    times = {"tensorhash": 1.0, "gather": 0.2, "scatter": 0.5, "boost::unordered_flat_map": 4.0}
    found = judged(
        "cpp", [Sample(contender, labels, [seconds]) for contender, seconds in times.items()]
    )
    best = found["insert, int64, 10^6, one thread, against the best C++ map"]
    assert best.measured == {"1e6": 4.0}


def test_convolutions_are_judged_by_rate_by_spconv_and_beside_a_busy_process():
    def sample(contender, part, operation, seconds, products=0):
        kind = {"kind": "uniform"} if part == "spconv" else {}
        labels = {"part": part, "channels": 16, "operation": operation, **kind}
        return Sample(contender, labels, [seconds], {"products": products} if products else {})

    samples = [
        sample("dense matmul", "matmul", "forward", 1.0, 100),
        sample("tensorhash", "matmul", "forward", 4.0, 380),
        sample("tensorhash", "matmul", "input gradient", 4.0, 300),
        sample("tensorhash", "spconv", "with map", 1.0),
        sample("spconv", "spconv", "with map", 7.0),
        sample("tensorhash", "busy", "busy", 1.0),
        sample("beside a busy process", "busy", "busy", 3.0),
    ]
    verdicts = judged("convolution", samples)
    assert [(v.measured[""], v.score >= 1) for v in verdicts.values()] == [
        (0.95, True),
        (0.75, False),
        (7, True),
        (3, False),
    ]


def timed(contender, seconds, **labels):
    return Sample(contender, labels, [seconds])


def test_group_by_is_compared_with_the_fastest_peer_and_hard_keys_have_their_own_goals():
    samples = [
        timed(name, seconds, operation="group-by sum", groups=groups, keys=keys)
        for groups, keys in ((1000, "spread"), (1_000_000, "spread"), (1000, "zipf"))
        for name, seconds in (("tensorhash", 1.0), ("pandas", 9.0), ("DuckDB", 5.0))
    ]
    verdicts = judged("data", samples)
    measured = {what.split(", against")[0]: v.measured for what, v in verdicts.items()}
    assert measured == {
        "group-by sum, 1,000 groups, spread keys": {"": 5},
        "group-by sum, 10^6 groups, spread keys": {"": 5},
        "group-by sum, all other keys": {"1e3 zipf": 5},
    }
    assert [v.goal.target for v in verdicts.values()] == [4, 6, 1]


def test_64_byte_keys_are_compared_with_the_lines_that_they_touch():
    samples = [
        timed(name, seconds, key="bytes64", rows=1_000_000, threads=2, operation=operation)
        for operation in ("find (hit)", "find (miss)", "insert")
        for name, seconds in (("tensorhash", 1.0), ("gather", 0.3), ("scatter", 0.7))
    ]
    (verdict,) = judged("cpp", samples).values()
    assert verdict.measured == {"find (hit) 1e6": 0.3, "find (miss) 1e6": 0.3, "insert 1e6": 0.7}


def test_erasures_are_judged_on_one_thread_and_on_all():
    samples = [
        timed(name, seconds, key="int64", rows=rows, threads=threads, operation="erase")
        for threads, ours in ((1, 2.0), (2, 4.0))
        for rows in (1_000_000, 10_000_000)
        for name, seconds in (("tensorhash", ours), ("gather", 1.0))
    ]
    (verdict,) = judged("cpp", samples).values()
    assert list(verdict.measured.values()) == [0.5, 0.5, 0.25, 0.25]
    assert (verdict.goal.target, verdict.outcome()) == (0.65, "missed: 38% of the goal")


def test_small_batches_are_compared_with_boost_on_one_thread():
    samples = [
        timed(name, seconds, key="int64", rows=rows, threads=threads, operation="insert")
        for rows, boost in ((1_000, 1.5), (10_000, 1.0))
        for threads in (2, 1)
        for name, seconds in (("tensorhash", threads), ("boost::unordered_flat_map", boost))
    ]
    (verdict,) = judged("cpp", samples).values()
    assert verdict.measured == {"1e3": 1.5, "1e4": 1.0}


def test_repeated_keys_are_compared_with_random_ones():
    samples = [
        timed("tensorhash", seconds, key="int64", keys=keys, operation="insert")
        for keys, seconds in (("random", 2.0), ("each 8 times", 3.0), ("each twice", 9.0))
    ]
    verdict = judged("patterns", samples)["insert, each key 8 times, of random keys' time"]
    assert verdict.measured == {"int64": 1.5}
    assert verdict.score == pytest.approx(1.3 / 1.5)


def test_the_model_of_two_ranks_is_judged_by_its_largest_error():
    samples = [
        Sample("2 ranks", {"operation": operation}, [2.0], {"model": model})
        for operation, model in (("insert", 1.5), ("get", 2.2), ("find", 9.0))
    ]
    (verdict,) = (v for v in judged("ranks", samples).values() if "model" in v.goal.what)
    assert verdict.measured == pytest.approx({"insert": 0.25, "get": 0.1})
    assert verdict.score == pytest.approx(1)


def test_an_older_version_is_compared_by_operation_and_key():
    samples = [
        timed(name, seconds, key=key, rows=10, operation=operation)
        for operation in ("find (hit)", "find (miss)", "insert", "from zero")
        for key in ("int64", "int32x3")
        for name, seconds in (("tensorhash", 1.2), ("before", 1.0))
    ]
    verdicts = judged("before", samples)
    assert [v.goal.target for v in verdicts.values()] == [1.05, 1.05, 1]
    assert [len(v.measured) for v in verdicts.values()] == [4, 2, 2]
    assert {value for v in verdicts.values() for value in v.measured.values()} == {1.2}
    assert judged("before", samples[::2]) == {}


def test_two_shards_are_a_multiple_of_one_table():
    samples = [
        timed(name, seconds, operation=operation)
        for operation in ("insert", "find")
        for name, seconds in (("1 table", 2.0), ("2 shards", 3.0), ("4 shards", 9.0))
    ]
    (verdict,) = judged("sharded", samples).values()
    assert verdict.measured == {"insert": 1.5, "find": 1.5}


def test_bytes_count_from_a_million_keys_on_and_a_size_without_memory_is_left_out():
    rows = {1_000_000: {"most": 99.0}, 10_000_000: {"most": 47.0}, 200_000_000: {"needed": 22.0}}
    samples = [
        Sample("tensorhash", {"key": "int64", "rows": n}, numbers=numbers)
        for n, numbers in rows.items()
    ]
    (verdict,) = judged("scale", samples).values()
    assert verdict.measured == {"1e7": 47.0}
    assert verdict.score >= 1


def test_the_transient_memory_of_an_expansion_is_a_part_of_its_output():
    numbers = {"transient": 300, "output": 200}
    labels = {"operation": "expand_coords", "voxels": "cube"}
    (verdict,) = judged("expansion", [Sample("tensorhash", labels, numbers=numbers)]).values()
    assert verdict.measured == {"expand_coords, cube": 1.5}
    assert verdict.goal.at_most


def test_points_are_compared_with_the_fastest_peer_at_the_size_of_the_goal():
    samples = [
        timed(name, seconds, operation="voxel_downsample", data=data)
        for data, theirs in (("2e5 points", 2.0), ("2e6 points", 4.0))
        for name, seconds in (("tensorhash", 1.0), ("Open3D", 8.0), ("small_gicp", theirs))
    ]
    (verdict,) = judged("points", samples).values()
    assert verdict.measured == {"": 4.0}


def test_the_values_of_a_table_are_read_as_they_were_written():
    values = {"1e6, 1 thread": 0.5, "expand_coords, cube": 1.25}
    text = goals.Verdict(goal_list.GOALS[0], values).text()
    assert goals.values_in(text) == values


def counted(operation, per_row):
    return Sample("tensorhash", {"operation": operation}, numbers={"per row": per_row})


def test_a_missed_goal_prints_the_figures_that_bound_it():
    labels = {"operation": "left join", "rows": 1_000_000}
    data = {
        "data": [
            Sample(name, labels, [seconds])
            for name, seconds in (("tensorhash", 0.1), ("polars", 0.3))
        ],
        "instructions": [counted("left join", 200.0)],
    }
    (verdict,) = (v for v in goals.judge(data) if v.measured)
    assert verdict.outcome() == (
        "missed: 50% of the goal. 200 instructions per row, of x86-64-v3; 100 ns per row and thread"
    )
    data["data"][0].seconds = [0.01]
    (verdict,) = (v for v in goals.judge(data) if v.measured)
    assert verdict.outcome() == "reached"


def test_small_batches_print_what_the_limit_would_reach():
    samples = [
        timed(name, seconds, key="int64", rows=rows, threads=1, operation="find (hit)")
        for rows in (1_000, 10_000)
        for name, seconds in (
            ("tensorhash", 2.0),
            ("gather", 0.5),
            ("boost::unordered_flat_map", 1.5),
        )
    ]
    found = judged("cpp", samples)["find (hit) of 10^3 and 10^4 keys, against Boost"]
    assert found.bound == "the gather limit itself would reach 1e3 3.00x, 1e4 3.00x"


def test_ranks_print_their_messages_and_the_rest():
    numbers = {"messages": 3.0, "alone": 1.5}
    samples = [
        Sample("2 ranks", {"operation": "insert"}, [6.0], numbers),
        Sample("one process", {"operation": "insert"}, [1.0]),
    ]
    (verdict,) = judged("ranks", samples).values()
    assert verdict.bound == "messages are 50% of the time; a rank without any takes 1.50x"


def test_every_goal_that_no_record_reached_says_what_bounds_it(monkeypatch):
    asked = set()
    monkeypatch.setattr(bounds, "per_row", lambda _, operation: asked.add(operation))
    groups = (goal_list.REDUCTIONS, goal_list.TABLES, goal_list.COLUMNS, goal_list.SPATIAL)
    without = Goal("", 0, "", lambda data: iter([])).bound
    assert [goal.what for group in groups for goal in group if goal.bound is without] == []
    for goal in goal_list.GOALS:
        goal.bound(Measured({"data": [timed("tensorhash", 1.0, operation="left join")]}))
    assert asked
    assert asked <= set(instructions.OPERATIONS)


def test_a_churn_is_judged_by_its_last_rounds_and_by_its_capacity():
    numbers = {
        "first seconds": 1.0,
        "last seconds": 1.02,
        "first capacity": 100,
        "last capacity": 200,
    }
    labels = {"operation": "1,000 rounds", "rows": 1_000_000}
    time, capacity = judged("churn", [Sample("tensorhash", labels, numbers=numbers)]).values()
    assert (time.measured, time.outcome()) == ({"": 1.02}, "reached")
    assert (capacity.measured, capacity.score) == ({"": 2.0}, 0.5)
