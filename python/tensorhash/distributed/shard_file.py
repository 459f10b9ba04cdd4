"""One rank's file of a checkpoint: a JSON header, then the keys, then each value column.

    8 bytes  "THSHARD1"     4 bytes  header length     4 bytes  header CRC-32     header, JSON
    count x key bytes       count x bytes of column 0, of column 1, ...

Numbers are little-endian. The header has dtypes, shapes, count, policy, and a CRC-32 of each part.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorhash._dtypes import NAMES
from tensorhash._table import Element
from tensorhash.distributed.routing import POLICY, Bytes
from tensorhash.distributed.rows import to_bytes, to_tensor, width_of
from tensorhash.hash_map import HashMap

_MAGIC = b"THSHARD1"
_PREFIX = struct.Struct("<8sII")
#: Rows read or written at a time: memory beyond the table's own stays small.
CHUNK_ROWS = 1 << 18


def describe(table: HashMap) -> dict[str, Any]:
    """What a checkpoint says of its table, in the header of every file and in the manifest."""
    return {
        "key": list(table._key),
        "values": [list(element) for element in table._values],
        "policy": POLICY,
    }


def write(path: str, table: HashMap, facts: dict[str, Any]) -> dict[str, Any]:
    """Writes a rank's entries and syncs the file; its header, `facts` and what was counted."""
    active = np.asarray(table._table.active_buf_indices())
    parts = [(np.asarray(table._table.key_tensor()), table._key)]
    for column, element in enumerate(table._values):
        parts.append((np.asarray(table._table.value_tensor(column)), element))
    header = {**describe(table), **facts, "count": len(active), "crc32": [0] * len(parts)}
    with open(path, "xb") as file:
        # The sums are known at the end: hold their place with a header of the same length.
        file.write(_encode(header))
        for number, (buffer, element) in enumerate(parts):
            for start in range(0, len(active), CHUNK_ROWS):
                chosen = np.take(buffer, active[start : start + CHUNK_ROWS], axis=0)
                rows = to_bytes(chosen, element)
                header["crc32"][number] = zlib.crc32(rows, header["crc32"][number])
                file.write(rows)
        file.seek(0)
        file.write(_encode(header))
        file.flush()
        os.fsync(file.fileno())
    return header


def no_rows(element: Element) -> Bytes:
    """A batch without rows."""
    return np.empty((0, width_of(element)), np.uint8)


def _encode(header: dict[str, Any]) -> bytes:
    sums = [f"{value:08x}" for value in header["crc32"]]
    text = json.dumps({**header, "crc32": sums}).encode()
    return _PREFIX.pack(_MAGIC, len(text), zlib.crc32(text)) + text


class ShardFile:
    """A file to be read. ValueError says what is wrong with it."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                self._read_header(file, size)
        except FileNotFoundError:
            raise ValueError(f"{path}: a file of this checkpoint is missing") from None

    def _read_header(self, file: Any, size: int) -> None:
        prefix = file.read(_PREFIX.size)
        if len(prefix) < _PREFIX.size or not prefix.startswith(_MAGIC):
            raise ValueError(f"{self.path}: not a file of a tensorhash checkpoint, or cut short")
        _, length, checksum = _PREFIX.unpack(prefix)
        text = file.read(min(length, size))
        if len(text) != length or zlib.crc32(text) != checksum:
            raise ValueError(f"{self.path}: the header is damaged: its checksum does not fit")
        try:
            self.header: dict[str, Any] = json.loads(text)
        except (ValueError, RecursionError) as error:  # no JSON, or brackets in brackets
            raise ValueError(f"{self.path}: expected a JSON header: {error}") from error
        require_fields(self.header, {"id": str, "count": int, "crc32": list}, self.path)
        self.key, self.values = elements_of(self.header, self.path)
        if len(self.header["crc32"]) != 1 + len(self.values):
            raise ValueError(
                f"{self.path}: crc32: expected {1 + len(self.values)} checksums, "
                f"got {len(self.header['crc32'])}"
            )
        self.count: int = self.header["count"]
        self._start = _PREFIX.size + length
        expected = self._start + self.count * sum(map(width_of, (self.key, *self.values)))
        if size != expected:
            raise ValueError(
                f"{self.path}: expected {expected} bytes, got {size}; it was cut short?"
            )

    def chunks(self) -> Iterator[tuple[Any, list[Any]]]:
        """(keys, [values of each column]) of up to CHUNK_ROWS rows, as the core reads them.

        The checksums are compared before the last chunk is given out.
        """
        elements = (self.key, *self.values)
        sums = [0] * len(elements)
        with open(self.path, "rb") as file:
            for start in range(0, self.count, CHUNK_ROWS):
                rows = min(CHUNK_ROWS, self.count - start)
                parts: list[Bytes] = []
                offset = self._start
                for number, element in enumerate(elements):
                    width = width_of(element)
                    file.seek(offset + start * width)
                    part = np.frombuffer(file.read(rows * width), np.uint8)
                    if part.size != rows * width:
                        raise ValueError(f"{self.path}: was cut short while it was read")
                    sums[number] = zlib.crc32(part, sums[number])
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
        for number, (got, wanted) in enumerate(zip(sums, self.header["crc32"], strict=True)):
            if f"{got:08x}" != wanted:
                name = "the keys" if number == 0 else f"value column {number - 1}"
                raise ValueError(f"{self.path}: {name} are damaged: the checksum does not fit")


def require_fields(facts: Any, fields: dict[str, type], where: str) -> None:
    """ValueError unless `facts` has these fields, each of its type, and counts of 0 or more."""
    if not isinstance(facts, dict):
        raise ValueError(f"{where}: expected named fields, got {type(facts).__name__}")
    for name, kind in fields.items():
        if name not in facts:
            raise ValueError(f"{where}: the field {name!r} is missing")
        value: Any = facts[name]
        if not isinstance(value, kind) or isinstance(value, bool) or (kind is int and value < 0):
            wanted = "a count of 0 or more" if kind is int else f"a {kind.__name__}"
            raise ValueError(f"{where}: {name}: expected {wanted}, got {value!r}")


def elements_of(facts: dict[str, Any], path: str) -> tuple[Element, list[Element]]:
    """(key, values) as `describe` wrote them."""
    try:
        elements = [(str(dtype), tuple(shape)) for dtype, shape in (facts["key"], *facts["values"])]
        extents = [extent for _, shape in elements for extent in shape]
        known = all(dtype in NAMES for dtype, _ in elements)
        known = known and all(type(extent) is int and 0 <= extent < 2**63 for extent in extents)
    except (KeyError, TypeError, ValueError):
        known = False
    if not known:
        raise ValueError(f"{path}: says nothing sensible about the table's dtypes and shapes")
    if facts.get("policy") != POLICY:
        raise ValueError(f"{path}: expected policy {POLICY!r}, got {facts.get('policy')!r}")
    return elements[0], elements[1:]
