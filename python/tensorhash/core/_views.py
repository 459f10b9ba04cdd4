"""Indices of a Tensor on a device: views by ints and slices, rows by one mask or one array."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tensorhash import _core
from tensorhash._arrays import is_number
from tensorhash.core._base import for_core

_WAY_OUT = "copy the tensor with .cpu(), or use torch.from_dlpack(t)"


class View(NamedTuple):
    """A view, and the rows of it that an index selects."""

    held: _core.Tensor  # the axis of the rows comes first
    rows: _core.Tensor | None  # row numbers [count] on the device; None: the whole view
    shape: tuple[int, ...] = ()  # of the index, which `count` stands for
    axis: int = 0  # where the axis of the rows is in the result

    def shape_back(self, taken: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result. In `taken`, its rows come first."""
        rest = taken[1:]
        return (*rest[: self.axis], *self.shape, *rest[self.axis :])

    def back(self, taken: _core.Tensor) -> _core.Tensor:
        """`taken`, with the rows where the index has them."""
        split = _core.reshape(taken, (*self.shape, *taken.shape[1:]))
        return _moved(split, 0, len(self.shape), self.axis)

    def front(self, values: _core.Tensor) -> _core.Tensor:
        """The inverse of `back`."""
        split = _core.clone(_moved(values, self.axis, len(self.shape), 0))
        rest = split.shape[len(self.shape) :]
        return _core.reshape(split, (math.prod(self.shape), *rest))


def view_of(held: _core.Tensor, index: Any) -> View:
    """The view and the rows of an index; IndexError if it is none, or none that a device takes."""
    if index is None:
        return View(held, None)  # None means `:` in Open3D
    parts = [_part(one) for one in (index if isinstance(index, tuple) else (index,))]
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexError("index: expected at most one ellipsis")
    arrays = [at for at, part in enumerate(parts) if isinstance(part, (np.ndarray, _core.Tensor))]
    if not arrays:
        return View(_basic(held, parts), None)
    at = arrays[0]
    if len(arrays) > 1 or any(isinstance(part, int) for part in parts[:at]):
        raise IndexError(
            f"index: on a device expected at most one array, and no int before it; {_WAY_OUT}"
        )
    return _by_array(held, parts, at)


def _by_array(held: _core.Tensor, parts: list[Any], at: int) -> View:
    array = parts[at]
    is_mask = str(array.dtype) == "bool"
    axes = len(array.shape) if is_mask else 1
    if Ellipsis in parts[:at]:
        used = sum(part is not Ellipsis for part in parts) - 1 + axes
        missing = [slice(None)] * (len(held.shape) - used)
        parts = [*parts[: parts.index(Ellipsis)], *missing, *parts[parts.index(Ellipsis) + 1 :]]
        at = next(i for i, part in enumerate(parts) if part is array)
    source = _basic(held, [*parts[:at], *[slice(None)] * axes, *parts[at + 1 :]])
    source = _moved(source, at, axes, 0)
    place = _place_of_rows(parts, at)
    if not is_mask:
        numbers = _core.reshape(_there(array, held), (math.prod(array.shape),))
        return View(source, numbers, tuple(array.shape), place)
    if tuple(array.shape) != tuple(source.shape[:axes]):
        raise IndexError(
            f"index: expected a mask of shape {tuple(source.shape[:axes])}, "
            f"got {tuple(array.shape)}"
        )
    rows = _core.true_positions(_core.reshape(_there(array, held), (math.prod(array.shape),)))
    return View(_joined(source, axes), rows, tuple(rows.shape), place)


def _place_of_rows(parts: list[Any], at: int) -> int:
    """The axis of the result that the array at parts[at] makes.

    As in NumPy an int is an array too, and arrays with a slice between them make the first axis.
    """
    ints = [i for i, part in enumerate(parts) if isinstance(part, int)]
    return at if ints == list(range(at + 1, at + 1 + len(ints))) else 0


def _joined(held: _core.Tensor, axes: int) -> _core.Tensor:
    """The first axes as one. A view, because writes go to it."""
    shape = held.shape
    joined = reshaped(held, (math.prod(shape[:axes]), *shape[axes:]))
    if joined is None:
        raise IndexError(
            f"index: on a device expected contiguous axes for a mask with {axes} of them; "
            f"{_WAY_OUT}"
        )
    return joined


def _there(array: Any, held: _core.Tensor) -> _core.Tensor:
    """The array of an index on the device, contiguous."""
    if isinstance(array, np.ndarray):
        dense = np.ascontiguousarray(array).reshape(array.shape)
        return _core.Tensor.wrap(dense, "index").to(held.device)
    if array.device != held.device:
        raise RuntimeError(
            f"index: expected memory of the CPU or of {held.device}, got memory of {array.device}"
        )
    return array if _core.is_contiguous(array) else _core.clone(array)


