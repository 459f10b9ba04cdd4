"""Rows of any dtype as bytes, for checkpoints, and their width."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from tensorhash import _core
from tensorhash._dtypes import core_dtype
from tensorhash._types import Element

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


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
