"""Show version, threads, machine and optional packages, for bug reports."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import io as streams
import re

import tensorhash
from tensorhash.cli import _output
from tensorhash.io import SUFFIXES

_OPTIONAL = ("laspy", "lazrs", "matplotlib", "tqdm", "torch", "jax", "tensorflow", "tensorflow-cpu")


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    _output.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the facts."""
    text = streams.StringIO()
    with contextlib.redirect_stdout(text):
        tensorhash.show_config()
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in text.getvalue().splitlines())
    rows["formats"] = " ".join(suffix.lstrip(".") for suffix in SUFFIXES)
    found = {name: _version(name) for name in _OPTIONAL}
    rows["optional"] = ", ".join(f"{n} {v}" for n, v in found.items() if v) or "none"
    facts = {**rows, "formats": [s.lstrip(".") for s in SUFFIXES], "optional": found}
    _output.give(options, facts, _output.table(rows))
    return 0


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
