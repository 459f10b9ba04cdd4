"""Writes the stub python/tensorhash/_core.pyi with nanobind, from the installed extension module.

usage: .venv/bin/python tools/core_stub.py
Run it after a change of python/bindings, when tools/install-package has installed the module.
"""

import re
from pathlib import Path

from nanobind.stubgen import StubGen

import tensorhash._core

STUB = Path(__file__).parents[1] / "python" / "tensorhash" / "_core.pyi"


def generate() -> str:
    """The stub of the installed module, without the value of the version."""
    stub = StubGen(tensorhash._core)
    stub.put(tensorhash._core)
    return re.sub(r"^version: str = .*$", "version: str", stub.get(), flags=re.MULTILINE)


if __name__ == "__main__":
    STUB.write_text(generate())
