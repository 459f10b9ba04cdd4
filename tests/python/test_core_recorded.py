"""Operators and functions of tensorhash.core give the bits recorded from Open3D 0.20."""

import json
import pathlib

import pytest
from core_cases import DTYPES, answer, cases

import tensorhash.core as o3c

RECORDED = json.loads((pathlib.Path(__file__).parent / "core_recorded.json").read_text())


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_line_gives_what_open3d_gave(dtype):
    ours = {name: answer(case, o3c) for name, case in cases().items() if dtype in name.split()}
    assert ours == {name: RECORDED[name] for name in ours}
    assert len(ours) > 80


def test_the_record_has_the_lines_and_few_are_errors():
    assert list(RECORDED) == list(cases())
    assert sum(given == "error" for given in RECORDED.values()) < 120
