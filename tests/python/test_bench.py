"""The benchmark harness: its statistics, its goals, and what it keeps after a crash."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import suites  # noqa: E402
from harness import clock, goals, report, runner, store  # noqa: E402
from harness.case import FULL, QUICK, SMOKE, Sample, Scale, chosen, rows_text  # noqa: E402
from harness.progress import Progress  # noqa: E402

BROKEN = """
import os, signal
from harness.case import Case, Sample

TITLE, ABOUT = "Broken", "Breaks."

def good(scale):
    return [Sample("tensorhash", {"operation": "a"}, [1.0])]

def raises(scale):
    raise ValueError("so it goes")

def dies(scale):
    os.kill(os.getpid(), signal.SIGKILL)

def cases(scale):
    works = {"first": good, "raises": raises, "dies": dies, "last": good}
    return [Case(f"broken/{name}", work) for name, work in works.items()]
"""


def seconds_of(scale, rounds, **taken):
    """Runs in_turn with contenders that take these seconds per round, on a fake clock."""
    now, order = [0.0], []

    def contender(who):
        def one_round(watch):
            order.append(who)
            with watch("work"):
                now[0] += taken[who]

        return one_round

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock.time, "perf_counter", lambda: now[0])
        times = clock.in_turn({who: contender(who) for who in taken}, scale, rounds)
    return times, order


def test_contenders_take_turns_and_the_first_round_does_not_count():
    times, order = seconds_of(Scale("test", 10, 1, 100.0), 3, ours=1.0, peer=2.0)
    assert order == ["ours", "peer"] * 4
    assert times == {"ours": {"work": [1.0] * 3}, "peer": {"work": [2.0] * 3}}


def test_a_slow_contender_skips_rounds_beyond_its_budget():
    times, order = seconds_of(Scale("test", 10, 1, 10.0), 3, ours=1.0, slow=9.0, slower=50.0)
    assert times["slow"] == {"work": [9.0, 9.0]}
    assert times["slower"] == {"work": [50.0]}
    assert order.count("ours") == 4


def test_the_first_contender_has_twice_the_budget():
    times, _ = seconds_of(Scale("test", 10, 1, 10.0), 9, ours=4.0, peer=4.0)
    assert times == {"ours": {"work": [4.0] * 6}, "peer": {"work": [4.0] * 3}}


def test_the_spread_is_half_the_quartile_range_of_the_median():
    assert clock.median([4.0, 1.0, 2.0, 3.0, 5.0]) == 3.0
    assert clock.spread([4.0, 1.0, 2.0, 3.0, 5.0]) == pytest.approx(1 / 3)


def test_only_accepts_parts_of_names_and_wildcards():
    names = ["tables/int64/1e6", "tables/int32x3/1e6", "unique/int64/1e6"]
    assert chosen(names, []) == names
    assert chosen(names, ["tables"]) == names[:2]
    assert chosen(names, ["t*int64", "unique"]) == [names[0], names[2]]
    assert chosen(names, ["no such"]) == []


def test_rows_are_short_texts():
    assert [rows_text(n) for n in (1, 100, 1_000, 500_000, 10_000_000, 1234)] == [
        "1",
        "100",
        "1e3",
        "5e5",
        "1e7",
        "1234",
    ]


@pytest.mark.parametrize("scale", [FULL, QUICK, SMOKE], ids=lambda scale: scale.name)
def test_every_case_has_its_own_name_that_begins_with_its_suite(scale):
    for suite, module in suites.load().items():
        names = [case.name for case in module.cases(scale)]
        assert len(names) == len(set(names)) > 0
        assert all(name.startswith(f"{suite}/") for name in names)


def measured(**medians):
    """Data in which Open3D took the given multiple of our time for each operation."""
    samples = []
    for operation, times in medians.items():
        labels = {"key": "int64", "rows": 1_000_000, "operation": operation}
        samples.append(Sample("tensorhash", labels, [1.0, 1.0, 9.0]))
        samples.append(Sample("Open3D", labels, [times] * 3))
    return {"tables": store.SuiteData("a machine", {}, samples)}


def test_goals_are_judged_by_the_data():
    verdicts = goals.judge(measured(insert=25.0, erase=5.0))
    known = {v.goal.what: v for v in verdicts if v.measured}
    assert list(known) == ["insert, int64, against Open3D", "erase, int64, against Open3D"]
    insert, erase = known.values()
    assert (insert.score, insert.outcome()) == (1.25, "reached")
    assert (erase.score, erase.outcome()) == (0.25, "missed: 25% of the goal")


def test_a_goal_with_an_upper_limit_is_missed_from_above():
    labels = {"what": "call", "rows": 1, "operation": "find"}
    data = store.SuiteData("a machine", {}, [Sample("tensorhash", labels, [8e-6])])
    (verdict,) = (v for v in goals.judge({"overhead": data}) if v.measured)
    assert verdict.score == pytest.approx(0.5)
    assert verdict.goal_text() == "under 4 µs"


def judged(suite, samples):
    """The measurement of each goal that these samples decide, by name."""
    data = store.SuiteData("a machine", {}, samples)
    return {v.goal.what: v for v in goals.judge({suite: data}) if v.measured}


def test_packed_search_is_judged_at_both_sizes():
    samples = [
        Sample(who, {"rows": rows, "operation": operation}, [seconds])
        for rows, slow in ((100_000, 2.0), (1_000_000, 3.0))
        for operation in ("hit", "miss")
        for who, seconds in (("PackedHashTable", 1.0), ("TorchHashTable", slow))
    ]
    (verdict,) = judged("packed", samples).values()
    assert verdict.measured == {"hit 1e5": 2, "miss 1e5": 2, "hit 1e6": 3, "miss 1e6": 3}
    assert (verdict.goal.target, verdict.score) == (2.5, 0.8)


def test_the_gain_of_threads_is_compared_with_that_of_gather():
    from suites.threads import ALL, ONE

    seconds = {
        ("gather", ONE): 4.0,
        ("gather", ALL): 2.0,
        ("tensorhash", ONE): 6.0,
        ("tensorhash", ALL): 4.0,
    }
    samples = [
        Sample(who, {"key": "int64", "rows": 1_000_000, "operation": "insert", "threads": way}, [s])
        for (who, way), s in seconds.items()
    ]
    (verdict,) = judged("threads", samples).values()
    assert verdict.measured == {"1e6": 0.75}


def test_kernel_maps_are_compared_with_spconv_at_both_sizes():
    samples = [
        Sample(who, {"part": "spconv", "voxels": voxels, "rows": rows, "kernel": kernel}, [seconds])
        for voxels in ("uniform", "LiDAR")
        for rows in (100_000, 500_000)
        for kernel in ("3^3", "5^3", "7^3")
        for who, seconds in (("tensorhash", 1.0), ("spconv", 7.0))
    ]
    verdicts = judged("kernel_maps", samples)
    assert {v.goal.what.split()[4]: [] for v in verdicts.values()}.keys() == {"1e5", "5e5"}
    targets = [verdict.goal.target for verdict in verdicts.values()]
    assert targets == [10, 15, 15, 5, 8, 8]
    assert [v.score >= 1 for v in verdicts.values()] == [False] * 3 + [True, False, False]


def test_tensorflows_tables_are_judged_for_insert_and_lookup_at_every_dim():
    samples = [
        Sample(who, {"dim": dim, "operation": operation, "rows": 1_000_000}, [seconds])
        for dim in (1, 16, 64)
        for operation in ("insert", "insert again", "lookup")
        for who, seconds in (
            ("tensorhash", 1.0),
            ("MutableHashTable", 9.0),
            ("DenseHashTable", 2.0),
        )
    ]
    verdicts = judged("tensorflow", samples)
    assert [(v.goal.target, v.measured) for v in verdicts.values()] == [
        (3, {"dim 16": 2, "dim 64": 2}),
        (1.5, {"dim 1": 2}),
    ] * 2
    assert [what.split(",")[0] for what in verdicts] == ["insert"] * 2 + ["lookup"] * 2


@pytest.mark.parametrize("size", [1, 3, 7])
def test_coarse_cells_are_counted_as_the_hierarchical_path_looks_them_up(size):
    import numpy as np

    import tensorhash.coords as thc
    from suites import kernel_maps

    coords = kernel_maps.uniform(300, 0.02)
    coords[::3, 0] = 1
    cells = {(b, *(np.array(p) // 4)) for b, *p in coords.tolist()}
    reach = np.arange(-(size // 2), size // 2 + 1)
    asked = occupied = 0
    for batch, *place in coords.tolist():
        axes = [sorted({(at + step) // 4 for step in reach.tolist()}) for at in place]
        around = [(batch, *cell) for cell in itertools.product(*axes)]
        asked += len(around)
        occupied += sum(cell in cells for cell in around)
    assert kernel_maps.coarse_cells(coords, size) == (asked, occupied)
    made = thc.generate_kernel_map(coords, coords, 1, size, strategy="hierarchical")
    assert made.probes[0] == asked


def test_a_fifth_of_the_coarse_cells_of_the_sparse_grid_are_occupied():
    import numpy as np

    from suites import kernel_maps

    coords = kernel_maps.DATA["sparse"](20_000)
    cells = len(np.unique(coords // [1, 4, 4, 4], axis=0))
    assert 0.18 < cells / ((coords.max() + 1) / 4) ** 3 < 0.22


def test_a_table_shows_our_time_its_share_of_the_limits_and_each_peer():
    labels = {"rows": 1_000_000, "operation": "find"}
    lines = report.beside(
        [
            Sample("tensorhash", labels, [0.010, 0.010]),
            Sample("gather", labels, [0.005, 0.005]),
            Sample("scatter", labels, [0.008, 0.008]),
            Sample("peer", labels, [0.120]),
        ]
    )
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    ours = ["1e6", "find", "10.0", "100", "0.50", "0.80"]
    assert cells == [*ours, "120", "12.0x", "±0%; 1 round: peer"]


def test_memory_limits_do_not_count_as_peers():
    labels = {"key": "int64", "rows": 1_000_000, "threads": 1, "operation": "insert"}
    times = {"tensorhash": 1.0, "gather": 0.2, "scatter": 0.5, "boost::unordered_flat_map": 4.0}
    found = judged("cpp", [Sample(who, labels, [seconds]) for who, seconds in times.items()])
    best = found["insert, int64, one thread, against the best C++ map"]
    assert best.measured == {"1e6": 4.0}


def test_results_keep_the_sections_that_were_not_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results.md")
    report.write({"b": ["old b"], "a": ["old a"], "gone": ["gone"]}, ["a", "b", "gone"])
    report.write({"a": ["new a"]}, ["a", "b"])
    text = report.RESULTS.read_text()
    assert text.index("new a") < text.index("old b")
    assert "old a" not in text
    assert "gone" not in text


def test_a_crash_loses_only_its_own_case(tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text(BROKEN)
    monkeypatch.setattr(store, "DATA", tmp_path / "data")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(tmp_path))
    import broken

    cases = [case.name for case in broken.cases(SMOKE)]
    with open("/dev/null", "w") as sink:
        failures = runner.run_suite(broken, SMOKE, cases, Progress(len(cases), sink))
    assert [failure.case for failure in failures] == ["broken/raises", "broken/dies"]
    assert "so it goes" in failures[0].error
    assert "exit code -9" in failures[1].error
    kept = store.load(SMOKE, "broken")
    assert [sample.case for sample in kept.samples] == ["broken/first", "broken/last"]


def test_the_command_lists_its_cases_and_reports_if_none_match():
    def command(*options):
        return subprocess.run(
            [sys.executable, BENCH / "run.py", *options], capture_output=True, text=True
        )

    listed = command("--quick", "--list", "--only", "packed")
    assert (listed.returncode, listed.stdout) == (0, "packed/1e6\n")
    nothing = command("--only", "no such case")
    assert nothing.returncode == 2
    assert "no such case" in nothing.stderr


def test_convolutions_are_judged_by_rate_by_spconv_and_beside_a_busy_process():
    def sample(who, part, operation, seconds, products=0):
        kind = {"kind": "uniform"} if part == "spconv" else {}
        labels = {"part": part, "channels": 16, "operation": operation, **kind}
        return Sample(who, labels, [seconds], {"products": products} if products else {})

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
