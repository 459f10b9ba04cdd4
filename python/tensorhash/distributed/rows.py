"""Rows as bytes: the form in which any dtype travels between ranks and into checkpoints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._dtypes import core_dtype
from tensorhash._types import Element
from tensorhash.distributed.routing import Bytes


def width_of(element: Element) -> int:
    """Bytes of one row."""
    dtype, shape = element
    return core_dtype(dtype).byte_size() * math.prod(shape)


def to_bytes(array: Any, element: Element) -> Bytes:
    """uint8 [N, row bytes] of an array of elements; a view if the array is contiguous."""
    rows = np.ascontiguousarray(array)
    return rows.reshape(-1).view(np.uint8).reshape(len(rows), width_of(element))


def to_tensor(rows: Bytes, element: Element, argument: str) -> _core.Tensor:
    """The elements in the bytes `rows`, for the core to read; shares the memory."""
    dtype, shape = element
    # NumPy has no bfloat16: its bits travel as uint16, and the core renames them.
    bits = "uint16" if dtype == "bfloat16" else dtype
    array = np.ascontiguousarray(rows).reshape(-1).view(bits).reshape(len(rows), *shape)
    return _core.Tensor.wrap(array, argument, dtype)


def to_result(array: Any, dtype: str | None = None) -> _core.Tensor:
    """A copy, for the results of a call."""
    result = _aligned(array.shape, array.dtype)
    result[...] = array
    return _core.Tensor.wrap(result, "result", dtype)


def gathered(array: Any, at: Any) -> _core.Tensor:
    """array[at], for the results of a call; `at` is within the array."""
    result = _aligned(at.shape, array.dtype)
    np.take(array, at, out=result, mode="clip")  # "raise" would write to other memory first
    return _core.Tensor.wrap(result, "result")


def _aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory at a multiple of 64 bytes: TensorFlow aborts on other addresses."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)
