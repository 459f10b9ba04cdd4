"""The base class of Tensor's parts, which holds a NumPy array, and functions to parse arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash import _frameworks
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

    @classmethod
    def _wrap(cls, array: Any) -> Self:
        """A Tensor over this array, without a copy."""
        self = cls.__new__(cls)
        self._array = array
        return self

    @classmethod
    def _made(cls, array: Any, device: Any) -> Self:
        """A Tensor over this array; RuntimeError if this build lacks the device."""
        if device is not None:
            usable_device(device)
        return cls._wrap(array)


def as_numpy(value: Any, argument: str) -> Any:
    """The NumPy array of a Tensor, any framework's array, a list or a number; shares memory."""
    if isinstance(value, Base):
        return value._array
    if isinstance(value, (list, tuple, range)) or is_number(value):
        return natural_array(value, argument)
    taken = take_array(value, None, argument)
    rows = value if taken is None else taken[0]
    return _frameworks.as_numpy(rows)


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
