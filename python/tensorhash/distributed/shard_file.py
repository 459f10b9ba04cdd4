"""Reads and writes one rank's checkpoint file: a JSON header, the keys, then each value column.

    8 bytes  "THSHARD1"     4 bytes  header length     4 bytes  header CRC-32     header, JSON
    count x key bytes       count x bytes of column 0, of column 1, ...

Numbers are little-endian. The header has dtypes, shapes, count, policy, and a CRC-32 of each part.
Untrusted files are safe: all sizes in the header are checked against the file's length.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from tensorhash import _core
from tensorhash._disk import open_regular, size_of
from tensorhash._dtypes import NAMES
from tensorhash._types import Element
from tensorhash.distributed.rows import Bytes, to_bytes, to_tensor, width_of
from tensorhash.hash_map import HashMap

#: The rule that decides which rank owns a key; src/cpu/rank_hash.cpp has its hash.
POLICY: Final = "murmur64-v1"
_MAGIC = b"THSHARD1"
_PREFIX = struct.Struct("<8sII")
#: Rows per read or write, to need little memory besides the table.
CHUNK_ROWS = 1 << 18
#: The largest JSON text to parse, in bytes; a manifest of 100,000 ranks is smaller.
MAX_JSON = 16 << 20


def describe(table: HashMap) -> dict[str, Any]:
    """The table's description for file headers and the manifest."""
    return {
        "key": list(table._key),
        "values": [list(element) for element in table._values],
        "policy": POLICY,
    }


def write(path: str, table: HashMap, facts: dict[str, Any]) -> dict[str, Any]:
    """Writes a rank's entries and syncs the file. Returns its header, which includes `facts`."""
    active = np.asarray(table._table.active_buf_indices().cpu())
    parts = [(np.asarray(table._table.key_tensor().cpu()), table._key)]
    for column, element in enumerate(table._values):
        parts.append((np.asarray(table._table.value_tensor(column).cpu()), element))
    header = {**describe(table), **facts, "count": len(active), "crc32": [0] * len(parts)}
    with open(path, "xb") as file:
        # The checksums are known only at the end: first write a header of the same length.
        file.write(_encode(header))
        for number, (buffer, element) in enumerate(parts):
            for start in range(0, len(active), CHUNK_ROWS):
                chosen = np.take(buffer, active[start : start + CHUNK_ROWS], axis=0)
                rows = to_bytes(chosen, element)
                header["crc32"][number] = zlib.crc32(rows.data, header["crc32"][number])
                file.write(rows.data)
        file.seek(0)
        file.write(_encode(header))
        file.flush()
        os.fsync(file.fileno())
    return header


def no_rows(element: Element) -> Bytes:
    """The bytes of an empty batch."""
    return np.empty((0, width_of(element)), np.uint8)


def _encode(header: dict[str, Any]) -> bytes:
    sums = [f"{value:08x}" for value in header["crc32"]]
    text = json.dumps({**header, "crc32": sums}).encode()
    return _PREFIX.pack(_MAGIC, len(text), zlib.crc32(text)) + text


