"""Checks the wheel of the CUDA plugin beside that of tensorhash.

usage: check_cuda_wheel.py TENSORHASH_WHEEL CUDA_WHEEL
"""

from __future__ import annotations

import re
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

from check_wheel import MAX_BYTES, needed_libraries, run_paths

PLUGIN = "tensorhash_cuda/libtensorhash_cuda.so"
# The CUDA runtime is inside the plugin, and the driver is looked for at run time.
LIBRARIES = {"libtensorhash.so.0", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6"}


def files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def metadata(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def check_plugin(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        plugin = Path(archive.extract(PLUGIN, folder))
        foreign = [
            name
            for name in needed_libraries(plugin)
            if name not in LIBRARIES and not name.startswith("ld-linux")
        ]
        problems = [f"{PLUGIN} is linked to {name}" for name in foreign]
        if run_paths(plugin) != ["$ORIGIN/../tensorhash"]:
            problems.append(f"{PLUGIN} has run paths {run_paths(plugin)}")
    return problems


def check(library: Path, plugin: Path) -> list[str]:
    problems = []
    if plugin.stat().st_size >= MAX_BYTES:
        problems.append(f"{plugin.stat().st_size} bytes, expected under {MAX_BYTES}")
    if not re.fullmatch(r"tensorhash_cu13-[0-9.]+-py3-none-\w+\.whl", plugin.name):
        problems.append("expected a name with py3-none and the platform")
    installed = {name for name in files(plugin) if ".dist-info/" not in name}
    if installed != {PLUGIN}:
        problems.append(f"installs {sorted(installed)}, expected {PLUGIN} alone")
    if overlap := files(plugin) & files(library):
        problems.append(f"has files of {library.name}: {sorted(overlap)}")
    version = metadata(library)["Version"]
    if metadata(plugin)["Version"] != version:
        problems.append(f"is version {metadata(plugin)['Version']}, tensorhash is {version}")
    needs = metadata(plugin).get_all("Requires-Dist")
    if needs != [f"tensorhash=={version}"]:
        problems.append(f"depends on {needs}, expected tensorhash=={version}")
    return problems + (check_plugin(plugin) if PLUGIN in installed else [])


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    library, plugin = Path(sys.argv[1]), Path(sys.argv[2])
    problems = check(library, plugin)
    for problem in problems:
        print(f"    {plugin.name}: {problem}", file=sys.stderr)
    if not problems:
        print(f"    {plugin.name}: {plugin.stat().st_size / 1e6:.2f} MB, needs tensorhash only")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
