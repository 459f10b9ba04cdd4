"""Arithmetic, logic and comparisons of Tensors, with Open3D's rules for dtypes.

Arithmetic keeps the tensor's dtype; logic and comparisons give Bool. A method with a trailing `_`
writes into its tensor, in the tensor's dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tensorhash.core._base import Base, is_bool, is_float
from tensorhash.core._operands import is_operand, operand

BinaryFunction = Callable[[Any, Any], Any]
T = TypeVar("T", bound=Base)


def _divide(dividend: Any, divisor: Any) -> Any:
    """Division as in C: integers round towards zero."""
    if is_float(dividend.dtype):
        return np.true_divide(dividend, divisor)
    if not np.all(divisor):
        raise ZeroDivisionError("other: expected integers other than 0 as divisors, got a 0")
    quotient = np.floor_divide(dividend, divisor)
    if dividend.dtype.kind == "u":
        return quotient
    exact = quotient * divisor == dividend
    return quotient + (~exact & ((dividend < 0) != (divisor < 0))).astype(dividend.dtype)


def _for_numbers(function: BinaryFunction) -> BinaryFunction:
    """`function` for numbers only. As in C++, overflow wraps, and inf and NaN give no warning."""

    def apply(left: Any, right: Any) -> Any:
        if is_bool(left.dtype):
            raise TypeError(
                "arithmetic: expected numbers, got Bool tensors; use &, | and ^, "
                "or convert with .to(o3c.int64)"
            )
        with np.errstate(all="ignore"):
            return np.asarray(function(left, right), dtype=left.dtype)

    return apply


_ADD = _for_numbers(np.add)
_SUBTRACT = _for_numbers(np.subtract)
_MULTIPLY = _for_numbers(np.multiply)
_DIVIDE = _for_numbers(_divide)


def _write(tensor: T, function: BinaryFunction, other: Any) -> T:
    """Computes `function(tensor, other)` and writes the result into the tensor."""
    target = tensor._array
    result = function(target, operand(target, other))
    if result.shape != target.shape:
        raise ValueError(
            f"other: expected a shape that broadcasts to {tuple(target.shape)}, "
            f"the result would have shape {tuple(result.shape)}"
        )
    np.copyto(target, result, casting="unsafe")
    return tensor


def _method(name: str, function: BinaryFunction, what: str) -> Callable[[T, Any], T]:
    def method(self: T, other: Any) -> T:
        return self._wrap(np.asarray(function(self._array, operand(self._array, other))))

    return _named(method, name, f"Elementwise {what}; a new tensor.")


def _method_in_place(name: str, function: BinaryFunction, what: str) -> Callable[[T, Any], T]:
    def method(self: T, other: Any) -> T:
        return _write(self, function, other)

    return _named(method, name, f"Elementwise {what}, written into this tensor.")


def _operator(name: str, function: BinaryFunction) -> Callable[[T, Any], T]:
    def method(self: T, other: Any) -> T:
        if not is_operand(other):
            return NotImplemented  # type: ignore[no-any-return]
        return self._wrap(np.asarray(function(self._array, operand(self._array, other))))

    return _named(method, name, None)


def _reflected(name: str, function: BinaryFunction) -> Callable[[T, Any], T]:
    def method(self: T, other: Any) -> T:
        if not is_operand(other):
            return NotImplemented  # type: ignore[no-any-return]
        return self._wrap(np.asarray(function(operand(self._array, other), self._array)))

    return _named(method, name, None)


def _operator_in_place(name: str, function: BinaryFunction) -> Callable[[T, Any], T]:
    def method(self: T, other: Any) -> T:
        return _write(self, function, other) if is_operand(other) else NotImplemented

    return _named(method, name, None)


def _named(method: Callable[[T, Any], T], name: str, text: str | None) -> Callable[[T, Any], T]:
    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = text
    return method


class Arithmetic(Base):
    """The operators and their named forms."""

    __slots__ = ()

    # Makes NumPy arrays as left operands call the Tensor's operators.
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    add = _method("add", _ADD, "sum")
    add_ = _method_in_place("add_", _ADD, "sum")
    __add__ = _operator("__add__", _ADD)
    __radd__ = _reflected("__radd__", _ADD)
    __iadd__ = _operator_in_place("__iadd__", _ADD)

    sub = _method("sub", _SUBTRACT, "difference")
    sub_ = _method_in_place("sub_", _SUBTRACT, "difference")
    __sub__ = _operator("__sub__", _SUBTRACT)
    __rsub__ = _reflected("__rsub__", _SUBTRACT)
    __isub__ = _operator_in_place("__isub__", _SUBTRACT)

    mul = _method("mul", _MULTIPLY, "product")
    mul_ = _method_in_place("mul_", _MULTIPLY, "product")
    __mul__ = _operator("__mul__", _MULTIPLY)
    __rmul__ = _reflected("__rmul__", _MULTIPLY)
    __imul__ = _operator_in_place("__imul__", _MULTIPLY)

    # `//` is `/`, as in Open3D: integers divide towards zero, floats keep the fraction.
    div = _method("div", _DIVIDE, "quotient")
    div_ = _method_in_place("div_", _DIVIDE, "quotient")
    __truediv__ = _operator("__truediv__", _DIVIDE)
    __rtruediv__ = _reflected("__rtruediv__", _DIVIDE)
    __itruediv__ = _operator_in_place("__itruediv__", _DIVIDE)
    __floordiv__ = _operator("__floordiv__", _DIVIDE)
    __rfloordiv__ = _reflected("__rfloordiv__", _DIVIDE)
    __ifloordiv__ = _operator_in_place("__ifloordiv__", _DIVIDE)

    logical_and = _method("logical_and", np.logical_and, "and of truth values")
    logical_and_ = _method_in_place("logical_and_", np.logical_and, "and of truth values")
    __and__ = _operator("__and__", np.logical_and)
    __rand__ = _reflected("__rand__", np.logical_and)
    __iand__ = _operator_in_place("__iand__", np.logical_and)

    logical_or = _method("logical_or", np.logical_or, "or of truth values")
    logical_or_ = _method_in_place("logical_or_", np.logical_or, "or of truth values")
    __or__ = _operator("__or__", np.logical_or)
    __ror__ = _reflected("__ror__", np.logical_or)
    __ior__ = _operator_in_place("__ior__", np.logical_or)

    logical_xor = _method("logical_xor", np.logical_xor, "exclusive or of truth values")
    logical_xor_ = _method_in_place("logical_xor_", np.logical_xor, "exclusive or of truth values")
    __xor__ = _operator("__xor__", np.logical_xor)
    __rxor__ = _reflected("__rxor__", np.logical_xor)
    __ixor__ = _operator_in_place("__ixor__", np.logical_xor)

    gt = _method("gt", np.greater, "self > other")
    gt_ = _method_in_place("gt_", np.greater, "self > other")
    __gt__ = _operator("__gt__", np.greater)
    lt = _method("lt", np.less, "self < other")
    lt_ = _method_in_place("lt_", np.less, "self < other")
    __lt__ = _operator("__lt__", np.less)
    ge = _method("ge", np.greater_equal, "self >= other")
    ge_ = _method_in_place("ge_", np.greater_equal, "self >= other")
    __ge__ = _operator("__ge__", np.greater_equal)
    le = _method("le", np.less_equal, "self <= other")
    le_ = _method_in_place("le_", np.less_equal, "self <= other")
    __le__ = _operator("__le__", np.less_equal)
    eq = _method("eq", np.equal, "self == other")
    eq_ = _method_in_place("eq_", np.equal, "self == other")
    __eq__ = _operator("__eq__", np.equal)  # type: ignore[assignment]
    ne = _method("ne", np.not_equal, "self != other")
    ne_ = _method_in_place("ne_", np.not_equal, "self != other")
    __ne__ = _operator("__ne__", np.not_equal)  # type: ignore[assignment]
