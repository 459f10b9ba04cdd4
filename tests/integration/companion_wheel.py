"""What the wheels beside tensorhash's own have in common: a version, a pin, and no foreign library."""

from __future__ import annotations

import re
import sys
import tempfile
import zipfile
from collections.abc import Callable
from email.message import Message
from email.parser import Parser
from pathlib import Path

from check_wheel import needed_libraries, run_paths

# libtensorhash and the libraries that every system has.
COMMON = {"libtensorhash.so.0", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6"}


def files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def installed(wheel: Path) -> set[str]:
    return {name for name in files(wheel) if ".dist-info/" not in name}


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def check_companion(library: Path, wheel: Path, name: str) -> list[str]:
    """Problems of `wheel`, called `name`, beside tensorhash's wheel `library`."""
    problems = []
    if not re.fullmatch(rf"{name}-[0-9.]+-py3-none-\w+\.whl", wheel.name):
        problems.append("expected a name with py3-none and the platform")
    if overlap := files(wheel) & files(library):
        problems.append(f"has files of {library.name}: {sorted(overlap)}")
    version = metadata(library)["Version"]
    if metadata(wheel)["Version"] != version:
        problems.append(f"is version {metadata(wheel)['Version']}, tensorhash is {version}")
    needs = metadata(wheel).get_all("Requires-Dist")
    if needs != [f"tensorhash=={version}"]:
        problems.append(f"depends on {needs}, expected tensorhash=={version}")
    return problems


def check_binary(wheel: Path, name: str, allowed: set[str]) -> list[str]:
    """Problems of a shared library in the wheel: what it is linked to, and where it searches."""
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        binary = Path(archive.extract(name, folder))
        problems = [
            f"{name} is linked to {other}"
            for other in needed_libraries(binary)
            if other not in allowed and not other.startswith("ld-linux")
        ]
        if run_paths(binary) != ["$ORIGIN/../tensorhash"]:
            problems.append(f"{name} has run paths {run_paths(binary)}")
    return problems


def report(
    usage: str | None,
    check: Callable[[Path, Path], list[str]],
    summary: Callable[[Path], str],
) -> int:
    """Checks the two wheels of the command line; prints problems or a summary. The exit code."""
    if len(sys.argv) != 3:
        print(usage)
        return 2
    library, wheel = Path(sys.argv[1]), Path(sys.argv[2])
    problems = check(library, wheel)
    for problem in problems:
        print(f"    {wheel.name}: {problem}", file=sys.stderr)
    if not problems:
        print(f"    {wheel.name}: {summary(wheel)}")
    return 1 if problems else 0
