"""The mutants (`make mutants`) still match the code that they replace."""

from __future__ import annotations

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
    proved = [*RUNNER["MUTANTS"], *RUNNER["PTX_MUTANTS"]]
    assert not [m.name for m in proved if m.name not in names]
    assert not [row[0] for row in rows if "NOT NOTICED" in row[2]]


@pytest.mark.parametrize("mutant", RUNNER["ALL_MUTANTS"], ids=lambda mutant: mutant.name)
def test_the_code_to_replace_occurs_once(mutant):
    for edit in mutant.edits:
        text = (ROOT / edit.file).read_text()
        assert len(RUNNER["pattern_of"](edit.old).findall(text)) == 1, f"{edit.file}: {edit.old}"
