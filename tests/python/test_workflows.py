"""The CI workflows, as far as GitHub's schema (`tools/lint-workflow`) cannot see: expressions and commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
GITHUB = {"github.ref", "github.sha"}  # the values of this context that the workflows use


def faults(text: str) -> list[str]:
    """Expressions that name nothing, make targets and files that do not exist."""
    found = []
    for job in re.split(r"(?m)^  (?=\w[\w-]*:$)", text):  # the first part is what precedes the jobs
        matrix = re.search(r"(?m)^( +)matrix:\n((?:\1 +.*\n)+)", job)
        names = re.findall(r"(?m)^[ -]+(\w+):", matrix[2]) if matrix else []
        known = GITHUB | {f"matrix.{name}" for name in names}
        found += [e for e in re.findall(r"\$\{\{\s*(.*?)\s*\}\}", job) if e not in known]
    targets = set(re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text()))
    found += [
        f"make {name}" for name in re.findall(r"\bmake ([\w-]+)", text) if name not in targets
    ]
    files = re.findall(r"\btools/[\w./*-]+", text)
    return found + [name for name in files if not list(ROOT.glob(name))]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_expressions_targets_and_files_exist(path):
    assert faults(path.read_text()) == []


def test_the_check_finds_what_does_not_exist():
    text = WORKFLOWS[0].read_text()
    assert faults(text.replace("${{ matrix.python }}", "${{ matrix.pythn }}")) == [
        "matrix.pythn"
    ] * text.count("${{ matrix.python }}")
    assert faults(text.replace("github.sha", "github.sah")) == ["github.sah"]
    assert faults(text.replace("run: make test", "run: make tset")) == ["make tset"]
    assert faults(text.replace("tools/requirements/*.txt", "tools/none/*.txt")) == [
        "tools/none/*.txt"
    ]
