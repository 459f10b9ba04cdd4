"""Converts rows of integers from any framework for the core."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash import _core, _frameworks
from tensorhash._arrays import is_number, take_array
from tensorhash._frameworks import NUMPY, Framework, framework
from tensorhash._lists import array_of
from tensorhash._types import ArrayLike, DeviceLike, NumPyArray

if TYPE_CHECKING:
    import torch


def take_rows(array: ArrayLike, argument: str, home: Framework) -> tuple[Any, Framework]:
    """(array for the core, framework of the results). Lists become int64 with results in `home`."""
    taken = take_array(array, None, argument)
    if taken is not None:
        return taken
    if is_number(array):
        raise ValueError(f"{argument}: expected rows of integers, got the number {array}")
    return array_of(array, "int64", argument) if len(array) else np.empty(0, np.int64), home


def with_axes(rows: Any, like: Any, batch: int = 1) -> Any:
    """Shapes the array of an empty list as [0, batch + D]; D is len(like), or 3 for one number."""
    dtype = rows.dtype if isinstance(rows, _core.Tensor) else np.asarray(rows).dtype.name
    if tuple(rows.shape) != (0,) or dtype not in ("int32", "int64"):
        return rows
    return np.empty((0, batch + (len(like) if is_sequence(like) else 3)), dtype)


def is_sequence(value: Any) -> bool:
    """Whether `value` holds one number per axis, not one for all axes."""
    scalar = isinstance(value, str) or getattr(value, "shape", None) == ()
    return hasattr(value, "__len__") and not scalar


def home_of(device: DeviceLike) -> Framework:
    """The framework of results if no argument is an array: torch for a torch.device, else NumPy."""
    return framework("torch") if type(device).__module__ == "torch" else NUMPY


def device_in(home: Framework, name: str = "cpu:0") -> str | torch.device:
    """A device in a framework's terms: a torch.device for torch, else its name."""
    if home.name != "torch":
        return name
    device: torch.device = importlib.import_module("torch").device(
        "cpu" if name == "cpu:0" else name
    )
    return device


def as_numpy(rows: Any) -> NumPyArray:
    """A NumPy array in native byte order; copies only if the order differs, or from a device."""
    is_held = isinstance(rows, _core.Tensor)
    array = _frameworks.copied_to_numpy(rows) if is_held else np.asarray(rows)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
