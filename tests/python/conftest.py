"""What the Python tests share: fresh processes, thread counts, settings of hypothesis.

Tests see the package from outside only: what a user could call.
"""

import os
import subprocess
import sys
import textwrap

import hypothesis
import pytest

import tensorhash

# Examples are the same in every run: a failure seen once is seen again.
hypothesis.settings.register_profile(
    "tensorhash", deadline=None, derandomize=True, max_examples=60, database=None
)
hypothesis.settings.load_profile("tensorhash")


@pytest.fixture(autouse=True)
def thread_count_is_restored():
    before = tensorhash.get_num_threads()
    yield
    tensorhash.set_num_threads(before)


@pytest.fixture
def run_program(tmp_path):
    """Runs a program in a fresh process; fails with its output unless it ends well."""

    def run(*sources, arguments=(), **environment):
        program = tmp_path / "program.py"
        program.write_text("\n".join(map(textwrap.dedent, sources)))
        done = subprocess.run(
            [sys.executable, str(program), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, **environment},
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
