"""One script of at most ten lines per user group runs as written: tests/users/."""

import pathlib
import re
import subprocess
import sys

import pytest

import tensorhash

USERS = pathlib.Path(__file__).resolve().parent.parent / "users"
PACKAGE = pathlib.Path(tensorhash.__file__).resolve().parent
PRINTED = {
    "vision": r"200000 points in \d{5} voxels, centroids \(\d{5}, 3\)",
    "sparse_convolution": r"\d+ voxels have 1 to 27 neighbours, here 1 to (2[0-7]|1\d)",
    "sparse_networks": r"\d{4} voxels, 3 kernel maps, loss 0\.[0-4]\d",
    "recommender": r"1000 ids, the most frequent one learned (0\.9\d|1\.0\d) of 1\.00",
    "data": r"1000 shops, 500 known, in 10 cities",
    "torch_recommender": r"128 ids learned, loss 0\.\d{3}",
    "keras_embedding": "",  # tests/tensorflow/test_users.py runs it
    "cpp": r"2 voxels, the first occurs 2 times",
}


def lines_of(script):
    """The lines of code: neither blank nor a comment, nor a closing brace."""
    lines = [line.strip() for line in script.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith(("# ", "// ", "}"))]


def test_every_script_is_short_and_known():
    scripts = sorted(USERS.iterdir())
    assert {script.stem for script in scripts} == set(PRINTED)
    for script in scripts:
        assert len(lines_of(script)) <= 10, script


@pytest.mark.parametrize(
    "group", [group for group in PRINTED if group not in ("cpp", "keras_embedding")]
)
def test_a_python_script_runs_as_written(group):
    script = USERS / f"{group}.py"
    if "import torch" in script.read_text():
        pytest.importorskip("torch")
    check(group, [sys.executable, str(script)])


def test_the_cpp_program_runs_as_written(tmp_path):
    """Builds it against the headers and the library in the package, as an installed one."""
    library = next(PACKAGE.glob("libtensorhash.so*"))
    program = tmp_path / "cpp"
    command = ["c++", "-std=c++20", "-O1", f"-I{PACKAGE / 'include'}", str(USERS / "cpp.cpp")]
    command += [str(library), f"-Wl,-rpath,{PACKAGE}", "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    check("cpp", [str(program)])


def check(group, command):
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(PRINTED[group], ran.stdout.strip()), ran.stdout
