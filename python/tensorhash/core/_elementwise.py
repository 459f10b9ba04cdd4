"""Elementwise functions of a Tensor: roots, rounding, tests for NaN, clipping, closeness."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash.core._base import Base, dtype_text, is_bool, is_float
from tensorhash.core._operands import same_dtype, scalar_like

if TYPE_CHECKING:
    from typing_extensions import Self


def _computed(array: Any, function: Callable[[Any], Any], name: str, floats_only: bool) -> Any:
    """function(array) in the array's dtype; as in C++, no warnings on overflow or NaN."""
    if is_bool(array.dtype) or (floats_only and not is_float(array.dtype)):
        wanted = "Float32 or Float64" if floats_only else "numbers"
        raise TypeError(
            f"{name}: expected {wanted}, got {dtype_text(array.dtype)}; "
            f"convert with .to(o3c.float32)"
        )
    with np.errstate(all="ignore"):
        return np.asarray(function(array), dtype=array.dtype)


def _to_whole(array: Any, function: Callable[[Any], Any], name: str) -> Any:
    """Applies a rounding function to floats; copies integers."""
    return _computed(array, function if is_float(array.dtype) else np.copy, name, False)


class Elementwise(Base):
    """Elementwise methods."""

    __slots__ = ()

    def _unary(self, function: Any, name: str, floats_only: bool = False) -> Self:
        return self._wrap(_computed(self._array, function, name, floats_only))

    def _unary_in_place(self, function: Any, name: str, floats_only: bool = False) -> Self:
        np.copyto(self._array, _computed(self._array, function, name, floats_only))
        return self

    def sqrt(self) -> Self:
        """Square root; floats only."""
        return self._unary(np.sqrt, "sqrt", floats_only=True)

    def sqrt_(self) -> Self:
        """Square root, written into this tensor."""
        return self._unary_in_place(np.sqrt, "sqrt_", floats_only=True)

    def sin(self) -> Self:
        """Sine; floats only."""
        return self._unary(np.sin, "sin", floats_only=True)

    def sin_(self) -> Self:
        """Sine, written into this tensor."""
        return self._unary_in_place(np.sin, "sin_", floats_only=True)

    def cos(self) -> Self:
        """Cosine; floats only."""
        return self._unary(np.cos, "cos", floats_only=True)

    def cos_(self) -> Self:
        """Cosine, written into this tensor."""
        return self._unary_in_place(np.cos, "cos_", floats_only=True)

    def exp(self) -> Self:
        """Exponential; floats only."""
        return self._unary(np.exp, "exp", floats_only=True)

    def exp_(self) -> Self:
        """Exponential, written into this tensor."""
        return self._unary_in_place(np.exp, "exp_", floats_only=True)

    def neg(self) -> Self:
        """Negation; unsigned integers wrap."""
        return self._unary(np.negative, "neg")

    def neg_(self) -> Self:
        """Negation, written into this tensor."""
        return self._unary_in_place(np.negative, "neg_")

    def __neg__(self) -> Self:
        return self.neg()

    def __invert__(self) -> Self:
        if not is_bool(self._array.dtype):
            raise TypeError(
                f"~: expected a Bool tensor, got {dtype_text(self._array.dtype)}; "
                f"logical_not() takes every dtype"
            )
        return self.logical_not()

    def abs(self) -> Self:
        """Absolute values."""
        return self._unary(np.abs, "abs")

    def abs_(self) -> Self:
        """Absolute values, written into this tensor."""
        return self._unary_in_place(np.abs, "abs_")

    def floor(self) -> Self:
        """Rounds down to a whole number; keeps the dtype."""
        return self._wrap(_to_whole(self._array, np.floor, "floor"))

    def ceil(self) -> Self:
        """Rounds up to a whole number; keeps the dtype."""
        return self._wrap(_to_whole(self._array, np.ceil, "ceil"))

    def trunc(self) -> Self:
        """Rounds towards zero to a whole number; keeps the dtype."""
        return self._wrap(_to_whole(self._array, np.trunc, "trunc"))

    def round(self) -> Self:
        """Rounds to the nearest whole number, halves to even; keeps the dtype."""
        return self._wrap(_to_whole(self._array, np.rint, "round"))

    def _tested(self, test: Any, otherwise: bool) -> Self:
        array = self._array
        return self._wrap(
            np.asarray(test(array)) if is_float(array.dtype) else np.full(array.shape, otherwise)
        )

    def isnan(self) -> Self:
        """Bool: which elements are NaN."""
        return self._tested(np.isnan, False)

    def isinf(self) -> Self:
        """Bool: which elements are infinite."""
        return self._tested(np.isinf, False)

    def isfinite(self) -> Self:
        """Bool: which elements are neither infinite nor NaN."""
        return self._tested(np.isfinite, True)

    def logical_not(self) -> Self:
        """Bool: which elements are zero."""
        return self._wrap(np.asarray(np.logical_not(self._array)))

    def logical_not_(self) -> Self:
        """Writes 1 where an element is zero and 0 elsewhere, into this tensor."""
        np.copyto(self._array, np.logical_not(self._array), casting="unsafe")
        return self

    def clip(self, min_val: Any, max_val: Any) -> Self:
        """Raises elements below `min_val` to it, then lowers those above `max_val` to it."""
        return self._wrap(self._array.copy(order="C")).clip_(min_val, max_val)

    def clip_(self, min_val: Any, max_val: Any) -> Self:
        """`clip`, written into this tensor."""
        array = self._array
        low = scalar_like(min_val, array.dtype, "min_val")
        high = scalar_like(max_val, array.dtype, "max_val")
        if is_bool(array.dtype):
            raise TypeError("clip: expected numbers, got Bool")
        array[np.less(array, low)] = low
        array[np.greater(array, high)] = high
        return self

    def nonzero(self, as_tuple: bool = False) -> Self | list[Self]:
        """The indices of nonzero elements: a list with one Int64 tensor per dimension.

        With `as_tuple` (Open3D's name) one Int64 tensor [dimensions, nonzero elements].
        """
        places = [np.asarray(place, dtype=np.int64) for place in np.nonzero(self._array)]
        if as_tuple:
            return self._wrap(np.stack(places))
        return [self._wrap(place) for place in places]

    def isclose(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8) -> Self:
        """Bool: where |self - other| <= atol + rtol * |other|; dtype and shape must be equal."""
        right = same_dtype(self._array, other)
        if right.shape != self._array.shape:
            raise ValueError(
                f"other: expected shape {self._array.shape}, the tensor's, got {right.shape}"
            )
        wide, against = self._array.astype(np.float64), right.astype(np.float64)
        with np.errstate(all="ignore"):
            close = np.abs(wide - against) <= atol + rtol * np.abs(against)
        return self._wrap(np.asarray(close))

    def allclose(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
        """Whether all elements are close, as in `isclose`."""
        return bool(self.isclose(other, rtol, atol)._array.all())

    def issame(self, other: Any) -> bool:
        """Whether `other` has the same memory, dtype, shape and strides."""
        if not isinstance(other, Base):
            raise TypeError(f"other: expected a Tensor, got {type(other).__name__}")
        mine, theirs = self._array, other._array
        return mine.dtype == theirs.dtype and all(
            mine.__array_interface__[field] == theirs.__array_interface__[field]
            for field in ("data", "shape", "strides")
        )