def _part(part: Any) -> Any:
    """An int, a slice, Ellipsis, a NumPy array or a tensor of the core."""
    if part is None:
        raise IndexError("index: expected no None in a tuple; use reshape() to add a dimension")
    if part is Ellipsis or isinstance(part, slice):
        return part
    if is_number(part) and not isinstance(part, (bool, np.bool_)):
        return _integer(part)
    array = for_core(part, "index")
    if isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.size == 0:
        array = array.astype(np.int64)  # an empty list selects nothing
    if "float" in str(array.dtype):
        raise IndexError(f"index: expected integers or a mask, got {array.dtype}")
    if array.shape:
        return array
    if str(array.dtype) == "bool":
        raise IndexError("index: expected integers or a mask with axes, got a single bool")
    return int(np.asarray(array.cpu() if isinstance(array, _core.Tensor) else array))


def _integer(number: Any) -> int:
    if not hasattr(number, "__index__"):
        raise IndexError(f"index: expected integers or a mask, got {number!r}")
    return int(number)


def _basic(held: _core.Tensor, parts: list[Any]) -> _core.Tensor:
    """The view of ints and slices, as NumPy makes it."""
    used = sum(part is not Ellipsis for part in parts)
    if used > len(held.shape):
        raise IndexError(f"index: expected at most {len(held.shape)} indices, got {used}")
    rest = [slice(None)] * (len(held.shape) - used)
    at = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts = [*parts[:at], *rest, *parts[at + 1 :]]
    shape: list[int] = []
    strides: list[int] = []
    offset = 0
    for axis, (part, extent, step) in enumerate(
        zip(parts, held.shape, _core.byte_strides(held), strict=True)
    ):
        if isinstance(part, int):
            if not -extent <= part < extent:
                raise IndexError(
                    f"index: expected {-extent} to {extent - 1} along axis {axis}, got {part}"
                )
            offset += part % extent * step
            continue
        start, stop, stride = part.indices(extent)
        count = len(range(start, stop, stride))
        offset += start * step if count else 0
        shape.append(count)
        strides.append(step * stride)
    return _core.view(held, shape, strides, offset)


def _moved(held: _core.Tensor, source: int, count: int, to: int) -> _core.Tensor:
    """A view with `count` axes moved from `source` on to `to` on."""
    if source == to:
        return held
    order = list(range(len(held.shape)))
    block = order[source : source + count]
    del order[source : source + count]
    order[to:to] = block
    strides = _core.byte_strides(held)
    return _core.view(held, [held.shape[i] for i in order], [strides[i] for i in order], 0)


def broadcast(values: _core.Tensor, shape: tuple[int, ...]) -> _core.Tensor:
    """A view of `values` with this shape; ValueError if they do not broadcast to it."""
    extents = tuple(values.shape)
    while len(extents) > len(shape) and extents[0] == 1:
        extents = extents[1:]
    missing = len(shape) - len(extents)
    fits = missing >= 0 and all(
        one in (1, want) for one, want in zip(extents, shape[missing:], strict=True)
    )
    if not fits:
        raise ValueError(
            f"value: expected a shape that broadcasts to {shape}, got {tuple(values.shape)}"
        )
    steps = _core.byte_strides(values)[len(values.shape) - len(extents) :]
    kept = [
        0 if one != want else step
        for one, want, step in zip(extents, shape[missing:], steps, strict=True)
    ]
    return _core.view(values, shape, [0] * missing + kept, 0)


def reshaped(held: _core.Tensor, shape: tuple[int, ...]) -> _core.Tensor | None:
    """A view with a shape of as many elements; None if that needs a copy."""
    if 0 in shape:
        return _core.view(held, shape, [0] * len(shape), 0)
    dense: list[tuple[int, int]] = []  # (elements, step) of axes that are one inside the other
    for extent, step in zip(held.shape, _core.byte_strides(held), strict=True):
        if dense and dense[-1][1] == extent * step:
            dense[-1] = dense[-1][0] * extent, step
        elif extent != 1:
            dense.append((extent, step))
    left, step = 1, 0
    steps: list[int] = []
    for extent in reversed(shape):
        if extent != 1 and left == 1:
            left, step = dense.pop()
        if left % extent:
            return None
        steps.append(step)
        left, step = left // extent, step * extent
    return _core.view(held, shape, steps[::-1], 0)


def resolved(shape: tuple[int, ...], old: Any) -> tuple[int, ...]:
    """The shape with its -1 replaced; ValueError if it does not hold the elements of `old`."""
    size = math.prod(old)
    known = math.prod(extent for extent in shape if extent != -1)
    if shape.count(-1) == 1 and known and size % known == 0:
        shape = tuple(size // known if extent == -1 else extent for extent in shape)
    if -1 in shape or math.prod(shape) != size:
        raise ValueError(f"shape: expected one with {size} elements, got {tuple(shape)}")
    return shape
