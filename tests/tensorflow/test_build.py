"""The first import compiles; what stands in its way is one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tensorhash.tensorflow import _build


def failure_of_import(**environment: str) -> str:
    """The last line that `import tensorhash.tensorflow` fails with."""
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


def test_a_compiler_that_fails(tmp_path):
    broken = tmp_path / "broken++"
    broken.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exit 0\necho 'error: out of order'\nexit 1\n"
    )
    broken.chmod(0o755)
    cache = tmp_path / "cache"
    said = failure_of_import(CXX=str(broken), TENSORHASH_CACHE=str(cache))
    assert "could not be compiled (error: out of order)" in said
    assert not list(cache.rglob("*.so"))


def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    said = failure_of_import(TENSORHASH_CACHE=str(tmp_path / "file"))
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


def test_the_library_is_made_once_and_its_key_knows_the_compiler(tmp_path):
    import tensorflow as tf

    [compiler] = _build.find_compiler()
    made = _build.library()
    stamp = made.stat().st_mtime_ns
    assert _build.library() == made
    assert made.stat().st_mtime_ns == stamp
    other = tmp_path / "c++"
    other.symlink_to(compiler)
    key = _build.fingerprint_of_compiler([compiler])
    assert made.parent.name == f"tensorflow-{tf.__version__}-{_build.fingerprint(tf)}-{key}"
    assert _build.fingerprint_of_compiler([str(other)]) != key


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
    # Not even root can make a folder where a file is.
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
    # Says what it was asked, and makes what would be linked.
    launcher.write_text(
        f'#!/bin/sh\necho "$@" >> {said}\n[ "$2" = -shared ] && cp {made} "$6"\nexit 0\n'
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


def test_the_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("TENSORHASH_CACHE", str(tmp_path))
    assert _build.cache_folder() == tmp_path
    monkeypatch.delenv("TENSORHASH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert _build.cache_folder() == Path("/somewhere/tensorhash")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert _build.cache_folder() == Path.home() / ".cache" / "tensorhash"
