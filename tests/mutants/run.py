"""Plants each bug in a copy of the tree, builds the C++ tests and checks that they fail.

usage: run.py SOURCE WORK [PART_OF_A_NAME...]

Each mutant names a step of `make test`; its tests run, built with that step's preset. The run
rewrites the rows of report.md, in this folder, for the mutants that ran.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from device_coords import COORD_MUTANTS
from device_ptx import PTX_MUTANTS
from mutants import MUTANTS, PROGRAMS, REBUILT, STEPS, Mutant
from recent import RECENT_MUTANTS

from device import DEVICE_MUTANTS
from index import INDEX_MUTANTS

ALL_MUTANTS = [
    *MUTANTS,
    *INDEX_MUTANTS,
    *RECENT_MUTANTS,
    *DEVICE_MUTANTS,
    *COORD_MUTANTS,
    *PTX_MUTANTS,
]
TIMEOUT_SECONDS = 120  # a bug may also cause an endless probe
MEMORY_BYTES = 4 << 30
COPIED = (
    "cmake",
    "examples",
    "include",
    "integrations",
    "src",
    "tests",
    "CMakeLists.txt",
    "CMakePresets.json",
)


class Outcome(NamedTuple):
    mutant: Mutant
    noticed_by: str  # the test that failed, or empty
    seconds: float


def folder_of(step: str, work: Path) -> Path:
    """The build folder of a step. Those of devices lie in the copied tree as `build` lies in ours,
    so that the compiler cache knows their objects from `make test`."""
    return (work / "tree/build" if step in PROGRAMS else work) / STEPS[step]


def build(work: Path, step: str, target: str) -> str:
    """Returns what the compiler said if the target does not build."""
    command = ["cmake", "--build", str(folder_of(step, work)), "--target", target, "-j2"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout[-4000:] if done.returncode != 0 else ""


def configure(tree: Path, work: Path, step: str) -> None:
    """Uses the step's flags, without the Python module. Steps with bugs in the library's own
    headers also get -O1 and this machine's instruction-set levels, without the baseline."""
    command = [
        "cmake",
        "--preset",
        STEPS[step],
        "--log-level=ERROR",
        "-Wno-deprecated",
        "-S",
        str(tree),
        "-B",
        str(folder_of(step, work)),
        "-DTENSORHASH_BUILD_PYTHON=OFF",
    ]
    if step not in PROGRAMS:
        command += ["-DTENSORHASH_ISA=best", "-DTENSORHASH_WERROR=OFF"]
        command += ["-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
        # A precompiled header would make every source depend on every public header.
        command += ["-DTENSORHASH_PRECOMPILE=OFF"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=tree)


def limit_memory() -> None:
    """A bug may also allocate all memory: let that call fail instead."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def run_tests(work: Path, mutant: Mutant) -> str:
    """The test that was running when one failed; empty if all passed."""
    # The first failure ends the run: one is enough.
    folder = folder_of(mutant.step, work)
    program = [str(folder / "tests" / mutant.program), "--gtest_break_on_failure"]
    how = ""
    try:
        done = subprocess.run(
            [*program, f"--gtest_filter={mutant.tests}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_SECONDS,
            # The sanitizers reserve address space by the terabyte.
            preexec_fn=limit_memory if STEPS[mutant.step] == "release" else None,
        )
        if done.returncode == 0:
            return ""
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output, how = late.stdout or b"", f", still running after {TIMEOUT_SECONDS} s"
    started = [line for line in output.decode(errors="replace").splitlines() if "[ RUN" in line]
    return f"{started[-1].split()[-1]}{how}" if started else "the start of the tests"


def pattern_of(code: str) -> re.Pattern[str]:
    """Matches the code with any white space between tokens, so that line breaks do not matter."""
    tokens = re.findall(r"\w+|\S", code)
    return re.compile(r"\s*".join(re.escape(token) for token in tokens))


def plant(tree: Path, mutant: Mutant) -> dict[Path, str]:
    """Makes the edits; returns the files as they were."""
    before: dict[Path, str] = {}
    for edit in mutant.edits:
        path = tree / edit.file
        text = path.read_text()
        changed, times = pattern_of(edit.old).subn(lambda _, new=edit.new: new, text)
        if times != 1:
            sys.exit(
                f"{mutant.name}: {edit.file} holds the code to replace {times} times:\n{edit.old}"
            )
        before.setdefault(path, text)
        path.write_text(changed)
    return before


def copy_tree(source: Path, tree: Path) -> None:
    tree.mkdir(parents=True, exist_ok=True)
    # Keep modification times, so that a second run builds only what changed.
    for part in COPIED:
        if (source / part).is_dir():
            shutil.rmtree(tree / part, ignore_errors=True)
            shutil.copytree(source / part, tree / part)
        else:
            shutil.copy2(source / part, tree / part)


def try_mutant(tree: Path, work: Path, mutant: Mutant) -> Outcome:
    start = time.monotonic()
    before = plant(tree, mutant)
    # A bug that does not compile proves nothing about the tests.
    errors = build(work, mutant.step, REBUILT.get(mutant.step, mutant.program))
    noticed_by = "" if errors else run_tests(work, mutant)
    for path, text in before.items():
        path.write_text(text)
    seconds = time.monotonic() - start
    verdict = f"noticed by {noticed_by}" if noticed_by else f"NOT NOTICED{errors and ', '}{errors}"
    print(f"{mutant.name}: {verdict} ({seconds:.0f} s)", flush=True)
    return Outcome(mutant, noticed_by, seconds)


def write_report(file: Path, outcomes: list[Outcome]) -> None:
    """One row per mutant, in the order of mutants.py; mutants that did not run keep their row."""
    old = file.read_text().splitlines() if file.exists() else []
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in old if line.startswith("| ")}
    for mutant, noticed_by, seconds in outcomes:
        test = f"`{noticed_by}`" if noticed_by else "NOT NOTICED"
        rows[mutant.name] = f"| {mutant.name} | `{mutant.step}` | {test} | {seconds:.0f} |"
    lines = [
        "# Planted bugs",
        "",
        "Written by `make mutants`: each bug, the step of `make test` that notices it, the first test that",
        "failed, and the seconds to build and run.",
        "",
        "| bug | step | test | seconds |",
        "|---|---|---|--:|",
    ]
    lines += [rows[mutant.name] for mutant in ALL_MUTANTS if mutant.name in rows]
    file.write_text("\n".join(lines) + "\n")


def main() -> None:
    source, work = Path(sys.argv[1]), Path(sys.argv[2])
    wanted = sys.argv[3:] or [""]
    chosen = [m for m in ALL_MUTANTS if any(part in m.name for part in wanted)]
    tree = work / "tree"
    copy_tree(source, tree)
    for step in {folder_of(m.step, work): m.step for m in chosen}.values():
        configure(tree, work, step)
    for step, program in sorted({(m.step, m.program) for m in chosen}):
        if errors := build(work, step, program):
            sys.exit(f"the tests do not build:\n{errors}")
    for mutant in {(m.step, m.tests): m for m in chosen}.values():
        if failed := run_tests(work, mutant):
            sys.exit(f"{failed} fails without any planted bug")

    outcomes = []
    for mutant in chosen:
        outcomes.append(try_mutant(tree, work, mutant))
        write_report(source / "tests/mutants/report.md", outcomes[-1:])
    missed = sum(not outcome.noticed_by for outcome in outcomes)
    if missed:
        sys.exit(f"{missed} of {len(chosen)} planted bugs were not noticed")
    print(f"all {len(chosen)} planted bugs were noticed")


if __name__ == "__main__":
    main()
