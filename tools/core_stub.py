"""The stub python/tensorhash/_core.pyi, made by nanobind from the installed extension module.

usage: .venv/bin/python tools/core_stub.py   after a change of python/bindings and tools/install-package
"""

import re
from pathlib import Path

from nanobind.stubgen import StubGen

import tensorhash._core

STUB = Path(__file__).parents[1] / "python" / "tensorhash" / "_core.pyi"


def generate() -> str:
    """The stub of the module as it is built; without the version, which is written elsewhere."""
    stub = StubGen(tensorhash._core)
    stub.put(tensorhash._core)
    return re.sub(r"^version: str = .*$", "version: str", stub.get(), flags=re.MULTILINE)


if __name__ == "__main__":
    STUB.write_text(generate())
