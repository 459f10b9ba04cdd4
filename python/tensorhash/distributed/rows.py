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
