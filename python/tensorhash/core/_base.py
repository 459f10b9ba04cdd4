"""The base class of Tensor's parts, which holds a NumPy array, and functions to parse arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensorhash import _core, _frameworks
from tensorhash._arguments import parse_shape
from tensorhash._arrays import is_number, take_array
from tensorhash._device import usable_device
from tensorhash._dtypes import core_dtype, name_of, numpy_dtype, parse_dtype
from tensorhash._lists import natural_array
from tensorhash.core.size_vector import SizeVector

if TYPE_CHECKING:
    from typing_extensions import Self


class Base:
    """Holds the NumPy array of a Tensor."""

    __slots__ = ("_array",)

    _array: Any

    # _device_tensor.py sets these, because it knows this class and not the other way round.
    _on_device: ClassVar[Callable[[Any, str], Any]]  # a copy of an array on a device
    _over: ClassVar[Callable[[_core.Tensor], Any]]  # a Tensor over memory of a device

    @classmethod
    def _wrap(cls, array: Any) -> Self:
        """A Tensor over this array, without a copy."""
        self = object.__new__(cls)
        self._array = array
        return self

    @classmethod
    def _made(cls, array: Any, device: Any) -> Self:
        """A Tensor over this array, or a copy on another device than the CPU.

        RuntimeError if this build lacks the device.
        """
        place = "cpu:0" if device is None else usable_device(device)
        if place.startswith("cpu"):
            return cls._wrap(array)
        copied: Self = cls._on_device(array, place)
        return copied

    @classmethod
    def _given(cls, held: _core.Tensor) -> Self:
        """A Tensor over memory of the core."""
        if held.device.startswith("cpu"):
            return cls._wrap(_frameworks.to_numpy(held))
        shared: Self = cls._over(held)
        return shared

    def _for_core(self) -> Any:
        """What the core reads."""
        return self._array


def for_core(value: Any, argument: str) -> Any:
    """The NumPy array of a Tensor, any framework's array, a list or a number; shares memory.

    For memory of a device a tensor of the core.
    """
    if isinstance(value, Base):
        return value._for_core()
    if isinstance(value, (list, tuple, range)) or is_number(value):
        return natural_array(value, argument)
    taken = take_array(value, None, argument)
    rows = value if taken is None else taken[0]
    is_there = isinstance(rows, _core.Tensor) and not rows.device.startswith("cpu")
    return rows if is_there else _frameworks.as_numpy(rows)


def as_numpy(value: Any, argument: str) -> Any:
    """`for_core`, only for memory of the CPU."""
    if isinstance(value, Base):
        return value._array
    return _frameworks.as_numpy(for_core(value, argument))


def parse(dtype: Any, argument: str = "dtype") -> Any:
    """The NumPy dtype of a dtype argument."""
    return numpy_dtype(parse_dtype(dtype, argument)[0])


def dtype_text(dtype: Any) -> str:
    """Open3D's name of a NumPy dtype, such as "Int64"."""
    return str(core_dtype(name_of(dtype)))


def is_float(dtype: Any) -> bool:
    """Whether `dtype` is a float, including bfloat16."""
    return "float" in dtype.name


def is_bool(dtype: Any) -> bool:
    """Whether `dtype` is bool."""
    return bool(dtype == np.bool_)


def new_shape(shape: Any) -> tuple[int, ...]:
    """Parses a shape argument: an int, a tuple, a list or a SizeVector."""
    return parse_shape(SizeVector(shape), "shape")
