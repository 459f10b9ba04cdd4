"""Rows of integers from any framework, as the core reads them."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._arrays import NUMPY, Framework, framework, is_number, take_array, to_numpy
from tensorhash._lists import array_of
from tensorhash._table import ArrayLike


def take_rows(array: ArrayLike, argument: str, home: Framework) -> tuple[Any, Framework]:
    """(what the core reads, the framework of the results); lists are int64 and results `home`'s."""
    taken = take_array(array, None, argument)
    if taken is not None:
        return taken
    if is_number(array):
        raise ValueError(f"{argument}: expected rows of integers, got the number {array}")
    return array_of(array, "int64", argument) if len(array) else np.empty(0, np.int64), home


def with_axes(rows: Any, like: Any, batch: int = 1) -> Any:
    """An empty list as no rows [0, batch + D]; D is the length of `like`, or 3 where that is one number."""
    dtype = rows.dtype if isinstance(rows, _core.Tensor) else np.asarray(rows).dtype.name
    if tuple(rows.shape) != (0,) or dtype not in ("int32", "int64"):
        return rows
    return np.empty((0, batch + (len(like) if is_sequence(like) else 3)), dtype)


def is_sequence(value: Any) -> bool:
    """Whether it has one number per axis, not one for all."""
    scalar = isinstance(value, str) or getattr(value, "shape", None) == ()
    return hasattr(value, "__len__") and not scalar


def home_of(device: Any) -> Framework:
    """The framework of results where no array came: torch's for a torch device, else NumPy."""
    return framework("torch") if type(device).__module__ == "torch" else NUMPY


def device_in(home: Framework) -> Any:
    """The CPU as the users of a framework write it: torch's device, else "cpu:0"."""
    return importlib.import_module("torch").device("cpu") if home.name == "torch" else "cpu:0"


def as_numpy(rows: Any) -> Any:
    """In this machine's byte order; not a copy unless that costs one."""
    array = to_numpy(rows) if isinstance(rows, _core.Tensor) else np.asarray(rows)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
