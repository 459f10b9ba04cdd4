"""docs/open3d.md says for every public name of open3d.core 0.20 whether we have it: checks that."""

import functools
import pathlib

import pytest

import tensorhash.core as o3c

HERE = pathlib.Path(__file__).parent
NAMES = (HERE / "open3d_core_names.txt").read_text().split()


@functools.cache
def answers():
    """{name: "yes" or "no"} from the table under "Every public name"."""
    page = (HERE.parent.parent / "docs" / "open3d.md").read_text()
    found = {}
    for line in page.split("## Every public name")[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 3 or "`" not in line:
            continue
        owner = cells[0].strip("`")
        for answer, cell in zip(("yes", "no"), cells[1:], strict=True):
            for name in cell.replace("`", "").replace(",", " ").split():
                full = name if owner == "open3d.core" else f"{owner}.{name}"
                assert full not in found, f"{full} is listed twice"
                found[full] = answer
    return found


def is_there(name):
    try:
        functools.reduce(getattr, name.split("."), o3c)
    except AttributeError:
        return False
    return True


def test_the_page_lists_every_name_once():
    assert sorted(answers()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_true(name):
    assert answers().get(name) == ("yes" if is_there(name) else "no")


def test_readme_claims_exactly_that():
    there = sum(answer == "yes" for answer in answers().values())
    claim = f"{there} of the {len(NAMES)} public names of `open3d.core` 0.20"
    assert claim in (HERE.parent.parent / "README.md").read_text()
