"""Reads and writes Open3D's .npz format: `key`, `n_values`, `value_000`, ...

We add `buf_index`, which Open3D ignores. It restores the buffer indices; without it, rows get
0..n-1.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from tensorhash import _core
from tensorhash._disk import Limit, TooLarge, open_regular, replacing, size_of
from tensorhash._npy import read_npy

_MAX_COLUMNS = 1000  # Open3D's names have three digits
_PIECE_ROWS = 1 << 18  # per insert, which needs 9 bytes per row besides the table


def is_archive(path: str) -> bool:
    """Whether a file starts like a zip archive."""
    try:
        with open_regular(path) as file:
            return file.read(2) == b"PK"
    except OSError:
        return False


def save(table: _core.HashMap, path: str, extra: dict[str, Any] | None = None) -> None:
    """Writes the live rows of `table`, and `extra` arrays by name.

    If that fails, the old file does not change.
    """
    columns = len(table.value_elements)
    if any(dtype == "bfloat16" for dtype, _ in table.value_elements):
        raise TypeError(
            f"{path}: .npz has no bfloat16; save under a name that ends in .thash instead"
        )
    if columns > _MAX_COLUMNS:
        raise ValueError(f"{path}: .npz holds at most {_MAX_COLUMNS} value columns, got {columns}")
    # A clone: other threads may write to the table during the save.
    moment = table.clone() if table.device.startswith("cpu") else table.to("cpu")
    live = np.asarray(moment.active_buf_indices())
    arrays = {
        "key": np.asarray(moment.key_tensor())[live],
        "n_values": np.array([columns], dtype=np.int64),
    }
    for column in range(columns):
        arrays[f"value_{column:03d}"] = np.asarray(moment.value_tensor(column))[live]
    arrays["buf_index"] = live
    arrays.update(extra or {})
    with replacing(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type, unused-ignore]


# The exceptions that zipfile and NumPy raise on damaged files.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    IndexError,
    RuntimeError,  # and NotImplementedError: zipfile does not know the version or the method
    OSError,  # a damaged offset leads to an invalid seek
    OverflowError,
    SyntaxError,
    TypeError,
    ValueError,
)


def load(path: str, max_bytes: int | None) -> _core.HashMap:
    """Reads a table from an .npz file of tensorhash, Open3D or NumPy.

    ValueError says what is wrong with the file.
    """
    return load_with_extra(path, max_bytes, lambda name: False)[0]


def load_with_extra(
    path: str, max_bytes: int | None, is_extra: Callable[[str], bool]
) -> tuple[_core.HashMap, dict[str, Any]]:
    """(the table, the arrays with a name that `is_extra` accepts)."""
    with open_regular(path) as file:
        limit = Limit(path, size_of(file), max_bytes)
        try:
            with zipfile.ZipFile(file) as archive:
                entries = members(file, archive, lambda name: _is_ours(name) or is_extra(name))
                limit.require(sum(entry.file_size for entry in entries.values()), "its arrays")
                arrays = {name: _read_array(archive, entries[name], name) for name in entries}
        except TooLarge:
            raise
        except DAMAGE as error:
            raise ValueError(f"{path}: not a readable .npz file: {error}") from error
    extra = {name: arrays.pop(name) for name in list(arrays) if not _is_ours(name)}
    if extra and "n_values" not in arrays:  # Open3D does not write it for a VoxelBlockGrid
        columns = sum(name.startswith("value_") for name in arrays)
        arrays["n_values"] = np.array([columns], dtype=np.int64)
    try:
        return _table_of(arrays, limit), extra
    except TooLarge:
        raise
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _require_all_entries(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """ValueError if zipfile skipped entries, as it does after a damaged length in the directory."""
    file.seek(-(22 + len(archive.comment)), os.SEEK_END)
    (recorded,) = struct.unpack_from("<H", file.read(22), 10)
    listed = len(archive.infolist())
    if recorded not in (listed, 0xFFFF):
        raise ValueError(f"its directory lists {listed} of {recorded} entries")


def members(
    file: IO[bytes], archive: zipfile.ZipFile, is_wanted: Callable[[str], bool]
) -> dict[str, zipfile.ZipInfo]:
    """The archive's entries that hold the wanted arrays, by name. Unpacks nothing."""
    _require_all_entries(file, archive)
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{entry.filename}: expected an entry that is stored or deflated")
        # open() checks the name in the directory against the copy next to the data.
        archive.open(entry).close()
        name, suffix = os.path.splitext(entry.filename)
        if suffix == ".npy" and is_wanted(name):
            if name in found:
                raise ValueError(f"{name}: expected one such array, got two")
            found[name] = entry
    return found


def _is_ours(name: str) -> bool:
    return name in ("key", "n_values", "buf_index") or name.startswith("value_")


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Any:
    with archive.open(entry) as member:
        return read_npy(member, entry.file_size, name)


def _table_of(arrays: dict[str, Any], limit: Limit) -> _core.HashMap:
    for name in ("key", "n_values"):
        if name not in arrays:
            raise ValueError(f"expected an array {name!r}, got none: not a file of a hash map")
    count = arrays["n_values"]
    if count.size != 1 or count.dtype.kind not in "iu":
        raise ValueError(f"n_values: expected one integer, got {count.dtype} {count.shape}")
    columns = int(count.reshape(-1)[0])
    if not 0 <= columns <= _MAX_COLUMNS:
        raise ValueError(f"n_values: expected 0 to {_MAX_COLUMNS}, got {columns}")
    values = []
    for column in range(columns):
        name = f"value_{column:03d}"
        if name not in arrays:
            raise ValueError(f"n_values is {columns}, but there is no array {name!r}")
        values.append(arrays[name])
    for name, array in arrays.items():
        if array.ndim == 0:
            raise ValueError(f"{name}: expected rows, got a single number")
    places = arrays.get("buf_index")
    # Short keys have few distinct values; all further rows are duplicates.
    key_bytes = arrays["key"].nbytes // max(1, len(arrays["key"]))
    rows = min(len(arrays["key"]), 256 ** min(key_bytes, 8))
    if places is not None and places.dtype == np.int32:
        rows = int(places.max(initial=-1)) + 1
    if 0 <= rows < 2**31:  # for other numbers the core raises before it allocates
        gaps = max(0, rows - len(arrays["key"]))
        elements = [_element_of(array) for array in values]
        limit.require_table(rows, gaps, _element_of(arrays["key"]), elements)
    if places is None:
        return _insert_in_pieces(arrays["key"], values, rows)
    table = _core.HashMap.from_parts(arrays["key"], values, places)
    table.validate()
    return table


def _insert_in_pieces(keys: Any, values: list[Any], most: int) -> _core.HashMap:
    """`from_items` in pieces, to need little memory besides the table.

    `most` is an upper bound on the number of distinct keys.
    """
    for column, array in enumerate(values):
        if len(array) != len(keys):
            raise ValueError(
                f"value_{column:03d}: expected {len(keys)} rows, as many as keys, got {len(array)}"
            )
    table = _core.HashMap.from_items(keys[:0], [array[:0] for array in values])
    table.reserve(most)
    for start in range(0, len(keys), _PIECE_ROWS):
        piece = slice(start, start + _PIECE_ROWS)
        table.insert(keys[piece], [array[piece] for array in values])
    return table


def _element_of(array: Any) -> tuple[str, tuple[int, ...]]:
    return array.dtype.name, array.shape[1:]
