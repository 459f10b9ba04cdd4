"""The base of all parts of Tensor: one NumPy array, and arrays read from arguments."""

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
    """Holds the array; operations wrap their results."""

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
        """A Tensor over this array; an error if there is no such device."""
        if device is not None:
            usable_device(device)
        return cls._wrap(array)


def as_numpy(value: Any, argument: str) -> Any:
    """The array of a Tensor, another framework's array or a list; shares memory where it can."""
    if isinstance(value, Base):
        return value._array
    if isinstance(value, (list, tuple, range)) or is_number(value):
        return natural_array(value, argument)
    taken = take_array(value, None, argument)
    rows = value if taken is None else taken[0]
    return _frameworks.as_numpy(rows)


def parse(dtype: Any, argument: str = "dtype") -> Any:
    """The NumPy dtype of an argument."""
    return numpy_dtype(parse_dtype(dtype, argument)[0])


def dtype_text(dtype: Any) -> str:
    """Open3D's name of a NumPy dtype, "Int64"."""
    return str(core_dtype(name_of(dtype)))


def is_float(dtype: Any) -> bool:
    """Whether elements are floats, bfloat16 included."""
    return "float" in dtype.name


def is_bool(dtype: Any) -> bool:
    """Whether elements are booleans."""
    return bool(dtype == np.bool_)


def new_shape(shape: Any) -> tuple[int, ...]:
    """A shape argument: an int, a tuple, a list or a SizeVector."""
    return parse_shape(SizeVector(shape), "shape")
