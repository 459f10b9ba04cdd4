"""The first import compiles the ops; every obstacle is an error of one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from tensorhash.tensorflow import _build


def failure_of_import(**environment: str) -> str:
    """The last line of the failure of `import tensorhash.tensorflow`."""
    done = subprocess.run(
        [sys.executable, "-c", "import tensorhash.tensorflow"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
    )
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


def test_no_compiler(tmp_path):
    said = failure_of_import(CXX="no-such-compiler", TENSORHASH_CACHE=str(tmp_path))
    assert said.startswith("ImportError: tensorhash.tensorflow compiles its TensorFlow ops")
    assert "no-such-compiler" in said


def failure_of_library(monkeypatch, **environment: str) -> str:
    """The same without a process, in which TensorFlow would be imported again."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImportError) as caught:
        _build.library()
    return str(caught.value)


def test_a_compiler_that_fails(tmp_path, monkeypatch):
    broken = tmp_path / "broken++"
    broken.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exit 0\necho 'error: out of order'\nexit 1\n"
    )
    broken.chmod(0o755)
    cache = tmp_path / "cache"
    said = failure_of_library(monkeypatch, CXX=str(broken), TENSORHASH_CACHE=str(cache))
    assert "could not be compiled (error: out of order)" in said
    assert not list(cache.rglob("*.so"))


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    said = failure_of_library(monkeypatch, TENSORHASH_CACHE=str(tmp_path / "file"))
    assert "cannot be written" in said
    assert "TENSORHASH_CACHE" in said


def test_no_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ImportError, match="needs TensorFlow 2.19 or newer.*pip install"):
        _build.import_tensorflow()


def test_an_old_tensorflow(monkeypatch):
    import types

    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="2.18.1"))
    with pytest.raises(ImportError, match="found 2.18.1"):
        _build.import_tensorflow()


def test_the_library_is_built_once_and_its_key_depends_on_the_compiler(tmp_path):
    import tensorflow as tf

    compiler = _build.find_compiler()
    made = _build.library()
    stamp = made.stat().st_mtime_ns
    assert _build.library() == made
    assert made.stat().st_mtime_ns == stamp
    other = tmp_path / "c++"
    other.symlink_to(compiler[0])
    key = _build.fingerprint_of_compiler(compiler)
    assert made.parent.name == f"tensorflow-{tf.__version__}-{_build.fingerprint(tf)}-{key}"
    assert _build.fingerprint_of_compiler([str(other), *compiler[1:]]) != key


def test_without_a_compiler_a_filled_cache_is_enough(monkeypatch, tmp_path):
    made = _build.library()
    cache = tmp_path / "cache"
    shutil.copytree(made.parent, cache / made.parent.name)
    other = cache / "tensorflow-2.19.0-0123456789abcdef-01234567" / made.name
    other.parent.mkdir()
    other.write_text("of another TensorFlow")
    environment = {"PATH": str(tmp_path), "TENSORHASH_CACHE": str(cache)}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import tensorhash.tensorflow as thtf; thtf.HashTable('int32', 'int32', 0)",
        ],
        env={name: value for name, value in os.environ.items() if name != "CXX"} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("TENSORHASH_CACHE", str(cache))
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert _build.library() == cache / made.parent.name / made.name
    shutil.rmtree(cache / made.parent.name)
    with pytest.raises(ImportError, match="no-such-compiler"):
        _build.library()


def test_a_cache_that_cannot_be_written_is_read(monkeypatch, tmp_path):
    made = _build.library()
    prefix, _, own = made.parent.name.rpartition("-")
    cache = tmp_path / "cache"
    shutil.copytree(made.parent, cache / f"{prefix}-01234567")
    # Not even root can create a folder where a file is.
    (cache / f"{prefix}-{own}").write_text("")
    monkeypatch.setenv("TENSORHASH_CACHE", str(cache))
    assert _build.library() == cache / f"{prefix}-01234567" / made.name
    shutil.rmtree(cache / f"{prefix}-01234567")
    with pytest.raises(ImportError, match="cannot be written"):
        _build.library()


def test_a_compiler_of_several_words(monkeypatch, tmp_path):
    made = _build.library()
    said = tmp_path / "said"
    launcher = tmp_path / "my launcher"
    # Prints its arguments, and makes the file that would be linked.
    launcher.write_text(
        f'#!/bin/sh\necho "$@" >> {said}\n[ "$2" = -shared ] && cp {made} "$4"\nexit 0\n'
    )
    launcher.chmod(0o755)
    monkeypatch.setenv("CXX", f"'{launcher}' g++")
    monkeypatch.setenv("TENSORHASH_CACHE", str(tmp_path / "cache"))
    assert _build.find_compiler() == [str(launcher), "g++"]
    assert _build.library().read_bytes() == made.read_bytes()
    assert all(line.startswith("g++ ") for line in said.read_text().splitlines())
    monkeypatch.setenv("CXX", "'g++")
    with pytest.raises(ImportError, match="CXX: expected a command"):
        _build.find_compiler()


def fake_compiler(folder: Path) -> tuple[Path, Path]:
    """A slow compiler that copies the existing library, and the file where it logs its calls."""
    made, asked, compiler = _build.library(), folder / "asked", folder / "slow++"
    compiler.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "$@" >> {asked}\nsleep 1\n'
        f'[ "$1" = -shared ] && cp {made} "$3"\nexit 0\n'
    )
    compiler.chmod(0o755)
    return compiler, asked


