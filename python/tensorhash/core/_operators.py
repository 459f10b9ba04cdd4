"""The arithmetic of a Tensor: NumPy's, element by element."""

from __future__ import annotations

import abc
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import Self


class Operators:
    """Operators and reductions over `self._array`; a Tensor is made of each result."""

    __slots__ = ()

    _array: Any

    @classmethod
    @abc.abstractmethod
    def _wrap(cls, array: Any) -> Self:
        """A Tensor of this array."""

    @staticmethod
    def _plain(value: Any) -> Any:
        """What NumPy computes with: the array of a tensor, anything else as it is."""
        return value._array if isinstance(value, Operators) else value

    def _binary(self, other: Any, operation: Callable[[Any, Any], Any]) -> Self:
        return self._wrap(np.asarray(operation(self._array, self._plain(other))))

    def _reflected(self, other: Any, operation: Callable[[Any, Any], Any]) -> Self:
        return self._wrap(np.asarray(operation(self._plain(other), self._array)))

    def _in_place(self, other: Any, operation: np.ufunc) -> Self:
        operation(self._array, self._plain(other), out=self._array)
        return self

    def __eq__(self, other: object) -> Self:  # type: ignore[override]
        return self._binary(other, operator.eq)

    def __ne__(self, other: object) -> Self:  # type: ignore[override]
        return self._binary(other, operator.ne)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Any) -> Self:
        return self._binary(other, operator.lt)

    def __le__(self, other: Any) -> Self:
        return self._binary(other, operator.le)

    def __gt__(self, other: Any) -> Self:
        return self._binary(other, operator.gt)

    def __ge__(self, other: Any) -> Self:
        return self._binary(other, operator.ge)

    def __add__(self, other: Any) -> Self:
        return self._binary(other, operator.add)

    def __radd__(self, other: Any) -> Self:
        return self._reflected(other, operator.add)

    def __iadd__(self, other: Any) -> Self:
        return self._in_place(other, np.add)

    def __sub__(self, other: Any) -> Self:
        return self._binary(other, operator.sub)

    def __rsub__(self, other: Any) -> Self:
        return self._reflected(other, operator.sub)

    def __isub__(self, other: Any) -> Self:
        return self._in_place(other, np.subtract)

    def __mul__(self, other: Any) -> Self:
        return self._binary(other, operator.mul)

    def __rmul__(self, other: Any) -> Self:
        return self._reflected(other, operator.mul)

    def __imul__(self, other: Any) -> Self:
        return self._in_place(other, np.multiply)

    def __truediv__(self, other: Any) -> Self:
        return self._binary(other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Self:
        return self._reflected(other, operator.truediv)

    def __itruediv__(self, other: Any) -> Self:
        return self._in_place(other, np.true_divide)

    def __floordiv__(self, other: Any) -> Self:
        return self._binary(other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Self:
        return self._reflected(other, operator.floordiv)

    def __ifloordiv__(self, other: Any) -> Self:
        return self._in_place(other, np.floor_divide)

    def __mod__(self, other: Any) -> Self:
        return self._binary(other, operator.mod)

    def __rmod__(self, other: Any) -> Self:
        return self._reflected(other, operator.mod)

    def __and__(self, other: Any) -> Self:
        return self._binary(other, operator.and_)

    def __or__(self, other: Any) -> Self:
        return self._binary(other, operator.or_)

    def __xor__(self, other: Any) -> Self:
        return self._binary(other, operator.xor)

    def __neg__(self) -> Self:
        return self._wrap(-self._array)

    def __invert__(self) -> Self:
        return self._wrap(~self._array)

    def logical_and(self, other: Any) -> Self:
        """Elementwise: both are true."""
        return self._binary(other, np.logical_and)

    def logical_or(self, other: Any) -> Self:
        """Elementwise: one is true."""
        return self._binary(other, np.logical_or)

    def logical_not(self) -> Self:
        """Elementwise: it is false."""
        return self._wrap(np.logical_not(self._array))

    def abs(self) -> Self:
        """Elementwise absolute value."""
        return self._wrap(np.abs(self._array))

    def floor(self) -> Self:
        """Elementwise floor."""
        return self._wrap(np.floor(self._array))

    def _reduce(self, operation: Callable[..., Any], dim: Any, keepdim: bool) -> Self:
        axis = tuple(dim) if isinstance(dim, (list, tuple)) else dim
        return self._wrap(np.asarray(operation(self._array, axis=axis, keepdims=keepdim)))

    def sum(self, dim: Any = None, keepdim: bool = False) -> Self:
        """The sum over all elements, or over the dimensions `dim`."""
        return self._reduce(np.sum, dim, keepdim)

    def prod(self, dim: Any = None, keepdim: bool = False) -> Self:
        """The product."""
        return self._reduce(np.prod, dim, keepdim)

    def mean(self, dim: Any = None, keepdim: bool = False) -> Self:
        """The mean."""
        return self._reduce(np.mean, dim, keepdim)

    def min(self, dim: Any = None, keepdim: bool = False) -> Self:
        """The smallest element."""
        return self._reduce(np.min, dim, keepdim)

    def max(self, dim: Any = None, keepdim: bool = False) -> Self:
        """The largest element."""
        return self._reduce(np.max, dim, keepdim)

    def all(self, dim: Any = None, keepdim: bool = False) -> Self:
        """Whether all elements are true."""
        return self._reduce(np.all, dim, keepdim)

    def any(self, dim: Any = None, keepdim: bool = False) -> Self:
        """Whether some element is true."""
        return self._reduce(np.any, dim, keepdim)

    def argmin(self, dim: int | None = None) -> Self:
        """Where the smallest element is."""
        return self._wrap(np.asarray(np.argmin(self._array, axis=dim)))

    def argmax(self, dim: int | None = None) -> Self:
        """Where the largest element is."""
        return self._wrap(np.asarray(np.argmax(self._array, axis=dim)))
