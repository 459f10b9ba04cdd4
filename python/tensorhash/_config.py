"""Threads, memory, and what this installation is."""

from __future__ import annotations

import operator
import os
import platform

import numpy as np

from tensorhash import _core


def get_num_threads() -> int:
    """How many threads a call may use, the caller's own among them."""
    return _core.num_threads()


def set_num_threads(n: int) -> None:
    """Lets calls use `n` threads. Results never depend on it.

    The start value is TENSORHASH_NUM_THREADS, or what CPU affinity and cgroup allow.
    """
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError(f"n: expected an int, got {type(n).__name__}") from None
    _core.set_num_threads(max(-1, min(count, 1 << 30)))


def release_memory() -> int:
    """Gives memory that is kept for later back to the system; returns the number of bytes.

    Freed tables and results of 256 KiB and more stay warm for the next ones: at most 1 GiB, and at most a sixteenth of
    the machine's memory. Tables and arrays in use are not touched.
    """
    return _core.release_memory()


def show_config() -> None:
    """Prints the version, the threads and the back ends: what a bug report should say."""
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
