"""Checks the wheel of the CUDA plugin beside that of tensorhash.

usage: check_cuda_wheel.py TENSORHASH_WHEEL CUDA_WHEEL
"""

from __future__ import annotations

import sys
from pathlib import Path

from check_wheel import MAX_BYTES
from companion_wheel import COMMON, check_binary, check_companion, installed, report

# The CUDA runtime is inside the plugin, and the driver is looked for at run time.
PLUGIN = "tensorhash_cuda/libtensorhash_cuda.so"


def check(library: Path, wheel: Path) -> list[str]:
    problems = check_companion(library, wheel, "tensorhash_cu13")
    if wheel.stat().st_size >= MAX_BYTES:
        problems.append(f"{wheel.stat().st_size} bytes, expected under {MAX_BYTES}")
    found = installed(wheel)
    if found != {PLUGIN}:
        problems.append(f"installs {sorted(found)}, expected {PLUGIN} alone")
    return problems + (check_binary(wheel, PLUGIN, COMMON) if PLUGIN in found else [])


def summary(wheel: Path) -> str:
    return f"{wheel.stat().st_size / 1e6:.2f} MB, needs tensorhash only"


if __name__ == "__main__":
    sys.exit(report(__doc__, check, summary))
