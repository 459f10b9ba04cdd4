"""The mutants (`make mutants`) still match the code that they replace."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))
RUNNER = runpy.run_path(str(ROOT / "tests" / "mutants" / "run.py"))


def test_the_report_lists_these_mutants_and_each_was_noticed():
    lines = (ROOT / "tests" / "mutants" / "report.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ")][1:]
    names = [row[0].removeprefix("| ") for row in rows]
    assert names == [m.name for m in RUNNER["ALL_MUTANTS"] if m.name in names]
    proved = [
        one
        for part in ("MUTANTS", "DEVICE_MUTANTS", "COORD_MUTANTS", "PTX_MUTANTS")
        for one in RUNNER[part]
    ]
    assert not [m.name for m in proved if m.name not in names]
    assert not [row[0] for row in rows if "NOT NOTICED" in row[2]]


@pytest.mark.parametrize("mutant", RUNNER["ALL_MUTANTS"], ids=lambda mutant: mutant.name)
def test_the_code_to_replace_occurs_once(mutant):
    for edit in mutant.edits:
        text = (ROOT / edit.file).read_text()
        assert len(RUNNER["pattern_of"](edit.old).findall(text)) == 1, f"{edit.file}: {edit.old}"


def test_the_programs_of_single_files_exist():
    built = (ROOT / "tests" / "CMakeLists.txt").read_text()
    names = re.search(r"foreach\(_part ([a-z_ ]+)\)", built)[1].split()
    parts = {mutant.part for mutant in RUNNER["ALL_MUTANTS"] if mutant.part}
    assert parts <= set(names)
    assert all((ROOT / "tests" / "device" / f"{part}.cpp").exists() for part in names)


def bodies_of(file: Path) -> list[tuple[str, int, int]]:
    """Each kernel body in a header of src/device: its name and where it begins and ends."""
    text = file.read_text()
    bodies = []
    for found in re.finditer(r"^struct (\w+) \{.*?^\};", text, re.M | re.S):
        if re.search(r"operator\(\)\((No)?Shared\b", found[0]):
            bodies.append((found[1], found.start(), found.end()))
    return bodies


def test_every_kernel_body_has_a_mutant():
    planted: dict[Path, list[int]] = {}
    for mutant in RUNNER["ALL_MUTANTS"]:
        for edit in mutant.edits:
            file = ROOT / edit.file
            found = RUNNER["pattern_of"](edit.old).search(file.read_text())
            planted.setdefault(file, []).append(found.start())
    seen, without = 0, []
    for file in sorted((ROOT / "src" / "device").glob("*.hpp")):
        for name, begin, end in bodies_of(file):
            seen += 1
            if not any(begin <= at < end for at in planted.get(file, [])):
                without.append(name)
    assert seen > 80 and not without
