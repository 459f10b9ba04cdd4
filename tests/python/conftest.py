"""Shared by the Python tests: new processes, thread counts, settings of hypothesis.

Tests use only what a user could call.
"""

import importlib.util
import inspect
import os
import re
import subprocess
import sys
import textwrap

import hypothesis
import pytest

import tensorhash

# Examples are the same in every run, so that a failure repeats.
hypothesis.settings.register_profile(
    "tensorhash", deadline=None, derandomize=True, max_examples=60, database=None
)
hypothesis.settings.load_profile("tensorhash")


FRAMEWORKS = ("torch", "jax")


def pytest_addoption(parser):
    parser.addoption(
        "--no-frameworks",
        action="store_true",
        help="skip the tests that need torch or JAX, which take long to import",
    )


def pytest_configure(config):
    if config.getoption("--no-frameworks"):
        # From now on, importing either fails, so that pytest.importorskip skips.
        sys.modules.update(dict.fromkeys(FRAMEWORKS))


def is_installed(module: str) -> bool:
    """Whether tests may import it: it is installed, and --no-frameworks does not exclude it."""
    return not (module in sys.modules and sys.modules[module] is None) and (
        importlib.util.find_spec(module) is not None
    )


@pytest.fixture(autouse=True)
def thread_count_is_restored():
    before = tensorhash.get_num_threads()
    yield
    tensorhash.set_num_threads(before)


def with_default(function, **defaults):
    """The function's positional defaults, with others for the named parameters."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    old = dict(zip(names[::-1], function.__defaults__[::-1], strict=False))
    assert defaults.keys() <= old.keys()
    return tuple({**old, **defaults}[name] for name in names[-len(old) :])


@pytest.fixture(autouse=True)
def contract_tables_are_on_the_test_device(request, monkeypatch):
    """TENSORHASH_TEST_DEVICE is the default device of the contract tests' tables."""
    device = os.environ.get("TENSORHASH_TEST_DEVICE", "cpu:0")
    if request.module.__name__.startswith("test_contract_rule"):
        for table in (tensorhash.HashMap, tensorhash.HashSet):
            defaults = with_default(table.__init__, device=device)
            monkeypatch.setattr(table.__init__, "__defaults__", defaults)


# The suites of coordinates that take TENSORHASH_TEST_DEVICE.
COORD_SUITES = ("test_coord", "test_kernel_map", "test_voxelize", "test_neighbours")
COORD_SUITES += ("test_convolution", "test_int_coords")


@pytest.fixture(autouse=True)
def coordinates_are_on_the_test_device(request, monkeypatch):
    """TENSORHASH_TEST_DEVICE is the default device of the coordinate suites.

    The tests give arrays of the CPU, so results come back to it.
    """
    device = os.environ.get("TENSORHASH_TEST_DEVICE", "cpu:0")
    if device == "cpu:0" or not request.module.__name__.startswith(COORD_SUITES):
        return
    coords = tensorhash.coords
    kinds = (coords.PackedHashTable, coords.CoordTable, coords.PackedHashTable128)
    makers = [kind.__init__ for kind in (*kinds, coords.TorchHashTable)]
    makers += [coords.CoordTable.from_coords.__func__, inspect.unwrap(coords.IntCoords.__init__)]
    makers += [kind.from_keys.__func__ for kind in (kinds[2], coords.TorchHashTable)]
    for maker in makers:
        monkeypatch.setattr(maker, "__defaults__", with_default(maker, device=device))
    for name in (
        *("unique_coords", "stride_coords", "expand_coords", "generate_kernel_map"),
        *("kernel_map_from_offsets", "voxelize", "voxel_downsample", "radius_search"),
        "convolution_map",
    ):
        function = inspect.unwrap(getattr(coords, name))
        defaults = {**function.__kwdefaults__, "device": device}
        monkeypatch.setattr(function, "__kwdefaults__", defaults)


@pytest.fixture
def run_program(tmp_path):
    """Runs a program in a new process; fails with its output if it exits with an error."""

    def run(*sources, arguments=(), **environment):
        for framework in FRAMEWORKS:
            pattern = rf"^\s*(import|from) {framework}\b"
            if not is_installed(framework) and re.search(pattern, "\n".join(sources), re.M):
                pytest.skip(f"{framework} is not to be imported")
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
