"""The suites, in the order of the report. Each module has TITLE, ABOUT, `cases(scale)` and `tables(samples)`.

A suite imports its contenders only when it measures, so that listing the cases needs none of them.
"""

from __future__ import annotations

import importlib
from types import ModuleType

NAMES = (
    "tables",
    "cpp",
    "threads",
    "patterns",
    "unique",
    "data",
    "values",
    "growth",
    "before",
    "memory",
    "scale",
    "churn",
    "overhead",
    "first_calls",
    "kernel_maps",
    "expansion",
    "convolution",
    "networks",
    "packed",
    "geometry",
    "points",
    "sharded",
    "ranks",
    "tensorflow",
    "instructions",
)


def load() -> dict[str, ModuleType]:
    return {name: importlib.import_module(f"suites.{name}") for name in NAMES}
