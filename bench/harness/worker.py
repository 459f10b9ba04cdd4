"""Measures cases of one suite in its own process: `python -m harness.worker MODULE SCALE FD CASE...`.

A crash ends only this suite, and only its contenders share the process. Events go to the file
descriptor FD, one JSON object per line.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from typing import Any

from harness import machine
from harness.case import SCALES


def main() -> None:
    name, scale_name, descriptor, *wanted = sys.argv[1:]
    # Keep the output of libraries out of the tables.
    os.dup2(2, 1)
    with os.fdopen(int(descriptor), "w") as out:

        def tell(**event: Any) -> None:
            out.write(json.dumps(event) + "\n")
            out.flush()

        suite = importlib.import_module(name)
        scale = SCALES[scale_name]
        tell(machine=machine.describe())
        for case in suite.cases(scale):
            if case.name not in wanted:
                continue
            tell(begin=case.name)
            start = time.perf_counter()
            try:
                measured = case.measure(scale)
            except Exception:
                tell(end=case.name, error=traceback.format_exc())
                continue
            samples = [{**sample.as_json(), "case": case.name} for sample in measured]
            taken = time.perf_counter() - start
            tell(end=case.name, samples=samples, seconds=taken, versions=versions())


def versions() -> dict[str, str]:
    """The versions of the contenders that the suite has loaded."""
    loaded = ("tensorhash", "numpy", "torch", "polars", "open3d", "spconv", "tensorflow")
    found = {name: getattr(sys.modules.get(name), "__version__", "") for name in loaded}
    return {name: str(version).split("+")[0] for name, version in found.items() if version}


if __name__ == "__main__":
    main()
