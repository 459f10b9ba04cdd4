"""Converts an index of a Tensor to NumPy's form."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorhash.core._base import as_numpy


def indices(index: Any) -> Any:
    """The index for NumPy. Its ellipsis makes a single element a 0-D view, not a copy."""
    if index is None:
        return (slice(None),)  # None means `:` in Open3D; in NumPy it would add a dimension
    parts = index if isinstance(index, tuple) else (index,)
    plain = tuple(_one(part) for part in parts)
    return plain if any(part is Ellipsis for part in plain) else (*plain, Ellipsis)


def _one(part: Any) -> Any:
    if part is None:
        raise IndexError("index: expected no None in a tuple; use reshape() to add a dimension")
    if part is Ellipsis or isinstance(part, (int, slice)):
        return part
    array = as_numpy(part, "index")
    if array.dtype.kind == "f" and array.size == 0:
        array = array.astype(np.int64)  # an empty list selects nothing
    if array.dtype.kind not in "biu":
        raise IndexError(f"index: expected integers or a mask, got {array.dtype}")
    return array
