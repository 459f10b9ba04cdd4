"""Open3D's .npz: `key`, `n_values`, `value_000` ..., and our `buf_index`, which Open3D passes over.

With `buf_index` entries come back at their indices, without it rows become 0..n-1.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from tensorhash import _core

_MAX_COLUMNS = 1000  # three digits in Open3D's names


def is_archive(path: str) -> bool:
    """Whether a file starts like a zip archive."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"PK"
    except OSError:
        return False


def save(table: _core.HashMap, path: str) -> None:
    """Writes the live rows of `table`; `path` holds the old file or the new one at any moment."""
    columns = len(table.value_elements)
    if any(dtype == "bfloat16" for dtype, _ in table.value_elements):
        raise TypeError(
            f"{path}: .npz has no bfloat16; save under a name that ends in .thash instead"
        )
    if columns > _MAX_COLUMNS:
        raise ValueError(f"{path}: .npz holds at most {_MAX_COLUMNS} value columns, got {columns}")
    # A clone is one moment of the table, however many threads write to it meanwhile.
    moment = table.clone()
    live = np.asarray(moment.active_buf_indices())
    arrays = {
        "key": np.asarray(moment.key_tensor())[live],
        "n_values": np.array([columns], dtype=np.int64),
    }
    for column in range(columns):
        arrays[f"value_{column:03d}"] = np.asarray(moment.value_tensor(column))[live]
    arrays["buf_index"] = live
    with _replacing(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type, unused-ignore]


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """A file to write that becomes `path` when it is complete and on the disk, or vanishes."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder or os.curdir)


def _sync_folder(folder: str) -> None:
    """Makes the rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# What zipfile and NumPy raise on damaged bytes, beside ValueError.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    IndexError,
    RuntimeError,  # with its subclasses: zipfile's for versions and methods that it does not know
    OSError,  # a damaged offset is a seek to nowhere
    OverflowError,
    SyntaxError,
    TypeError,
    ValueError,
)


def load(path: str) -> _core.HashMap:
    """Reads an .npz of ours, Open3D's or NumPy's; ValueError says what is wrong with another."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _require_all_entries(file, archive)
                arrays = _read_arrays(archive)
        except _DAMAGE as error:
            raise ValueError(f"{path}: not a readable .npz file: {error}") from error
    try:
        return _table_of(arrays)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _require_all_entries(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """A damaged length in the directory can swallow the entry after it, which zipfile lets pass."""
    file.seek(-(22 + len(archive.comment)), os.SEEK_END)
    (recorded,) = struct.unpack_from("<H", file.read(22), 10)
    listed = len(archive.infolist())
    if recorded not in (listed, 0xFFFF):
        raise ValueError(f"its directory lists {listed} of {recorded} entries")


def _read_arrays(archive: zipfile.ZipFile) -> dict[str, Any]:
    arrays = {}
    for entry in archive.infolist():
        name, suffix = os.path.splitext(entry.filename)
        # Every entry is opened: only then are a name and its copy in the file compared.
        with archive.open(entry) as member:
            if suffix == ".npy" and _is_ours(name):
                if name in arrays:
                    raise ValueError(f"{name} is there twice")
                arrays[name] = _read_array(member, name, entry.file_size)
    return arrays


def _is_ours(name: str) -> bool:
    return name in ("key", "n_values", "buf_index") or name.startswith("value_")


def _read_array(member: IO[bytes], name: str, file_size: int) -> Any:
    """One array. Its header must agree with the size of the entry before memory is made for it."""
    version = np.lib.format.read_magic(member)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name}: unknown array format {version}")
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, fortran, dtype = readers[version](member)
    if dtype.hasobject:
        raise ValueError(f"{name}: holds Python objects, which are never loaded")
    count = 1
    for extent in shape:
        if extent < 0:
            raise ValueError(f"{name}: negative shape {shape}")
        count *= extent
    size = count * dtype.itemsize
    if size > file_size:
        raise ValueError(f"{name}: shape {shape} of {dtype} needs {size} bytes, it has {file_size}")
    data = member.read(size)
    if len(data) != size or member.read(1):
        raise ValueError(f"{name}: expected {size} bytes of data")
    return np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C")


def _table_of(arrays: dict[str, Any]) -> _core.HashMap:
    for name in ("key", "n_values"):
        if name not in arrays:
            raise ValueError(f"no array {name!r}: this is not the file of a hash map")
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
    if "buf_index" not in arrays:
        return _core.HashMap.from_items(arrays["key"], values)
    table = _core.HashMap.from_parts(arrays["key"], values, arrays["buf_index"])
    table.validate()
    return table
