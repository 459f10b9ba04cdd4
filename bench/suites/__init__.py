"""The suites, in the order of the report. One is a module with a TITLE, an ABOUT, `cases(scale)` and `tables(samples)`.

Suites import their contenders only when they measure: listing the cases needs none of them.
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
    "values",
    "growth",
    "churn",
    "overhead",
    "kernel_maps",
    "packed",
    "sharded",
    "ranks",
    "tensorflow",
)


def load() -> dict[str, ModuleType]:
    return {name: importlib.import_module(f"suites.{name}") for name in NAMES}
