"""Finds the op library for the installed TensorFlow, or compiles it into the user's cache.

TensorFlow's C++ interface changes with every minor version, so one library in the wheel cannot work
for all. The package tensorhash-tf has libraries for several versions. For others this package has
the sources and headers; only a C++17 compiler is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import tensorhash

PACKAGE = Path(tensorhash.__file__).resolve().parent
SOURCES = PACKAGE / "tensorflow" / "ops"
HEADERS = PACKAGE / "include"
UNITS = ("ops.cc", "compute.cc", "bounded.cc", "gpu.cc")
NAME = "tensorhash_ops.so"
OLDEST = (2, 19)
# The hardening flags of cmake/flags.cmake.
HARDENED = ("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2")
# As in cmake/flags.cmake: a fused multiply-add would round once instead of twice.
SAME_BITS = "-ffp-contract=off"

OUR_FLAGS = ("-O2", "-fPIC", SAME_BITS, *HARDENED)
LINK_HARDENED = "-Wl,-z,relro,-z,now,-z,noexecstack"


def import_tensorflow() -> ModuleType:
    """Imports TensorFlow; ImportError says what is missing."""
    try:
        import tensorflow
    except ImportError as error:
        raise ImportError(
            "tensorhash.tensorflow needs TensorFlow 2.19 or newer, which cannot be imported here "
            f"({error}); pip install tensorflow, or tensorflow-cpu"
        ) from error
    version = tuple(int(part) for part in tensorflow.__version__.split(".")[:2])
    if version < OLDEST:
        raise ImportError(
            f"tensorhash.tensorflow needs TensorFlow 2.19 or newer, found {tensorflow.__version__}"
        )
    module: ModuleType = tensorflow
    return module


def library_file() -> Path:
    """The path of the package's libtensorhash."""
    found = sorted(PACKAGE.glob("libtensorhash.so*"))
    if not found:
        raise ImportError(
            f"tensorhash.tensorflow: expected libtensorhash.so in {PACKAGE}, got none; "
            "reinstall tensorhash"
        )
    return found[0]


def find_compiler() -> list[str]:
    """The command in $CXX, such as "ccache g++", or the first C++ compiler on the path."""
    try:
        own = shlex.split(os.environ.get("CXX", ""))
    except ValueError as error:
        raise ImportError(
            f"tensorhash.tensorflow: CXX: expected a command, got {os.environ['CXX']!r} ({error})"
        ) from error
    wanted = own[:1] or ["c++", "g++", "clang++"]
    for name in wanted:
        if found := shutil.which(name):
            return [found, *own[1:]]
    raise ImportError(
        "tensorhash.tensorflow compiles its TensorFlow ops at the first import and found no C++ "
        f"compiler (looked for {', '.join(wanted)}); install one (Debian: g++), or name it in CXX"
    )


def cache_folder() -> Path:
    """The folder $TENSORHASH_CACHE, or tensorhash/ in the user's cache."""
    if own := os.environ.get("TENSORHASH_CACHE"):
        return Path(own).expanduser().resolve()
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "tensorhash"


def make_private(folder: Path) -> None:
    """Makes the folder and its missing parents, accessible to this user only."""
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def require_private(folder: Path) -> None:
    """ImportError if another user could write to the folder: we load code from it."""
    try:
        found = folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    mine = os.geteuid()
    if found.st_uid not in (mine, 0):
        raise ImportError(
            f"tensorhash.tensorflow: expected a cache that belongs to user {mine} or to root, "
            f"got {folder}, which belongs to user {found.st_uid}; "
            "name another folder in TENSORHASH_CACHE"
        )
    if found.st_mode & 0o022:
        raise ImportError(
            f"tensorhash.tensorflow: expected a cache that only its owner can write, got {folder} "
            f"with mode {found.st_mode & 0o777:04o}; chmod go-w it, or name another folder in "
            "TENSORHASH_CACHE"
        )


def compile_flags(tf: ModuleType) -> list[str]:
    """TensorFlow's flags, with its headers as system headers to silence their warnings."""
    flags: list[str] = []
    for flag in tf.sysconfig.get_compile_flags():
        flags += ["-isystem", flag[2:]] if flag.startswith("-I") else [flag]
    return [*flags, *OUR_FLAGS, f"-I{HEADERS}"]


def link_flags(tf: ModuleType) -> list[str]:
    library = library_file()
    return [
        *tf.sysconfig.get_link_flags(),
        f"-L{library.parent}",
        f"-l:{library.name}",
        f"-Wl,-rpath,{library.parent}",
        LINK_HARDENED,
    ]


