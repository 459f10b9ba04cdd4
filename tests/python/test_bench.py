"""The benchmark harness: its statistics, its plan, and what it keeps after a crash."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import run  # noqa: E402

import suites  # noqa: E402
from harness import clock, plan, report, runner, store  # noqa: E402
from harness.case import FULL, QUICK, SMOKE, Case, Sample, Scale, chosen, rows_text  # noqa: E402
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

    def contender(name):
        def one_round(watch):
            order.append(name)
            with watch("work"):
                now[0] += taken[name]

        return one_round

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock.time, "perf_counter", lambda: now[0])
        times = clock.in_turn({name: contender(name) for name in taken}, scale, rounds)
    return times, order


def scale_with(budget):
    return Scale("test", 10, 1).given(budget)


def test_contenders_take_turns_and_the_first_round_does_not_count():
    times, order = seconds_of(scale_with(100.0), 3, ours=1.0, peer=2.0)
    assert order == ["ours", "peer"] * 4
    assert times == {"ours": {"work": [1.0] * 3}, "peer": {"work": [2.0] * 3}}


def test_a_slow_contender_skips_rounds_beyond_its_budget():
    times, order = seconds_of(scale_with(40.0), 3, ours=1.0, slow=9.0, slower=50.0)
    assert times["slow"] == {"work": [9.0, 9.0]}
    assert times["slower"] == {"work": [50.0]}
    assert order.count("ours") == 4


def test_without_a_budget_every_contender_has_one_round():
    times, order = seconds_of(scale_with(0.0), 3, ours=1.0, peer=2.0)
    assert times == {"ours": {"work": [1.0]}, "peer": {"work": [2.0]}}
    assert order == ["ours", "peer"]


def test_the_first_contender_has_two_shares_of_the_budget():
    times, _ = seconds_of(scale_with(30.0), 9, ours=4.0, peer=4.0)
    assert times == {"ours": {"work": [4.0] * 5}, "peer": {"work": [4.0] * 2}}


def test_the_plan_of_all_suites_leaves_room_below_the_limits():
    for scale in (FULL, QUICK):
        assert all(plan.seconds(suite, scale) > 0 for suite in suites.NAMES)
        planned = sum(plan.seconds(suite, scale) for suite in suites.NAMES)
        assert planned < 0.95 * plan.LIMITS[scale.name]
    assert plan.SECONDS.keys() == set(suites.NAMES)


def test_a_run_that_is_late_gives_the_suites_left_a_part_of_their_seconds(monkeypatch):
    monkeypatch.setattr(plan, "SECONDS", {"a": (1000, 100), "b": (500, 50)})
    assert plan.haste(0.0, ["a", "b"], FULL) == 1.0
    assert plan.haste(210.0, ["a", "b"], FULL) == 1.0
    assert plan.haste(960.0, ["a", "b"], FULL) == pytest.approx(750 / 1500)
    assert plan.haste(2000.0, ["b"], FULL) == 0.0
    assert plan.haste(100.0, ["a"], SMOKE) == 1.0
    cases = [Case("b/x", list)]
    assert [share for _, share in plan.Budget("b", FULL, cases, ["b/x"], 0.5).shares()] == [250.0]


def test_cases_share_what_their_suite_has_left(monkeypatch):
    monkeypatch.setitem(plan.SECONDS, "test", (60, 6))
    cases = [Case(f"test/{name}", list) for name in "abcdef"]
    budget = plan.Budget("test", FULL, cases, [case.name for case in cases[:3]])
    given = []
    for case, share in budget.shares():
        given.append((case.name, share))
        budget.spend(20.0 if case is cases[0] else 1.0)
    assert given == [("test/a", 10.0), ("test/b", 5.0), ("test/c", 9.0)]


def test_a_suite_that_has_used_its_seconds_gives_nothing(monkeypatch):
    monkeypatch.setitem(plan.SECONDS, "test", (60, 6))
    cases = [Case("test/a", list), Case("test/b", list)]
    budget = plan.Budget("test", FULL, cases, ["test/a", "test/b"])
    shares = []
    for _, share in budget.shares():
        shares.append(share)
        budget.spend(100.0)
    assert shares == [30.0, 0.0]


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


def test_a_case_that_was_run_again_is_recorded_with_the_median_of_its_runs():
    data = store.SuiteData()
    for seconds in ([3.0, 5.0, 4.0], [1.0, 1.0], [9.0]):
        labels = {"operation": "find"}
        data.add_run("a/b", [Sample("tensorhash", labels, seconds, {"bytes": seconds[0]}, "a/b")])
    (recorded,) = data.recorded()
    assert clock.median(recorded.seconds) == 4.0
    assert recorded.numbers == {"bytes": 3.0}
    assert data.runs() == {"a/b": 3}
    assert "a/b (3 runs)" in report.notes(data)[0]
    data.forget("a/b")
    assert (data.recorded(), data.runs()) == ([], {})


def test_a_record_of_chosen_runs_is_refused_until_all_cases_run_again(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(store, "DATA", tmp_path)
    data = store.SuiteData()
    data.add_run("a/b", [Sample("tensorhash", {}, [1.0], {}, "a/b")])
    store.save(FULL, "a", data)
    assert run.may_write(FULL, ["a", "b"])
    store.forget(FULL, "a", ["a/b"])
    assert store.load(FULL, "a").samples == []
    assert not run.may_write(FULL, ["a", "b"])
    assert "a/b" in capsys.readouterr().err
    store.start_anew(FULL, "a")
    assert run.may_write(FULL, ["a", "b"])


def test_the_report_names_the_contenders_that_are_not_installed():
    data = store.SuiteData("a machine", {}, [], ["pyg_lib"])
    assert report.notes(data)[0] == "Left out, because they are not installed: pyg_lib."


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


def test_results_keep_the_sections_that_were_not_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results.md")
    order = ["a", "b", "gone"]
    made = {"b": ["old b"], "a": ["old a"], "gone": ["gone"]}
    earlier = report.write(made, order, "").read_text()
    text = report.write({"a": ["new a"]}, order[:2], earlier).read_text()
    assert text.index("new a") < text.index("old b")
    assert "old a" not in text
    assert "gone" not in text
    assert "old b" not in report.write({"a": ["new a"]}, order, "").read_text()


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


def test_a_contender_is_called_contender_in_all_of_the_benchmark():
    files = [*BENCH.rglob("*.py"), *BENCH.rglob("*.cpp")]
    assert [str(file) for file in files if re.search(r"\bwho\b", file.read_text())] == []
