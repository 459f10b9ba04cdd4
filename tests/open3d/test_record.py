"""What tests/python has on record of Open3D, names and results, is what the wheel has."""

import json
import pathlib

import pytest

pytest.importorskip("open3d")

import record
from names import public_names


def test_the_committed_list_is_what_the_wheel_has():
    listed = pathlib.Path(__file__).parent.parent / "python" / "open3d_core_names.txt"
    assert listed.read_text().split() == public_names()


def test_the_committed_results_are_what_the_wheel_gives():
    recorded = pathlib.Path(__file__).parent.parent / "python" / "core_recorded.json"
    assert json.loads(recorded.read_text()) == record.recorded()