class ShardFile:
    """A checkpoint file to read. ValueError says what is wrong with it."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open_regular(path) as file:
                #: The file's size in bytes.
                self.size = size_of(file)
                self._read_header(file)
        except FileNotFoundError:
            raise ValueError(f"{path}: this file of the checkpoint is missing") from None

    def _read_header(self, file: Any) -> None:
        prefix = file.read(_PREFIX.size)
        if len(prefix) < _PREFIX.size or not prefix.startswith(_MAGIC):
            raise ValueError(f"{self.path}: not a file of a tensorhash checkpoint, or truncated")
        _, length, checksum = _PREFIX.unpack(prefix)
        text = file.read(min(length, MAX_JSON))
        if len(text) != length or zlib.crc32(text) != checksum:
            raise ValueError(f"{self.path}: the header is damaged: its checksum is wrong")
        self.header = parse_facts(text, self.path)
        self.key, self.values = elements_of(self.header, self.path)
        self.id: str = field(self.header, "id", str, self.path)
        self.rank: int = field(self.header, "rank", int, self.path)
        self.count: int = field(self.header, "count", int, self.path)
        self._sums: list[Any] = field(self.header, "crc32", list, self.path)
        if len(self._sums) != 1 + len(self.values):
            raise ValueError(
                f"{self.path}: expected {1 + len(self.values)} checksums in 'crc32', "
                f"got {len(self._sums)}"
            )
        self._start = _PREFIX.size + length
        expected = self._start + self.count * sum(map(width_of, (self.key, *self.values)))
        if self.size != expected:
            raise ValueError(
                f"{self.path}: expected {expected} bytes, got {self.size}; was it truncated?"
            )

    def chunks(self) -> Iterator[tuple[Any, list[Any]]]:
        """Yields (keys, [values of each column]) as core tensors of up to CHUNK_ROWS rows.

        Verifies the checksums before the last chunk.
        """
        elements = (self.key, *self.values)
        sums = [0] * len(elements)
        with open_regular(self.path) as file:
            for start in range(0, self.count, CHUNK_ROWS):
                rows = min(CHUNK_ROWS, self.count - start)
                parts: list[Bytes] = []
                offset = self._start
                for number, element in enumerate(elements):
                    width = width_of(element)
                    file.seek(offset + start * width)
                    part = np.frombuffer(file.read(rows * width), np.uint8)
                    if part.size != rows * width:
                        raise ValueError(f"{self.path}: was truncated while it was read")
                    sums[number] = zlib.crc32(part.data, sums[number])
                    parts.append(part.reshape(rows, width))
                    offset += self.count * width
                if start + rows == self.count:
                    self._require_sums(sums)
                yield (
                    to_tensor(parts[0], self.key, "keys"),
                    [
                        to_tensor(p, e, "values")
                        for p, e in zip(parts[1:], self.values, strict=True)
                    ],
                )

    def _require_sums(self, sums: list[int]) -> None:
        for number, (got, wanted) in enumerate(zip(sums, self._sums, strict=True)):
            if f"{got:08x}" != wanted:
                name = "the keys" if number == 0 else f"value column {number - 1}"
                raise ValueError(f"{self.path}: damaged: the checksum of {name} is wrong")


def parse_facts(text: bytes, path: str) -> dict[str, Any]:
    """Parses a JSON object; ValueError for anything else, also for very deep nesting."""
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not readable as JSON: {error}") from None
    if not isinstance(facts, dict):
        raise ValueError(f"{path}: expected a JSON object, got {type(facts).__name__}")
    return facts


def field(facts: dict[str, Any], name: str, kind: type, path: str) -> Any:
    """The field `name`; ValueError unless it has this type. Ints must be 0 or more."""
    if name not in facts:
        raise ValueError(f"{path}: the field {name!r} is missing")
    value = facts[name]
    good = isinstance(value, kind) and not isinstance(value, bool)
    if not good or (kind is int and value < 0):
        expected = "an int of 0 or more" if kind is int else f"a {kind.__name__}"
        raise ValueError(f"{path}: expected {expected} as {name!r}, got {repr(value)[:80]}")
    return value


def elements_of(facts: dict[str, Any], path: str) -> tuple[Element, list[Element]]:
    """(key, values) as `describe` wrote them."""
    specs = [field(facts, "key", list, path), *field(facts, "values", list, path)]
    elements = [_element_of(spec, path) for spec in specs]
    try:
        _core.HashMap.memory_for(0, elements[0], elements[1:])
    except (ValueError, TypeError) as error:  # no table has such keys or values
        raise ValueError(f"{path}: {error}") from None
    policy = field(facts, "policy", str, path)
    if policy != POLICY:
        raise ValueError(f"{path}: expected policy {POLICY!r}, got {policy[:80]!r}")
    return elements[0], elements[1:]


def _element_of(spec: Any, path: str) -> Element:
    good = isinstance(spec, list) and len(spec) == 2 and isinstance(spec[1], list)
    good = good and isinstance(spec[0], str) and spec[0] in NAMES
    if not good or not all(type(extent) is int and 0 < extent < 2**63 for extent in spec[1]):
        raise ValueError(f"{path}: expected a dtype and a shape, got {repr(spec)[:80]}")
    return spec[0], tuple(spec[1])
