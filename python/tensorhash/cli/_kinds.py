"""What a file is, by its first bytes, and what the heads of our files say."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Sequence
from typing import IO, Any

from tensorhash._disk import open_regular, size_of
from tensorhash._dtypes import NAMES
from tensorhash._types import Element
from tensorhash.hash_map import HashMap
from tensorhash.hash_set import HashSet

_MAGIC = {
    b"THASH\r\n\x1a": "HashMap",
    b"THBND\r\n\x1a": "BoundedHashMap",
    b"THSHRD\n\x1a": "ShardedHashMap",
    b"THSTR\r\n\x1a": "StringIndex",
    b"THSHARD1": "checkpoint file",
}
_MOST = 1000  # columns, dimensions and shards that a head may have here


def kind_of(path: str) -> str:
    """The kind of a file or folder; "cloud" for all that tensorhash.io reads."""
    if os.path.isdir(path):
        if os.path.exists(os.path.join(path, "checkpoint.json")):
            return "checkpoint"
        raise ValueError(
            f"{path}: expected a file or a checkpoint, got a folder without checkpoint.json"
        )
    with open_regular(path) as file:
        start = file.read(8)
        if start in _MAGIC:
            return _MAGIC[start]
        if start.startswith(b"PK") and _holds_table(file):
            return "npz table"
    return "cloud"


def _holds_table(file: IO[bytes]) -> bool:
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return False
    return "key.npy" in names and "n_values.npy" in names


def load_map(path: str, max_bytes: int | None = None) -> HashMap[Any] | HashSet[Any]:
    """A HashMap or HashSet from a file of either; .npz or .thash."""
    try:
        return HashSet.load(path, max_bytes=max_bytes)
    except ValueError:
        return HashMap.load(path, max_bytes=max_bytes)


class Head:
    """Reads the head of a native file number by number. ValueError if the file ends."""

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        self._path = path
        self.size = size_of(file)

    def take(self, form: str) -> int:
        """One number, as struct reads it."""
        return int(struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))[0])

    def bytes(self, count: int) -> bytes:
        """The next bytes."""
        data = self._file.read(count)
        if len(data) != count:
            raise ValueError(f"{self._path}: the file ends at byte {self.size}, within its head")
        return data

    def limited(self, form: str, most: int, what: str) -> int:
        """One number of at most `most`."""
        number = self.take(form)
        if number > most:
            raise ValueError(
                f"{self._path}: expected at most {most} {what}, got {number}: damaged?"
            )
        return number

    def element(self) -> Element:
        """A dtype and a shape."""
        number = self.take("I")
        if not 1 <= number <= len(NAMES):
            raise ValueError(
                f"{self._path}: expected the number of a dtype, got {number}: damaged?"
            )
        rank = self.limited("I", _MOST, "dimensions")
        return NAMES[number - 1], tuple(self.take("q") for _ in range(rank))

    def skip(self, count: int) -> None:
        """Moves on by some bytes, which must be there."""
        if self._file.tell() + count > self.size:
            raise ValueError(
                f"{self._path}: expected {count} bytes from byte "
                f"{self._file.tell()}, but the file ends at byte {self.size}"
            )
        self._file.seek(count, os.SEEK_CUR)

    def map(self) -> dict[str, Any]:
        """The head of a HashMap's file, from its first byte."""
        self.bytes(8)
        version = self.take("I")
        columns = self.limited("I", _MOST, "value columns")
        key, *values = [self.element() for _ in range(1 + columns)]
        capacity, top, free = self.take("q"), self.take("q"), self.take("q")
        return {
            "version": version,
            "size": top - free,
            "capacity": capacity,
            "key": text_of(key),
            "values": [text_of(value) for value in values],
        }

    def bounded(self) -> dict[str, Any]:
        """The head of a BoundedHashMap's file. Its last two columns are scores and uses."""
        self.bytes(8)
        self.take("I")
        policy = ("by use", "by score")[self.limited("I", 1, "as the policy")]
        clock = self.take("Q")
        self.bytes(16)
        facts = self.map()
        return {**facts, "values": facts["values"][:-2], "evicts": policy, "clock": clock}

    def sharded(self) -> dict[str, Any]:
        """The heads of a ShardedHashMap's file and of its shards."""
        self.bytes(8)
        version = self.take("Q")
        policy = self.bytes(self.limited("Q", _MOST, "bytes of the policy's name"))
        count = self.limited("Q", _MOST, "shards")
        shards = [self._shard() for _ in range(count)]
        return {
            "version": version,
            "size": sum(shard["size"] for shard in shards),
            "capacity": sum(shard["capacity"] for shard in shards),
            **({name: shards[0][name] for name in ("key", "values")} if shards else {}),
            "policy": policy.decode("utf-8", "replace"),
            "shards": [shard["size"] for shard in shards],
        }

    def strings(self) -> dict[str, Any]:
        """The head of a StringIndex's file."""
        self.bytes(8)
        return {"version": self.take("Q"), "size": self.take("Q"), "string bytes": self.take("Q")}

    def _shard(self) -> dict[str, Any]:
        length = self.take("Q")
        start = self._file.tell()
        is_bounded = self.bytes(5) == b"THBND"
        self._file.seek(start)
        facts = self.bounded() if is_bounded else self.map()
        self._file.seek(start)
        self.skip(length)
        return facts


def text_of(element: tuple[str, Sequence[int]]) -> str:
    """An element for people.

    >>> text_of(("int32", (3,))), text_of(("float32", ()))
    ('int32 (3,)', 'float32')
    """
    dtype, shape = element
    return f"{dtype} {tuple(shape)}" if shape else dtype