def fingerprint_of_sources() -> str:
    """A hash of this package's version, the ops' sources, and the headers that they include."""
    digest = hashlib.sha256(tensorhash.__version__.encode())
    headers = [HEADERS / "tensorhash" / "c.h", *(HEADERS / "tensorhash" / "step").iterdir()]
    for file in sorted([*SOURCES.iterdir(), *headers]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def fingerprint(tf: ModuleType) -> str:
    """A hash of everything that a cached library depends on, except the compiler."""
    parts = [
        fingerprint_of_sources(),
        tf.__version__,
        tf.__git_version__,
        *compile_flags(tf),
        *link_flags(tf),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def prebuilt_library(tf: ModuleType) -> Path | None:
    """The library of the package tensorhash-tf, if it has one of these sources and TensorFlow."""
    spec = importlib.util.find_spec("tensorhash_tf")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0])
    file = folder / prebuilt_name(tf.__version__)
    sources = folder / "sources.txt"
    if not (file.exists() and sources.exists()):
        return None
    return file if sources.read_text().strip() == fingerprint_of_sources() else None


def prebuilt_name(version: str) -> str:
    """The name of the library for a TensorFlow version: "tensorhash_ops_2_21.so"."""
    major, minor = version.split(".")[:2]
    return f"tensorhash_ops_{major}_{minor}.so"


def fingerprint_of_compiler(compiler: list[str]) -> str:
    """A hash of the compiler's command and version."""
    try:
        said = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ImportError(f"tensorhash.tensorflow: {compiler[0]} cannot run: {error}") from error
    return hashlib.sha256("\0".join([*compiler, said.stdout]).encode()).hexdigest()[:8]


def cached_library(prefix: str) -> Path | None:
    """The newest cached library with this folder prefix, made by any compiler."""
    found = cache_folder().glob(f"{glob.escape(prefix)}*/{NAME}")
    newest = max(found, key=lambda file: file.stat().st_mtime_ns, default=None)
    if newest is not None:
        require_private(newest.parent)
    return newest


def run_all(commands: list[list[str]]) -> None:
    """Runs the commands in parallel; ImportError quotes the first failure."""
    running = []
    for command in commands:
        try:
            running.append(
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
            )
        except OSError as error:
            raise ImportError(f"tensorhash.tensorflow: {command[0]} cannot run: {error}") from error
    said = [process.communicate()[0] for process in running]
    for command, process, text in zip(commands, running, said, strict=True):
        if process.returncode != 0:
            first = next((line for line in text.splitlines() if "error" in line), text.strip())
            raise ImportError(
                "tensorhash.tensorflow: the TensorFlow ops could not be compiled "
                f"({first.strip()[:300] or 'no message'}); the command was: {' '.join(command)}"
            )


def compile_library(
    compiler: list[str], flags: list[str], linking: list[str], target: Path
) -> None:
    """Compiles in a temporary folder, then moves the library to `target`."""
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        work = Path(name)
        objects = [work / f"{unit}.o" for unit in UNITS]
        run_all(
            [
                [*compiler, *flags, "-c", str(SOURCES / unit), "-o", str(made)]
                for unit, made in zip(UNITS, objects, strict=True)
            ]
        )
        linked = work / target.name
        run_all([[*compiler, "-shared", "-o", str(linked), *map(str, objects), *linking]])
        os.replace(linked, target)


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Holds a lock on `file`, which also ends with the process.

    A symbolic link is an error, and the file's content stays, so that a lock cannot damage a file.
    """
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def library() -> Path:
    """The path of the op library for this TensorFlow; compiles it if there is none.

    The package tensorhash-tf comes first, then the cache. Without a compiler or a writable
    cache, as in a prebuilt image, a cached library of any compiler
    is used.
    """
    tf = import_tensorflow()
    if ready := prebuilt_library(tf):
        return ready
    prefix = f"tensorflow-{tf.__version__}-{fingerprint(tf)}-"
    require_private(cache_folder())
    try:
        compiler = find_compiler()
    except ImportError:
        if made := cached_library(prefix):
            return made
        raise
    folder = cache_folder() / f"{prefix}{fingerprint_of_compiler(compiler)}"
    target = folder / NAME
    require_private(folder)
    if target.exists():
        return target
    try:
        make_private(folder)
        require_private(folder)
        with locked(folder / "lock"):
            if not target.exists():
                print(
                    f"tensorhash: compiling its ops for TensorFlow {tf.__version__}, once, "
                    f"into {folder}",
                    file=sys.stderr,
                    flush=True,
                )
                compile_library(compiler, compile_flags(tf), link_flags(tf), target)
    except OSError as error:
        if made := cached_library(prefix):
            return made
        raise ImportError(
            f"tensorhash.tensorflow: the cache {folder} cannot be written ({error}); "
            "name another folder in TENSORHASH_CACHE"
        ) from error
    return target


def load() -> ModuleType:
    """Loads the ops as a module of Python functions."""
    tf = import_tensorflow()
    file = library()
    try:
        ops: ModuleType = tf.load_op_library(str(file))
        return ops
    except tf.errors.OpError as error:
        raise ImportError(
            f"tensorhash.tensorflow: {file} does not load: {error.message}; "
            "delete it to compile it again"
        ) from error
