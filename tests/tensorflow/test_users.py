"""The script of tests/users/ that needs TensorFlow runs as written."""

import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "users" / "keras_embedding.py"


def test_the_script_for_keras_runs_as_written():
    ran = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.strip() == "200 rows, odd and even ids are told apart: True"
