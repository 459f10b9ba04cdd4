"""Checks the wheel tensorhash-tf beside that of tensorhash.

usage: check_tensorflow_wheel.py TENSORHASH_WHEEL TENSORFLOW_WHEEL
"""

from __future__ import annotations

import re
import sys
import tempfile
import zipfile
from pathlib import Path

from check_cuda_wheel import files, metadata
from check_wheel import needed_libraries, run_paths

OTHERS = {"tensorhash_tf/__init__.py", "tensorhash_tf/sources.txt"}
OPS = re.compile(r"tensorhash_tf/tensorhash_ops_\d+_\d+\.so")
LIBRARIES = {
    "libtensorhash.so.0", "libtensorflow_framework.so.2",
    "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6",
}  # fmt: skip


def check_library(wheel: Path, name: str) -> list[str]:
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        library = Path(archive.extract(name, folder))
        problems = [
            f"{name} is linked to {other}"
            for other in needed_libraries(library)
            if other not in LIBRARIES and not other.startswith("ld-linux")
        ]
        if run_paths(library) != ["$ORIGIN/../tensorhash"]:
            problems.append(f"{name} has run paths {run_paths(library)}")
    return problems


def check(library: Path, ops: Path) -> list[str]:
    problems = []
    if not re.fullmatch(r"tensorhash_tf-[0-9.]+-py3-none-\w+\.whl", ops.name):
        problems.append("expected a name with py3-none and the platform")
    installed = {name for name in files(ops) if ".dist-info/" not in name}
    libraries = sorted(name for name in installed if OPS.fullmatch(name))
    if not libraries or installed != {*OTHERS, *libraries}:
        problems.append(f"installs {sorted(installed)}, expected libraries and {sorted(OTHERS)}")
    if overlap := files(ops) & files(library):
        problems.append(f"has files of {library.name}: {sorted(overlap)}")
    version = metadata(library)["Version"]
    if metadata(ops)["Version"] != version:
        problems.append(f"is version {metadata(ops)['Version']}, tensorhash is {version}")
    needs = metadata(ops).get_all("Requires-Dist")
    if needs != [f"tensorhash=={version}"]:
        problems.append(f"depends on {needs}, expected tensorhash=={version}")
    return problems + [one for name in libraries for one in check_library(ops, name)]


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    library, ops = Path(sys.argv[1]), Path(sys.argv[2])
    problems = check(library, ops)
    for problem in problems:
        print(f"    {ops.name}: {problem}", file=sys.stderr)
    if not problems:
        found = ", ".join(sorted(name for name in files(ops) if OPS.fullmatch(name)))
        print(f"    {ops.name}: {ops.stat().st_size / 1e6:.2f} MB, {found}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
