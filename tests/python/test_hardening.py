"""The shared libraries are hardened: stack protector, FORTIFY, full RELRO, non-executable stack."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import elf
import pytest

import tensorhash

PACKAGE = Path(tensorhash.__file__).parent
LIBRARIES = sorted([*PACKAGE.glob("_core*.so"), *PACKAGE.glob("libtensorhash.so*")])


def test_the_package_holds_the_module_and_the_library():
    assert len(LIBRARIES) == 2


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_libraries_are_hardened(library):
    found = elf.read(library)
    assert found.full_relro
    assert not found.executable_stack
    assert found.stack_protector
    assert found.fortified, "expected calls of checked functions, as __memcpy_chk"


def test_a_library_without_the_flags_is_noticed(tmp_path):
    """Checks the reader on what a compiler makes without and with the flags."""
    compiler = shutil.which("cc") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no compiler on this machine")
    source = tmp_path / "plain.c"
    source.write_text(
        "#include <string.h>\n"
        "int fill(char const* from, unsigned long n)"
        "{ char to[64]; memcpy(to, from, n); return to[n % 64]; }\n"
    )
    off = ["-fno-stack-protector", "-U_FORTIFY_SOURCE", "-Wl,-z,norelro", "-Wl,-z,lazy"]
    on = ["-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro"]
    found = []
    for flags in (off, [*on, "-Wl,-z,now"]):
        made = tmp_path / "plain.so"
        command = [compiler, "-x", "c", "-O2", "-shared", "-fPIC", *flags, source, "-o", made]
        subprocess.run(command, check=True)
        found.append(elf.read(made))
    plain, hardened = found
    assert not (plain.full_relro or plain.stack_protector or plain.fortified)
    assert hardened.full_relro and hardened.stack_protector
    assert hardened.fortified == {"__memcpy_chk"}
