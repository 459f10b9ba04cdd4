"""The names and results of Open3D recorded in tests/python match the wheel."""

import json
import pathlib

import pytest

pytest.importorskip("open3d")

import record
from names import public_names


def test_the_committed_list_matches_the_wheel():
    listed = pathlib.Path(__file__).parent.parent / "python" / "open3d_core_names.txt"
    assert listed.read_text().split() == public_names()


def test_the_committed_results_match_the_wheel():
    recorded = pathlib.Path(__file__).parent.parent / "python" / "core_recorded.json"
    assert json.loads(recorded.read_text()) == record.recorded()
