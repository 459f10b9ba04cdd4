"""`make gpu` without a GPU: its report on an emulated device, and what it says without a driver."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import frameworks
import pytest
import report

ROOT = Path(__file__).parents[2]


def run(device: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["tools/gpu", device], cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def emulated() -> str:
    done = run("emu:0")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout[done.stdout.index("# tensorhash on") :]


def test_the_report_names_the_device_and_the_commit(emulated):
    assert emulated.startswith("# tensorhash on emu:0\n")
    assert "| device | emulated: one fiber per thread on the CPU |" in emulated
    assert re.search(r"\| commit \| [0-9a-f]{7,}( with changes)? \|", emulated)


def test_every_check_passed(emulated):
    checks = emulated[emulated.index("## Checks") : emulated.index("## Lanes")]
    outcomes = re.findall(r"\| (.*) \| (.*) \|", checks)[2:]
    # Frameworks have no arrays on an emulated device.
    not_run = {name: outcome for name, outcome in outcomes if outcome != "passed"}
    assert len(outcomes) == 11 and len(not_run) == 5
    assert all(outcome.startswith("not run: no framework has") for outcome in not_run.values())
    assert ("two devices", "passed") in outcomes


@pytest.mark.parametrize("name", ["torch", "JAX", "nccl", "two devices"])
def test_the_checks_of_frameworks_pass_on_the_cpu(name):
    command = [sys.executable, "tests/gpu/frameworks.py", "cpu:0", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_framework_that_is_not_installed_is_named():
    with pytest.raises(frameworks.NotRun, match="no_such_thing is not installed"):
        frameworks.module("no_such_thing")


def test_an_emulated_device_gets_no_times(emulated):
    assert "times mean nothing" in emulated
    measured = emulated[emulated.index("## Lanes") :]
    rows = [line.split(" | ") for line in measured.splitlines() if line.startswith("| a quarter")]
    assert [row[2] for row in rows[:2]] == ["insert, new keys", "insert, present keys"]
    # Only the numbers of rows are numbers.
    cells = [cell.strip(" |") for row in rows for cell in row[3:]]
    assert set(cells) <= {"-", ""}
    assert "| table | rows | operation | 1 lane | 4 lanes | 8 lanes |" in measured


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has a driver")
def test_without_a_driver_it_ends_with_one_sentence():
    done = run("cuda:0")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.strip() == (
        "error: make gpu needs a GPU and its driver, and this machine has no CUDA driver "
        "(libcuda.so.1)"
    )


def test_another_name_is_refused():
    assert "DEVICE: expected a name such as cuda:0 or emu:0, got gpu" in run("gpu").stderr


def test_times_become_rates_in_columns():
    lines = [
        ["time", "1 lane", "small", "find", "2000", "10"],
        ["time", "4 lanes", "small", "find", "2000", "20"],
        ["time", "tensorhash", "small", "insert", "2000", "1000"],
        ["check", "a suite", "FAILED: see a.log"],
    ]
    said = report.report("cuda:0", "abc", lines)
    assert "| small | 2,000 | find | 200 | 100 |" in said
    assert "| small | 2,000 | insert | 2 |" in said
    assert "| a suite | FAILED: see a.log |" in said
    assert not any("emulated" in line for line in said)
