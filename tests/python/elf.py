"""Reads the hardening of an ELF library: program headers, dynamic flags and imported functions."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 2, 0x6474E551, 0x6474E552
SHT_DYNSYM = 11
DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1 = 24, 30, 0x6FFFFFFB
DF_BIND_NOW, DF_1_NOW = 8, 1
SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True)
class Hardening:
    executable_stack: bool
    relro: bool
    bind_now: bool
    imports: frozenset[str]

    @property
    def full_relro(self) -> bool:
        return self.relro and self.bind_now

    @property
    def stack_protector(self) -> bool:
        return bool({"__stack_chk_fail", "__stack_chk_guard"} & self.imports)

    @property
    def fortified(self) -> set[str]:
        """The checked functions of the C library that the library calls."""
        return {name for name in self.imports if name.startswith("__") and name.endswith("_chk")}


def read(path: Path | str) -> Hardening:
    data = Path(path).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path}: expected a little-endian 64-bit ELF file")
    offset, size, count = struct.unpack_from("<Q14xHH", data, 32)
    headers = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
    stack = [flags for kind, flags, *_ in headers if kind == PT_GNU_STACK]
    entries = dict(dynamic_entries(data, headers))
    return Hardening(
        executable_stack=not stack or bool(stack[0] & 1),
        relro=any(kind == PT_GNU_RELRO for kind, *_ in headers),
        bind_now=bool(
            entries.get(DT_FLAGS, 0) & DF_BIND_NOW
            or entries.get(DT_FLAGS_1, 0) & DF_1_NOW
            or DT_BIND_NOW in entries
        ),
        imports=frozenset(imported(data)),
    )


def dynamic_entries(data: bytes, headers: list[tuple]):
    for kind, _, offset, _, _, size in headers:
        if kind == PT_DYNAMIC:
            for tag, value in struct.iter_unpack("<QQ", data[offset : offset + size]):
                if tag == 0:
                    return
                yield tag, value


def imported(data: bytes):
    """The names of the undefined dynamic symbols."""
    offset, size, count = struct.unpack_from("<Q10xHH", data, 40)
    sections = [struct.unpack_from("<IIQQQQII", data, offset + i * size) for i in range(count)]
    for _, kind, _, _, start, length, link, _ in sections:
        if kind != SHT_DYNSYM:
            continue
        names = sections[link][4]
        for name, _, _, section, _, _ in SYMBOL.iter_unpack(data[start : start + length]):
            if section == 0 and name:
                yield data[names + name : data.index(b"\0", names + name)].decode()
