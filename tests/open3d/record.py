"""Writes tests/python/core_recorded.json: Open3D's results for the expressions in core_cases.py."""

import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent.parent / "python"
sys.path.insert(0, str(FOLDER))

import open3d.core  # noqa: E402
from core_cases import answer, cases  # noqa: E402


def recorded():
    return {name: answer(case, open3d.core) for name, case in cases().items()}


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(given)}" for name, given in recorded().items())
    (FOLDER / "core_recorded.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
