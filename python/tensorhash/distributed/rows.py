"""Converts rows of any dtype to bytes, for messages between ranks and for checkpoints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._dtypes import core_dtype
from tensorhash._types import Element
from tensorhash.distributed.routing import Bytes


def width_of(element: Element) -> int:
    """The size of one row in bytes."""
    dtype, shape = element
    return core_dtype(dtype).byte_size() * math.prod(shape)


def to_bytes(array: Any, element: Element) -> Bytes:
    """uint8 [N, row bytes] from an array of elements; a view if the array is contiguous."""
    rows = np.ascontiguousarray(array)
    return rows.reshape(-1).view(np.uint8).reshape(len(rows), width_of(element))


def to_tensor(rows: Bytes, element: Element, argument: str) -> _core.Tensor:
    """A core tensor of the elements in `rows`; shares their memory if contiguous."""
    dtype, shape = element
    # NumPy has no bfloat16: pass its bits as uint16, and let the core reinterpret them.
    bits = "uint16" if dtype == "bfloat16" else dtype
    array = np.ascontiguousarray(rows).reshape(-1).view(bits).reshape(len(rows), *shape)
    return _core.Tensor.wrap(array, argument, dtype)


def to_result(array: Any, dtype: str | None = None) -> _core.Tensor:
    """A copy of the array as a core tensor, for the results of a call."""
    result = _aligned(array.shape, array.dtype)
    result[...] = array
    return _core.Tensor.wrap(result, "result", dtype)


def gathered(array: Any, at: Any) -> _core.Tensor:
    """array[at] as a core tensor, for the results of a call; `at` must be in range."""
    result = _aligned(at.shape, array.dtype)
    np.take(array, at, out=result, mode="clip")  # mode="raise" would buffer the result
    return _core.Tensor.wrap(result, "result")


def _aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """An empty array, aligned to 64 bytes: TensorFlow aborts on other addresses."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)
