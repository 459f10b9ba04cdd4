"""Safe file access: opens without blocking, limits memory, replaces files atomically."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import IO, Any

from tensorhash import _core


def open_regular(path: str) -> IO[bytes]:
    """Opens a file for reading. ValueError for a pipe, socket or device, which could block."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise ValueError(f"{path}: expected a regular file, got a pipe, socket or device")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def size_of(file: IO[bytes]) -> int:
    """The size of an open file in bytes."""
    return os.fstat(file.fileno()).st_size


def parse_max_bytes(max_bytes: Any) -> int | None:
    """Parses the `max_bytes` of a `load`: None, or an int of at least 0."""
    if max_bytes is None:
        return None
    if isinstance(max_bytes, bool) or not hasattr(type(max_bytes), "__index__"):
        raise TypeError(f"max_bytes: expected an int or None, got {type(max_bytes).__name__}")
    number = int(max_bytes.__index__())
    if number < 0:
        raise ValueError(f"max_bytes: expected 0 or more, got {number}")
    return min(number, 2**64 - 1)


class TooLarge(ValueError):
    """A file needs more memory than its limit allows."""


class Limit:
    """The limit in bytes on the arrays of a file, and on the table made from them."""

    def __init__(self, path: str, file_bytes: int, max_bytes: int | None) -> None:
        self._path = path
        self.bytes = _core.load_limit(file_bytes, max_bytes)
        self.require(file_bytes, "the file itself")

    def require(self, size: int, what: str) -> None:
        """ValueError if `what` needs more than the limit."""
        if size > self.bytes:
            raise TooLarge(
                f"{self._path}: {what} would need {size} bytes, more than max_bytes={self.bytes}; "
                f"if you trust its writer, pass max_bytes={size}"
            )

    def require_table(self, rows: int, gaps: int, key: Any, values: list[Any]) -> None:
        """ValueError if a table of `rows` rows, `gaps` of them free, needs more than the limit."""
        size = _core.HashMap.memory_for(rows, key, values) + 4 * gaps
        self.require(size, f"a table of {rows} rows")


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Yields a new file, which replaces `path` once it is complete and synced. Removed on error."""
    replacement = _core.FileReplacement(os.fsencode(path))
    try:
        with open(replacement.fileno(), "wb", closefd=False) as file:
            yield file
        replacement.commit()
    finally:
        replacement.discard()
