"""A system that is not supported is refused with one sentence, before anything is compiled."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("system", ["Darwin", "Windows"])
def test_cmake_stops_on_other_systems(tmp_path, system):
    beside = str(Path(sys.executable).parent)
    cmake = shutil.which("cmake", path=beside) or shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not installed")
    command = [cmake, f"-DCMAKE_SYSTEM_NAME={system}", "-S", str(ROOT), "-B", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode != 0
    sentence = f"tensorhash: expected Linux, got {system}: macOS and Windows are not supported yet"
    assert sentence in " ".join(ran.stderr.split())
