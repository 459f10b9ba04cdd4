"""Checks the wheel tensorhash-tf beside that of tensorhash.

usage: check_tensorflow_wheel.py TENSORHASH_WHEEL TENSORFLOW_WHEEL
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from companion_wheel import COMMON, check_binary, check_companion, installed, report

OTHERS = {"tensorhash_tf/__init__.py", "tensorhash_tf/sources.txt"}
OPS = re.compile(r"tensorhash_tf/tensorhash_ops_\d+_\d+\.so")


def libraries(wheel: Path) -> list[str]:
    return sorted(name for name in installed(wheel) if OPS.fullmatch(name))


def check(library: Path, wheel: Path) -> list[str]:
    problems = check_companion(library, wheel, "tensorhash_tf")
    names = libraries(wheel)
    if not names or installed(wheel) != {*OTHERS, *names}:
        found = sorted(installed(wheel))
        problems.append(f"installs {found}, expected libraries and {sorted(OTHERS)}")
    allowed = {*COMMON, "libtensorflow_framework.so.2"}
    return problems + [one for name in names for one in check_binary(wheel, name, allowed)]


def summary(wheel: Path) -> str:
    return f"{wheel.stat().st_size / 1e6:.2f} MB, {', '.join(libraries(wheel))}"


if __name__ == "__main__":
    sys.exit(report(__doc__, check, summary))
