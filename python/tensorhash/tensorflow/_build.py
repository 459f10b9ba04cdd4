"""Compiles the op library for the TensorFlow that is installed, once, into the user's cache, and loads it.

TensorFlow's C++ interface changes with every minor version, so no wheel could hold one library for all. The sources and
the headers are in the package; a C++17 compiler is all that is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
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
UNITS = ("ops.cc", "kernels.cc")
NAME = "tensorhash_ops.so"
OLDEST = (2, 19)
# The flags of cmake/flags.cmake, which hardens the other libraries.
HARDENED = ("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2")
# As there: a fused multiply-add rounds once where x86-64 rounds twice.
SAME_BITS = "-ffp-contract=off"


def import_tensorflow() -> ModuleType:
    """TensorFlow; ImportError says what is missing."""
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
    """The package's libtensorhash."""
    found = sorted(PACKAGE.glob("libtensorhash.so*"))
    if not found:
        raise ImportError(f"tensorhash.tensorflow: {PACKAGE} holds no libtensorhash.so")
    return found[0]


def find_compiler() -> list[str]:
    """$CXX, which may be several words ("ccache g++"), or the first C++ compiler on the path."""
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
    """$TENSORHASH_CACHE, or tensorhash/ in the user's cache."""
    if own := os.environ.get("TENSORHASH_CACHE"):
        return Path(own).expanduser().resolve()
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "tensorhash"


def make_private(folder: Path) -> None:
    """Makes the folder and its missing parents, for this user alone."""
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def require_private(folder: Path) -> None:
    """ImportError if another user could put a library into the folder: it would run in this process."""
    try:
        found = folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    mine = os.geteuid()
    if found.st_uid not in (mine, 0):
        raise ImportError(
            f"tensorhash.tensorflow: expected a cache that belongs to user {mine} or to root, got {folder}, "
            f"which belongs to user {found.st_uid}; name another folder in TENSORHASH_CACHE"
        )
    if found.st_mode & 0o022:
        raise ImportError(
            f"tensorhash.tensorflow: expected a cache that only its owner can write, got {folder} "
            f"with mode {found.st_mode & 0o777:04o}; chmod go-w it, or name another folder in TENSORHASH_CACHE"
        )


def compile_flags(tf: ModuleType) -> list[str]:
    """TensorFlow's own flags, its headers as system headers, since they are full of warnings."""
    flags: list[str] = []
    for flag in tf.sysconfig.get_compile_flags():
        flags += ["-isystem", flag[2:]] if flag.startswith("-I") else [flag]
    return [*flags, "-O2", "-fPIC", SAME_BITS, *HARDENED, f"-I{HEADERS}"]


def link_flags(tf: ModuleType) -> list[str]:
    library = library_file()
    return [
        *tf.sysconfig.get_link_flags(),
        f"-L{library.parent}",
        f"-l:{library.name}",
        f"-Wl,-rpath,{library.parent}",
        "-Wl,-z,relro,-z,now,-z,noexecstack",
    ]


def fingerprint(tf: ModuleType) -> str:
    """Changes with everything that a cached library depends on, except the compiler."""
    parts = [
        tensorhash.__version__,
        tf.__version__,
        tf.__git_version__,
        *compile_flags(tf),
        *link_flags(tf),
    ]
    digest = hashlib.sha256("\0".join(parts).encode())
    headers = [HEADERS / "tensorhash" / "c.h", *(HEADERS / "tensorhash" / "step").iterdir()]
    for file in sorted([*SOURCES.iterdir(), *headers]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def fingerprint_of_compiler(compiler: list[str]) -> str:
    """Changes with the compiler and its version."""
    try:
        said = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ImportError(f"tensorhash.tensorflow: {compiler[0]} cannot run: {error}") from error
    return hashlib.sha256("\0".join([*compiler, said.stdout]).encode()).hexdigest()[:8]


def cached_library(prefix: str) -> Path | None:
    """The newest library in a cache folder with this prefix, made by any compiler."""
    found = cache_folder().glob(f"{glob.escape(prefix)}*/{NAME}")
    newest = max(found, key=lambda file: file.stat().st_mtime_ns, default=None)
    if newest is not None:
        require_private(newest.parent)
    return newest


def run_all(commands: list[list[str]]) -> None:
    """Runs the commands in parallel; ImportError with the first failure, in the compiler's words."""
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


def compile_library(tf: ModuleType, compiler: list[str], target: Path) -> None:
    """Compiles in a temporary folder, then moves the finished library into place."""
    flags = compile_flags(tf)
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
        run_all([[*compiler, "-shared", *map(str, objects), "-o", str(linked), *link_flags(tf)]])
        os.replace(linked, target)


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """One process at a time; the lock ends with the process that holds it.

    A symbolic link is an error, and the file's content stays: a lock must not harm a file of the user's.
    """
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def library() -> Path:
    """The op library for this TensorFlow; compiles it if the cache does not hold it.

    Without a compiler or a writable cache, as in a prebuilt image, a library by any compiler will do.
    """
    tf = import_tensorflow()
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
                compile_library(tf, compiler, target)
    except OSError as error:
        if made := cached_library(prefix):
            return made
        raise ImportError(
            f"tensorhash.tensorflow: the cache {folder} cannot be written ({error}); "
            "name another folder in TENSORHASH_CACHE"
        ) from error
    return target


def load() -> ModuleType:
    """The ops as Python functions."""
    tf = import_tensorflow()
    file = library()
    try:
        ops: ModuleType = tf.load_op_library(str(file))
        return ops
    except tf.errors.OpError as error:
        raise ImportError(
            f"tensorhash.tensorflow: {file} does not load: {error.message}; delete it to have it made anew"
        ) from error