def test_the_compilation_is_announced_once(monkeypatch, tmp_path, capsys):
    import tensorflow as tf

    compiler, asked = fake_compiler(tmp_path)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("TENSORHASH_CACHE", str(tmp_path / "cache"))
    made = _build.library()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"tensorhash: compiling its ops for TensorFlow {tf.__version__}, once, into {made.parent}\n"
    )
    assert _build.library() == made
    assert capsys.readouterr().err == ""
    assert len(asked.read_text().splitlines()) == len(_build.UNITS) + 1


def test_two_processes_compile_once(tmp_path):
    compiler, asked = fake_compiler(tmp_path)
    # They wait for each other before the import: otherwise the later one could find the library.
    program = (
        "import pathlib, sys, time, tensorflow as tf\n"
        "here, me, other = pathlib.Path(sys.argv[1]), *sys.argv[2:]\n"
        "(here / me).touch()\n"
        "while not (here / other).exists(): time.sleep(0.01)\n"
        "import tensorhash.tensorflow as thtf\n"
        "table = thtf.HashTable('int64', 'int64', -1)\n"
        "table.insert([1], [2])\n"
        "print(int(table[1]))\n"
    )
    environment = {"CXX": str(compiler), "TENSORHASH_CACHE": str(tmp_path / "cache")}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), me, other],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for me, other in (("one", "two"), ("two", "one"))
    ]
    said = [process.communicate(timeout=300) for process in running]
    assert [out for out, _ in said] == ["2\n", "2\n"], said
    assert sum(err.count("tensorhash: compiling its ops") for _, err in said) == 1
    assert len(asked.read_text().splitlines()) == len(_build.UNITS) + 1
    [folder] = (tmp_path / "cache").iterdir()
    assert sorted(file.name for file in folder.iterdir()) == ["lock", _build.NAME]


def stat_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_cache_is_made_for_its_owner_alone(monkeypatch, tmp_path):
    compiler, _ = fake_compiler(tmp_path)
    cache = tmp_path / "missing" / "cache"
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("TENSORHASH_CACHE", str(cache))
    before = os.umask(0)
    try:
        made = _build.library()
    finally:
        os.umask(before)
    assert stat_mode(made.parent) == stat_mode(cache) == stat_mode(cache.parent) == 0o700
    assert stat_mode(made.parent / "lock") == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("compiler", [True, False])
def test_a_cache_that_others_can_write_is_refused(monkeypatch, tmp_path, mode, inner, compiler):
    made = _build.library()
    cache = tmp_path / "cache"
    shutil.copytree(made.parent, cache / made.parent.name)
    monkeypatch.setenv("TENSORHASH_CACHE", str(cache))
    if not compiler:
        monkeypatch.setenv("CXX", "no-such-compiler")
    assert _build.library() == cache / made.parent.name / made.name
    wrong = cache / made.parent.name if inner else cache
    wrong.chmod(mode)
    with pytest.raises(ImportError, match=f"{wrong} with mode {mode:04o}; chmod go-w"):
        _build.library()


def test_a_cache_of_another_user_is_refused(monkeypatch, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(cache, 4343, -1)
    owner = cache.stat().st_uid
    monkeypatch.setenv("TENSORHASH_CACHE", str(cache))
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(ImportError, match=f"expected a cache that belongs to user 4242.*{owner}"):
        _build.library()
    assert not list(cache.iterdir())


def test_the_lock_follows_no_link_and_truncates_nothing(monkeypatch, tmp_path):
    made = _build.library()
    compiler, _ = fake_compiler(tmp_path)
    monkeypatch.setenv("CXX", str(compiler))
    cache = tmp_path / "cache"
    monkeypatch.setenv("TENSORHASH_CACHE", str(cache))
    prefix = made.parent.name.rpartition("-")[0]
    folder = cache / f"{prefix}-{_build.fingerprint_of_compiler([str(compiler)])}"
    folder.mkdir(parents=True, mode=0o700)
    treasure = tmp_path / "treasure"
    treasure.write_text("of the user")
    (folder / "lock").symlink_to(treasure)
    with pytest.raises(ImportError, match="cannot be written"):
        _build.library()
    assert treasure.read_text() == "of the user"
    (folder / "lock").unlink()
    (folder / "lock").write_text("what was there")
    assert _build.library() == folder / made.name
    assert (folder / "lock").read_text() == "what was there"


def test_the_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("TENSORHASH_CACHE", str(tmp_path))
    assert _build.cache_folder() == tmp_path
    monkeypatch.delenv("TENSORHASH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert _build.cache_folder() == Path("/somewhere/tensorhash")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert _build.cache_folder() == Path.home() / ".cache" / "tensorhash"


def test_a_prebuilt_library_is_taken_only_if_it_matches(tmp_path, monkeypatch):
    made = _build.library()
    folder = tmp_path / "tensorhash_tf"
    folder.mkdir()
    (folder / "__init__.py").touch()
    ready = folder / _build.prebuilt_name(tf.__version__)
    ready.write_bytes(made.read_bytes())
    monkeypatch.syspath_prepend(tmp_path)
    assert _build.library() == made  # it does not say which sources it was made of
    (folder / "sources.txt").write_text(_build.fingerprint_of_sources() + "\n")
    with monkeypatch.context() as no_compiler:
        no_compiler.setenv("CXX", "/nonexistent")
        assert _build.library() == ready
    (folder / "sources.txt").write_text("0123456789abcdef\n")
    assert _build.library() == made
    (folder / "sources.txt").write_text(_build.fingerprint_of_sources() + "\n")
    ready.rename(folder / _build.prebuilt_name("2.99.0"))
    assert _build.library() == made
