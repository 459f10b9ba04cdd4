"""Reductions of a Tensor over all or some dimensions: sums, minima, maxima, all, any."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash.core._base import Base, dtype_text, is_bool, is_float
from tensorhash.core.size_vector import SizeVector

if TYPE_CHECKING:
    from typing_extensions import Self


def _axes(dim: Any, dims: int) -> tuple[int, ...] | None:
    """The dimensions to reduce; None for all."""
    if dim is None:
        return None
    axes = tuple(SizeVector(dim))
    if not all(-dims <= axis < dims for axis in axes):
        raise ValueError(f"dim: expected dimensions of a {dims}-D tensor, got {dim}")
    if len({axis % dims for axis in axes}) != len(axes):
        raise ValueError(f"dim: expected each dimension once, got {dim}")
    return axes


class Reductions(Base):
    """Methods that reduce dimensions."""

    __slots__ = ()

    def _require_numbers(self, name: str) -> None:
        if is_bool(self._array.dtype):
            raise TypeError(
                f"{name}: expected numbers, got Bool; convert with .to(o3c.int64), "
                f"or use all() and any()"
            )

    def _reduce(self, name: str, dim: Any, keepdim: bool, **options: Any) -> Self:
        self._require_numbers(name)
        function: Callable[..., Any] = getattr(np, name)
        with np.errstate(all="ignore"):
            result = function(
                self._array, axis=_axes(dim, self._array.ndim), keepdims=keepdim, **options
            )
        return self._wrap(np.asarray(result))

    def sum(self, dim: Any = None, keepdim: bool = False) -> Self:
        """The sum of all elements, or over the dimensions `dim`, in the tensor's dtype."""
        return self._reduce("sum", dim, keepdim, dtype=self._array.dtype)

    def prod(self, dim: Any = None, keepdim: bool = False) -> Self:
        """The product of all elements, or over the dimensions `dim`, in the tensor's dtype."""
        return self._reduce("prod", dim, keepdim, dtype=self._array.dtype)

    def _require_elements(self, name: str) -> None:
        if self._array.size == 0:
            raise ValueError(f"{name}: expected elements, got shape {self._array.shape}")

    def min(self, dim: Any = None, keepdim: bool = False) -> Self:
        """The smallest element; NaN if any element is NaN."""
        self._require_elements("min")
        return self._reduce("min", dim, keepdim)

    def max(self, dim: Any = None, keepdim: bool = False) -> Self:
        """The largest element; NaN if any element is NaN."""
        self._require_elements("max")
        return self._reduce("max", dim, keepdim)

    def mean(self, dim: Any = None, keepdim: bool = False) -> Self:
        """The mean, for float tensors only; NaN over no elements."""
        array = self._array
        if not is_float(array.dtype):
            raise TypeError(
                f"mean: expected Float32 or Float64, got {dtype_text(array.dtype)}; "
                f"convert with .to(o3c.float32)"
            )
        total = self.sum(dim, keepdim)._array
        # Open3D multiplies by the reciprocal, rounded to the dtype.
        share = total.size / array.size if array.size else float("nan")
        return self._wrap(np.asarray(total * array.dtype.type(share)))

    def _place(self, name: str, dim: Any) -> Self:
        self._require_numbers(name)
        self._require_elements(name)
        function: Callable[..., Any] = getattr(np, name)
        axes = _axes(dim, self._array.ndim)
        if axes is not None and len(axes) != 1:
            if len(axes) != self._array.ndim:
                raise ValueError(f"dim: expected one dimension or all of them, got {dim}")
            axes = None
        axis = axes if axes is None else axes[0]
        return self._wrap(np.asarray(function(self._array, axis=axis), dtype=np.int64))

    def argmin(self, dim: Any = None) -> Self:
        """Int64: the index of the first smallest element; a flat index without `dim`."""
        return self._place("argmin", dim)

    def argmax(self, dim: Any = None) -> Self:
        """Int64: the index of the first largest element; a flat index without `dim`."""
        return self._place("argmax", dim)

    def _test(self, name: str, dim: Any, keepdim: bool) -> Self:
        if not is_bool(self._array.dtype):
            raise TypeError(
                f"{name}: expected a Bool tensor, got {dtype_text(self._array.dtype)}; "
                f"compare first, for example t != 0"
            )
        function: Callable[..., Any] = getattr(np, name)
        return self._wrap(
            np.asarray(function(self._array, axis=_axes(dim, self._array.ndim), keepdims=keepdim))
        )

    def all(self, dim: Any = None, keepdim: bool = False) -> Self:
        """Bool: whether all elements are True; True over no elements."""
        return self._test("all", dim, keepdim)

    def any(self, dim: Any = None, keepdim: bool = False) -> Self:
        """Bool: whether any element is True; False over no elements."""
        return self._test("any", dim, keepdim)
