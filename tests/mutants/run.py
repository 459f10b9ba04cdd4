"""Applies each planted mistake to a copy of the tree, builds the C++ tests and demands that they fail.

usage: run.py SOURCE WORK [PART_OF_A_NAME]
"""

import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from mutants import MUTANTS, Mutant

TIMEOUT_SECONDS = 120  # a mistake may also show as an endless probe
MEMORY_BYTES = 4 << 30


def build(work: Path) -> None:
    command = ["cmake", "--build", str(work / "build"), "--target", "tensorhash_tests", "-j2"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"the tests do not build:\n{done.stdout[-4000:]}")


def limit_memory() -> None:
    """A mistake may also ask for all the memory there is: such a call fails instead."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def run_tests(work: Path, tests: str) -> tuple[bool, str]:
    """Whether all passed, and the test that was running when one did not."""
    # The first failure ends the run: what comes after it in a test is no longer worth its time.
    program = [str(work / "build/tests/tensorhash_tests"), "--gtest_break_on_failure"]
    how = "failed"
    try:
        done = subprocess.run(
            [*program, f"--gtest_filter={tests}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_SECONDS,
            preexec_fn=limit_memory,
        )
        if done.returncode == 0:
            return True, ""
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output, how = late.stdout or b"", f"still ran after {TIMEOUT_SECONDS} s"
    started = [line for line in output.decode(errors="replace").splitlines() if "[ RUN" in line]
    return False, f"{started[-1].split()[-1]} {how}" if started else "no test was even started"


def pattern_of(code: str) -> re.Pattern[str]:
    """The code with any white space between its tokens: how a formatter breaks lines is no matter."""
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


def main() -> None:
    source, work = Path(sys.argv[1]), Path(sys.argv[2])
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    tree = work / "tree"
    if tree.exists():
        shutil.rmtree(tree)
    # Times are kept, so that a second run builds only what changed.
    for part in ("cmake", "include", "src", "tests", "CMakeLists.txt"):
        copy = shutil.copytree if (source / part).is_dir() else shutil.copy2
        (tree / part).parent.mkdir(parents=True, exist_ok=True)
        copy(source / part, tree / part)
    configure = [
        "cmake",
        "-S",
        str(tree),
        "-B",
        str(work / "build"),
        "-G",
        "Ninja",
        "-DTENSORHASH_BUILD_TESTS=ON",
    ]
    subprocess.run(
        [*configure, "-DCMAKE_BUILD_TYPE=Release"], check=True, stdout=subprocess.DEVNULL
    )

    chosen = [m for m in MUTANTS if wanted in m.name]
    build(work)
    for tests in sorted({m.tests for m in chosen}):
        passed, why = run_tests(work, tests)
        if not passed:
            sys.exit(f"the tests fail without any planted mistake: {why}")

    missed = []
    for mutant in chosen:
        start = time.monotonic()
        before = plant(tree, mutant)
        build(work)
        passed, why = run_tests(work, mutant.tests)
        for path, text in before.items():
            path.write_text(text)
        if passed:
            missed.append(mutant.name)
        verdict = "NOT NOTICED" if passed else f"noticed: {why}"
        print(f"{mutant.name}: {verdict} ({time.monotonic() - start:.0f} s)", flush=True)
    if missed:
        sys.exit(f"{len(missed)} of {len(chosen)} planted mistakes were not noticed")
    print(f"all {len(chosen)} planted mistakes were noticed")


if __name__ == "__main__":
    main()
