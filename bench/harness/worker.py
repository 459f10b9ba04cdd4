"""Measures cases of one suite in a process of its own: `python -m harness.worker MODULE SCALE FD CASE...`.

A suite that crashes takes nobody with it, and contenders that share a process are those of one
suite only. What happens goes line by line, as JSON, to the file descriptor FD.
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
    # What libraries print must not get into the tables.
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
    """Of the contenders that the suite has loaded."""
    loaded = ("tensorhash", "numpy", "torch", "polars", "open3d", "spconv", "tensorflow")
    found = {name: getattr(sys.modules.get(name), "__version__", "") for name in loaded}
    return {name: str(version).split("+")[0] for name, version in found.items() if version}


if __name__ == "__main__":
    main()
