"""Class methods that make Tensors: zeros, ones, ranges, identities, ..."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash._dtypes import Dtype
from tensorhash.core._base import Base, as_numpy, is_bool, is_float, new_shape, parse
from tensorhash.core._operands import number_like, scalar_like

if TYPE_CHECKING:
    from typing_extensions import Self


def _parse(dtype: Any) -> Any:
    return parse(Dtype.Float32 if dtype is None else dtype)


def _is_whole(value: Any) -> bool:
    return value is None or hasattr(value, "__index__")


class Creation(Base):
    """Class methods that make a Tensor, Float32 by default."""

    __slots__ = ()

    @classmethod
    def empty(cls, shape: Any, dtype: Any = None, device: Any = None) -> Self:
        """A tensor with uninitialised elements."""
        return cls._made(np.empty(new_shape(shape), _parse(dtype)), device)

    @classmethod
    def zeros(cls, shape: Any, dtype: Any = None, device: Any = None) -> Self:
        """A tensor of zeros."""
        return cls._made(np.zeros(new_shape(shape), _parse(dtype)), device)

    @classmethod
    def ones(cls, shape: Any, dtype: Any = None, device: Any = None) -> Self:
        """A tensor of ones."""
        return cls._made(np.ones(new_shape(shape), _parse(dtype)), device)

    @classmethod
    def full(cls, shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Self:
        """A tensor filled with one value."""
        wanted = _parse(dtype)
        filled = np.full(new_shape(shape), scalar_like(fill_value, wanted, "fill_value"), wanted)
        return cls._made(filled, device)

    @classmethod
    def eye(cls, n: int, dtype: Any = None, device: Any = None) -> Self:
        """The n x n identity matrix."""
        return cls._made(np.eye(operator.index(n), dtype=_parse(dtype)), device)

    @classmethod
    def diag(cls, input: Any) -> Self:
        """The square matrix with the 1-D tensor `input` on its diagonal."""
        values = as_numpy(input, "input")
        if values.ndim != 1:
            raise ValueError(f"input: expected one dimension, got shape {values.shape}")
        return cls._wrap(np.diag(values))

    @classmethod
    def arange(
        cls,
        start: Any = None,
        stop: Any = None,
        step: Any = None,
        dtype: Any = None,
        device: Any = None,
    ) -> Self:
        """start, start + step, ... below stop; `arange(n)` starts at 0.

        Int64 by default, or Float64 if a number is a float.
        """
        if stop is None:
            start, stop = None, start
        if stop is None:
            raise TypeError("stop: expected a number, got None")
        whole = all(map(_is_whole, (start, stop, step)))
        wanted = parse((Dtype.Int64 if whole else Dtype.Float64) if dtype is None else dtype)
        if is_bool(wanted):
            raise TypeError("dtype: expected a dtype of numbers, got Bool")
        numbers = {"start": start or 0, "stop": stop, "step": 1 if step is None else step}
        first, end, stride = (number_like(n, wanted, name) for name, n in numbers.items())
        if stride == 0:
            raise ValueError(f"step: expected {wanted} other than 0, got {step}")
        if is_float(wanted):
            count = max(math.ceil((end.item() - first.item()) / stride.item()), 0)
            values = np.arange(count, dtype=wanted) * stride + first
        else:
            values = np.arange(first.item(), end.item(), stride.item(), dtype=wanted)
        return cls._made(values, device)
