"""The machine of the measurements, and the number of threads."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def threads() -> int:
    """BENCH_THREADS, or all processors that this process may use."""
    return int(os.environ.get("BENCH_THREADS") or len(os.sched_getaffinity(0)))


def settings() -> dict[str, str]:
    """Environment variables that give every contender the same number of threads."""
    names = ("BENCH", "TENSORHASH_NUM", "OMP_NUM", "MKL_NUM", "POLARS_MAX", "TF_NUM_INTRAOP")
    return {f"{name}_THREADS": str(threads()) for name in names}


def describe() -> str:
    """The machine in one line, without the versions of the contenders."""
    from tensorhash import _core

    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    python = f"Python {platform.python_version()}"
    return f"{model}, {threads()} threads, {_core.instruction_set()}, {python}"
