"""Measures cases of one suite in its own process: `python -m harness.worker MODULE SCALE FD PART CASE...`.

A crash ends only this suite, and only its contenders share the process. Events go to the file
descriptor FD, one JSON object per line. PART is the part of its planned seconds that the suite has.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from importlib import metadata
from typing import Any

from harness import machine, plan
from harness.case import SCALES
from peers import optional


def main() -> None:
    name, scale_name, descriptor, part, *wanted = sys.argv[1:]
    # Keep the output of libraries out of the tables.
    os.dup2(2, 1)
    with os.fdopen(int(descriptor), "w") as out:

        def tell(**event: Any) -> None:
            out.write(json.dumps(event) + "\n")
            out.flush()

        suite = importlib.import_module(name)
        scale = SCALES[scale_name]
        tell(machine=machine.describe())
        budget = plan.Budget(
            name.rsplit(".", 1)[-1], scale, suite.cases(scale), wanted, float(part)
        )
        for case, share in budget.shares():
            tell(begin=case.name)
            start = time.perf_counter()
            try:
                measured = case.measure(scale.given(share))
                samples = [{**sample.as_json(), "case": case.name} for sample in measured]
                taken = time.perf_counter() - start
                known = {"versions": versions(), "missing": optional.missing()}
                tell(end=case.name, samples=samples, seconds=taken, **known)
            except Exception:
                tell(end=case.name, error=traceback.format_exc())
            budget.spend(time.perf_counter() - start)


def versions() -> dict[str, str]:
    """The versions of the contenders that the suite has loaded."""
    loaded = ("tensorhash", "numpy", "torch", "polars", "pandas", "duckdb", "scipy", "small_gicp")
    loaded += ("open3d", "spconv", "pyg_lib", "tensorflow")
    found = {name: version_of(sys.modules[name]) for name in loaded if name in sys.modules}
    return {name: str(version).split("+")[0] for name, version in found.items() if version}


def version_of(module: Any) -> str:
    """Not every module has its version as an attribute."""
    try:
        return getattr(module, "__version__", "") or metadata.version(module.__name__)
    except metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main()
