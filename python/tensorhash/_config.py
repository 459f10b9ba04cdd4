"""Functions for the number of threads, cached memory, and a report on this installation."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable

import numpy as np

from tensorhash import _core
from tensorhash._arguments import integer
from tensorhash._device import device_report

#: What else keeps memory: functions that give it back and return its bytes.
KEEPERS: list[Callable[[], int]] = []


def get_num_threads() -> int:
    """Returns how many threads a call may use, including the calling thread.

    >>> get_num_threads() >= 1
    True
    """
    return _core.num_threads()


def set_num_threads(n: int) -> None:
    """Sets how many threads a call may use. Results do not depend on it.

    The default is the environment variable TENSORHASH_NUM_THREADS, or else as many as the CPU
    affinity and the cgroup allow.

    >>> before = get_num_threads()
    >>> set_num_threads(1)
    >>> get_num_threads()
    1
    >>> set_num_threads(before)
    """
    _core.set_num_threads(max(-1, min(integer(n, "n", None), 1 << 30)))


def release_memory() -> int:
    """Returns cached memory to the system. The result is the number of bytes.

    Freed tables and results leave blocks of at least 256 KiB in a cache for the next ones. It holds
    at most 1 GiB, and at most a sixteenth of the machine's memory or of the cgroup's limit,
    whichever is lower. Tables and arrays in use are not touched. Ranks on one machine also give back
    the memory that they share (`tensorhash.distributed`).

    >>> release_memory() >= 0
    True
    """
    return _core.release_memory() + sum(keeper() for keeper in KEEPERS)


def show_config() -> None:
    """Prints version, threads, devices and machine, for bug reports.

    >>> show_config()  # doctest: +ELLIPSIS
    tensorhash ...
    """
    rows = {
        "tensorhash": _core.version,
        "threads": f"{get_num_threads()} of {os.cpu_count()}",
        **device_report(),
        "machine": f"{platform.system()} {platform.machine()}, {_core.instruction_set()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    for name, value in rows.items():
        print(f"{name:13}{value}")
