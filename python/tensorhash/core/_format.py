"""The text of a Tensor: its elements in brackets, then a line on its shape and memory."""

from __future__ import annotations

from typing import Any

_MOST_ELEMENTS = 1000  # larger tensors show only the ends of each long axis
_EDGE = 3


def elements_text(array: Any) -> str:
    """The elements, such as "[[0 1],\\n [2 3]]"; a large array shows only its ends."""
    if array.size == 0:
        return "0-element Tensor"
    return _text(array, 0, array.size > _MOST_ELEMENTS)


def _text(array: Any, depth: int, shorten: bool) -> str:
    if array.ndim == 0:
        return _one(array[()])
    rows = list(range(len(array)))
    parts = [_text(array[(i, ...)], depth + 1, shorten) for i in _shown(rows, shorten)]
    if shorten and len(rows) > 2 * _EDGE:
        parts.insert(_EDGE, "...")
    separator = " " if array.ndim == 1 else ",\n" + " " * (depth + 1)
    return f"[{separator.join(parts)}]"


def _shown(rows: list[int], shorten: bool) -> list[int]:
    return rows[:_EDGE] + rows[-_EDGE:] if shorten and len(rows) > 2 * _EDGE else rows


def _one(value: Any) -> str:
    if value.dtype.kind in "biu":
        return str(value.item())
    return str(value).removesuffix(".0")


def tensor_text(array: Any, strides: Any, dtype: str, device: str, address: int) -> str:
    """The text of a tensor with these elements and, in elements, these strides."""
    line = (
        f"Tensor[shape={_braces(array.shape)}, stride={_braces(strides)}, "
        f"{dtype}, {device}, {hex(address)}]"
    )
    return f"{elements_text(array)}\n{line}"


def _braces(numbers: Any) -> str:
    return "{" + ", ".join(map(str, numbers)) + "}"
