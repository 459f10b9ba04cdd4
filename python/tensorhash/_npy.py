"""Reads NumPy's .npy format, also from untrusted files."""

from __future__ import annotations

import io
import math
from typing import IO, Any

import numpy as np

from tensorhash._dtypes import name_of

_MAX_HEADER = 10_000  # NumPy's limit
_PIECE_BYTES = 1 << 20  # per read: zipfile holds two copies of each piece


def read_npy(file: IO[bytes], file_bytes: int, name: str) -> Any:
    """Reads the array from here to the end of the file. Normalises bools to 0 or 1.

    Checks the header against `file_bytes` before it allocates. ValueError, TypeError or
    OverflowError says what is wrong.
    """
    return _read(file, file_bytes, name, any_dtype=False)


def read_any(file: IO[bytes], file_bytes: int, name: str) -> Any:
    """`read_npy` for every dtype without Python objects, also for records."""
    return _read(file, file_bytes, name, any_dtype=True)


def _read(file: IO[bytes], file_bytes: int, name: str, any_dtype: bool) -> Any:
    shape, fortran, dtype = _read_header(file, name)
    if dtype.hasobject:
        raise ValueError(f"{name}: holds Python objects, which are never loaded")
    if not any_dtype:
        name_of(dtype)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"{name}: negative shape {shape}")
    size = math.prod(shape) * dtype.itemsize
    if size > file_bytes:
        raise ValueError(
            f"{name}: shape {shape} of {dtype} needs {size} bytes, the file has {file_bytes}"
        )
    data = _read_bytes(file, size, name)
    if dtype == np.bool_:
        np.not_equal(data, 0, out=data)
    return data.view(dtype).reshape(shape, order="F" if fortran else "C")


def _read_bytes(file: IO[bytes], size: int, name: str) -> Any:
    data = np.empty(size, np.uint8)
    for start in range(0, size, _PIECE_BYTES):
        room = data[start : start + _PIECE_BYTES]
        piece = file.read(len(room))
        if len(piece) != len(room):
            raise ValueError(f"{name}: expected {size} bytes of data, the file ends before")
        room[:] = np.frombuffer(piece, np.uint8)
    if file.read(1):
        raise ValueError(f"{name}: expected {size} bytes of data, the file has more")
    return data


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, Any]:
    """(shape, Fortran order, dtype). Reads no further than the header."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name}: unknown array format {version}")
    length = file.read(2 if version == (1, 0) else 4)
    size = int.from_bytes(length, "little")
    if size > _MAX_HEADER:
        raise ValueError(f"{name}: expected a header of at most {_MAX_HEADER} bytes, got {size}")
    header = io.BytesIO(length + file.read(size))
    try:
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(header)
        return np.lib.format.read_array_header_2_0(header)
    # NumPy parses the header as Python code, which may raise TokenError, MemoryError, ...
    except Exception as error:
        raise ValueError(f"{name}: its header is not readable: {error}") from None
