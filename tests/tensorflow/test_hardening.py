"""The op library that the first import compiles is hardened like the package's own libraries."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from tensorhash.tensorflow import _build


def test_the_op_library_is_hardened(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1] / "python")
    import elf

    found = elf.read(_build.library())
    assert found.full_relro
    assert not found.executable_stack
    assert found.stack_protector
    # FORTIFY only shows in the file if a call needs a check, and no call here does.
    assert "-D_FORTIFY_SOURCE=2" in _build.compile_flags(tf)


def test_the_op_library_has_the_same_bits_everywhere():
    flag = "-ffp-contract=off"
    assert flag in (Path(__file__).resolve().parents[2] / "cmake/flags.cmake").read_text()
    assert flag in _build.compile_flags(tf)
