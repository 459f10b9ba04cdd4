"""Checks a wheel: its size, contents and dependencies, and the libraries that it links.

usage: check_wheel.py WHEEL
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

MAX_BYTES = 5_000_000
# The C and C++ run-time libraries and libtensorhash itself: no OpenMP, TBB, CUDA or framework.
ALLOWED_LIBRARIES = re.compile(
    r"lib(tensorhash|stdc\+\+|gcc_s|c|m|pthread|dl|rt)\.so(\.\d+)?|ld-linux.*|libc\+\+(abi)?\.so.*"
)
# All files here are compiled on the user's machine. If one header is missing, the import fails.
OPS = Path(__file__).resolve().parents[2] / "integrations" / "tensorflow"
REQUIRED = [
    "tensorhash/__init__.py",
    "tensorhash/_core.pyi",
    "tensorhash/py.typed",
    "tensorhash/cli/__init__.py",
    *(f"tensorhash/view/{name}" for name in ("page.html", "page.css", "raster.js", "app.js")),
    "tensorhash/include/tensorhash/c.h",
    "tensorhash/include/tensorhash/export.hpp",
    "tensorhash/tensorflow/__init__.py",
    *(f"tensorhash/tensorflow/ops/{file.name}" for file in sorted(OPS.iterdir())),
]
# The wheel ships the TensorFlow ops and the public headers as sources, because they are compiled on
# the user's machine. It ships no other sources.
SOURCE_FOLDERS = re.compile(r"tensorhash/(include/tensorhash|tensorflow/ops)/")


def check_contents(names: list[str]) -> list[str]:
    problems = [f"{name} is missing" for name in REQUIRED if name not in names]
    if not any(re.fullmatch(r"tensorhash/_core\..*so", name) for name in names):
        problems.append("the extension tensorhash/_core*.so is missing")
    if not any(re.fullmatch(r"tensorhash/libtensorhash\.so.*", name) for name in names):
        problems.append("tensorhash/libtensorhash.so is missing")
    foreign = [name for name in names if not re.match(r"tensorhash(-[^/]*\.dist-info)?/", name)]
    problems += [f"{name} does not belong into the wheel" for name in foreign]
    sources = [name for name in names if re.search(r"\.(cpp|cc|hpp|h|cmake|pyc)$", name)]
    problems += [
        f"{name} does not belong into the wheel"
        for name in sources
        if not SOURCE_FOLDERS.match(name)
    ]
    return problems


def check_metadata(text: str) -> list[str]:
    metadata = Parser().parsestr(text)
    needs = metadata.get_all("Requires-Dist") or []
    needs = [need for need in needs if "extra ==" not in need]
    names = [re.match(r"[A-Za-z0-9_.-]+", need)[0].lower() for need in needs]
    return [] if names == ["numpy"] else [f"depends on {needs}, expected NumPy only"]


def dynamic_entries(path: Path, kinds: str) -> list[str]:
    dynamic = subprocess.run(
        ["readelf", "-d", str(path)], check=True, capture_output=True, text=True
    ).stdout
    return re.findall(rf"\((?:{kinds})\).*\[(.*)\]", dynamic)


def needed_libraries(path: Path) -> list[str]:
    return dynamic_entries(path, "NEEDED")


def run_paths(path: Path) -> list[str]:
    return dynamic_entries(path, "RPATH|RUNPATH")


def check_library(path: Path) -> list[str]:
    problems = [
        f"{path.name} is linked to {name}"
        for name in needed_libraries(path)
        if not ALLOWED_LIBRARIES.fullmatch(name)
    ]
    paths = run_paths(path)
    problems += [f"{path.name} has run path {p}" for p in paths if p not in ("$ORIGIN", "")]
    if path.name.startswith("_core") and paths != ["$ORIGIN"]:
        problems.append(f"{path.name} has run path {paths}, expected $ORIGIN")
    return problems


def check(wheel: Path) -> list[str]:
    problems = []
    size = wheel.stat().st_size
    if size >= MAX_BYTES:
        problems.append(f"{size} bytes, expected under {MAX_BYTES}")
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        problems += check_contents(names)
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        problems += check_metadata(archive.read(metadata).decode())
        for name in names:
            if ".so" in Path(name).name:
                problems += check_library(Path(archive.extract(name, folder)))
    return problems


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    wheel = Path(sys.argv[1])
    problems = check(wheel)
    for problem in problems:
        print(f"    {wheel.name}: {problem}", file=sys.stderr)
    if not problems:
        print(f"    {wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, needs NumPy only")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
