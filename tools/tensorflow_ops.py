"""Compiles the TensorFlow ops for several TensorFlow versions, from the headers in TensorFlow's own wheels.

usage: tools/tensorflow_ops.py FOLDER: writes tensorhash_ops_<major>_<minor>.so for each version, and sources.txt.
Needs the package tensorhash. TensorFlow itself is not installed: its wheels are downloaded and unpacked.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import tensorhash

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "build" / "tensorflow-wheels"
#: Where the linker looks for libtensorhash: the two packages lie side by side.
BESIDE = "$ORIGIN/../tensorhash"
# As tf.sysconfig.get_compile_flags() has them in these versions.
FLAGS = ("-D_GLIBCXX_USE_CXX11_ABI=1", "--std=c++17", "-DEIGEN_MAX_ALIGN_BYTES=64")


def load_build():
    """The module tensorhash.tensorflow._build, without importing TensorFlow."""
    file = Path(tensorhash.__file__).parent / "tensorflow" / "_build.py"
    spec = importlib.util.spec_from_file_location("tensorhash_tensorflow_build", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def newest_of_each_minor(oldest: tuple[int, int]) -> list[str]:
    """The newest release of each minor version from `oldest` on, as pip sees them."""
    said = subprocess.run(
        [sys.executable, "-m", "pip", "index", "versions", "tensorflow-cpu"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    listed = re.search(r"^Available versions: (.+)$", said, re.MULTILINE)
    if listed is None:
        raise SystemExit("pip found no version of tensorflow-cpu for this Python")
    newest: dict[tuple[int, int], str] = {}
    for version in listed[1].split(", "):  # the newest comes first
        minor = tuple(int(part) for part in version.split(".")[:2])
        if minor >= oldest:
            newest.setdefault(minor, version)
    return [newest[minor] for minor in sorted(newest)]


def unpacked(version: str) -> Path:
    """The folder tensorflow/ of that version's wheel: headers and the library to link with."""
    folder = WHEELS / version
    done = folder / "done"
    if not done.exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
             "--only-binary=:all:", "-d", str(folder), f"tensorflow-cpu=={version}"],
            check=True,
        )  # fmt: skip
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            wanted = [name for name in archive.namelist()
                      if name.startswith("tensorflow/include/") or "libtensorflow_framework.so" in name]  # fmt: skip
            archive.extractall(folder, wanted)
        wheel.unlink()
        done.touch()
    return folder / "tensorflow"


def main() -> None:
    target = Path(sys.argv[1])
    build = load_build()
    compiler = build.find_compiler()
    for version in newest_of_each_minor(build.OLDEST):
        tensorflow = unpacked(version)
        flags = [
            "-isystem",
            str(tensorflow / "include"),
            *FLAGS,
            *build.OUR_FLAGS,
            f"-I{build.HEADERS}",
        ]
        library = build.library_file()
        linking = [
            f"-L{tensorflow}", "-l:libtensorflow_framework.so.2", f"-L{library.parent}", f"-l:{library.name}",
            f"-Wl,-rpath,{BESIDE}", "-Wl,--strip-debug", build.LINK_HARDENED,
        ]  # fmt: skip
        print(f"compiling the ops for TensorFlow {version}", flush=True)
        build.compile_library(compiler, flags, linking, target / build.prebuilt_name(version))
    (target / "sources.txt").write_text(build.fingerprint_of_sources() + "\n")


if __name__ == "__main__":
    main()
