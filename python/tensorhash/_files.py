"""Saves and loads tables: resolves file names and picks the format by suffix."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

from tensorhash import _core, _npz
from tensorhash._disk import parse_max_bytes

_NATIVE = ".thash"
_ARCHIVE = ".npz"


def _path(file_name: Any) -> str:
    if not isinstance(file_name, (str, bytes, os.PathLike)):
        raise TypeError(f"file_name: expected a path, got {type(file_name).__name__}")
    return os.fsdecode(file_name)


def _suffix(path: str) -> str:
    suffix = os.path.splitext(path)[1].lower()
    return suffix if suffix in (_NATIVE, _ARCHIVE) else ""


def _target(file_name: Any, default_suffix: str) -> str:
    """The path that `save` writes to. Warns if the name has an unknown suffix."""
    path = _path(file_name)
    if os.path.basename(path) in ("", ".", ".."):
        raise ValueError(f"file_name: expected the name of a file, got {path!r}")
    if _suffix(path):
        return path
    if re.fullmatch(r"\.[A-Za-z]\w*", os.path.splitext(path)[1]):
        warnings.warn(
            f"file_name: {path!r} ends in neither {_NATIVE!r} nor {_ARCHIVE!r}; "
            f"the file is {path + default_suffix!r}",
            stacklevel=4,  # the caller of save()
        )
    return path + default_suffix


def save(table: _core.HashMap, file_name: Any, default_suffix: str) -> str:
    """Writes `table` and returns the path. Names without a known suffix get `default_suffix`."""
    path = _target(file_name, default_suffix)
    if _suffix(path) == _ARCHIVE:
        _npz.save(table, path)
    else:
        table.save(os.fsencode(path))
    return path


def save_native(table: Any, file_name: Any, default_suffix: str) -> str:
    """`save` for a table that only the native format supports."""
    path = _target(file_name, default_suffix)
    _require_native(path)
    table.save(os.fsencode(path))
    return path


def load(file_name: Any, default_suffix: str, max_bytes: int | None) -> _core.HashMap:
    """Reads a table. Tries a name without a known suffix as it is, then with `default_suffix`."""
    most = parse_max_bytes(max_bytes)
    path = _path(file_name)
    if not _suffix(path) and not os.path.exists(path) and os.path.exists(path + default_suffix):
        path += default_suffix
    if _suffix(path) == _ARCHIVE or (not _suffix(path) and _npz.is_archive(path)):
        return _npz.load(path, most)
    return _core.HashMap.load(os.fsencode(path), most)


def archive_target(file_name: Any) -> str:
    """The path for a `save` that writes only .npz."""
    path = _target(file_name, _ARCHIVE)
    _require_archive(path)
    return path


def archive_source(file_name: Any, max_bytes: int | None) -> tuple[str, int | None]:
    """(path, limit) for a `load` that reads only .npz."""
    most = parse_max_bytes(max_bytes)
    path = _path(file_name)
    _require_archive(path)
    if not _suffix(path) and not os.path.exists(path):
        path += _ARCHIVE
    return path, most


def _require_archive(path: str) -> None:
    if _suffix(path) == _NATIVE:
        raise ValueError(f"file_name: expected a name that ends in {_ARCHIVE!r}, got {path!r}")


def native_source(file_name: Any, default_suffix: str) -> str:
    """The path for a `load` that reads only the native format."""
    path = _path(file_name)
    _require_native(path)
    if not _suffix(path) and not os.path.exists(path):
        path += default_suffix
    return path


def _require_native(path: str) -> None:
    if _suffix(path) == _ARCHIVE:
        raise ValueError(f"file_name: expected a {_NATIVE} file, got {path!r}")
