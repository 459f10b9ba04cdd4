"""Which file a name means and which format it has."""

from __future__ import annotations

import os
from typing import Any

from tensorhash import _core, _npz

_NATIVE = ".thash"
_ARCHIVE = ".npz"


def _path(file_name: Any) -> str:
    if not isinstance(file_name, (str, bytes, os.PathLike)):
        raise TypeError(f"file_name: expected a path, got {type(file_name).__name__}")
    return os.fsdecode(file_name)


def _suffix(path: str) -> str:
    suffix = os.path.splitext(path)[1].lower()
    return suffix if suffix in (_NATIVE, _ARCHIVE) else ""


def native_path(file_name: Any, default_suffix: str, *, existing: bool) -> str:
    """The native file that a name means, for a table that has no other format."""
    path = _path(file_name)
    if _suffix(path) == _ARCHIVE:
        raise ValueError(f"file_name: expected a {_NATIVE} file, got {path!r}")
    if not _suffix(path) and not (existing and os.path.exists(path)):
        path += default_suffix
    return path


def save(table: _core.HashMap, file_name: Any, default_suffix: str) -> None:
    """Writes `table`; a name with neither suffix gets `default_suffix` appended."""
    path = _path(file_name)
    if not _suffix(path):
        path += default_suffix
    if _suffix(path) == _ARCHIVE:
        _npz.save(table, path)
    else:
        table.save(os.fsencode(path))


def load(file_name: Any, default_suffix: str) -> _core.HashMap:
    """Reads a table by suffix; a name without one is tried as it is, then with the default."""
    path = _path(file_name)
    if not _suffix(path) and not os.path.exists(path) and os.path.exists(path + default_suffix):
        path += default_suffix
    if _suffix(path) == _ARCHIVE or (not _suffix(path) and _npz.is_archive(path)):
        return _npz.load(path)
    return _core.HashMap.load(os.fsencode(path))
