"""Threads, cached memory, and a report on this installation."""

from __future__ import annotations

import os
import platform

import numpy as np

from tensorhash import _core
from tensorhash._arguments import integer


def get_num_threads() -> int:
    """How many threads a call may use, including the caller's own."""
    return _core.num_threads()


def set_num_threads(n: int) -> None:
    """Lets calls use `n` threads. Results do not depend on it.

    The default is TENSORHASH_NUM_THREADS, or else what CPU affinity and cgroup allow.
    """
    _core.set_num_threads(max(-1, min(integer(n, "n", None), 1 << 30)))


def release_memory() -> int:
    """Gives cached memory back to the system; returns the number of bytes.

    Memory of freed tables and results, in blocks of at least 256 KiB, is kept for the next ones: at
    most 1 GiB, and at most a sixteenth of the machine's memory or of the process's control group's
    limit, if that is lower. Tables and arrays in use stay.
    """
    return _core.release_memory()


def show_config() -> None:
    """Prints version, threads, devices and machine, for bug reports."""
    rows = {
        "tensorhash": _core.version,
        "threads": f"{get_num_threads()} of {os.cpu_count()}",
        "devices": "cpu:0",
        "machine": f"{platform.system()} {platform.machine()}, {_core.instruction_set()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    for name, value in rows.items():
        print(f"{name:13}{value}")
