"""Expressions of `core` with results recorded from Open3D: operators and functions, all dtypes."""

import operator

import numpy as np

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
)
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "and_", "or_", "xor")
OPERATORS += ("gt", "lt", "ge", "le", "eq", "ne")
IN_PLACE = ("add_", "sub_", "mul_", "div_", "logical_and_", "logical_or_", "logical_xor_")
IN_PLACE += ("gt_", "lt_", "ge_", "le_", "eq_", "ne_")
FUNCTIONS = ("abs", "neg", "sqrt", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite")
FUNCTIONS += ("logical_not", "sum", "prod", "min", "max", "mean", "argmin", "argmax", "all", "any")


def _values(dtype):
    """(left, right): right has neither 0 nor -1, because Open3D cannot divide integers by them."""
    if dtype == "bool":
        return np.array([True, True, False, False]), np.array([True, False, True, False])
    if dtype.startswith("float"):
        left = [-7.5, 7.5, 0.0, 2.5, -0.5, 1e10, np.inf, 0.1]
        return np.array(left, dtype), np.array([2, -2, 3, 2.5, 0.3, 7, 2, 0.1], dtype)
    left = np.array([-7, 7, 0, 3, 100, -100, 127, -3])
    left = (np.abs(left) if dtype.startswith("u") else left).astype(dtype)
    return left, np.array([2, 2, 3, 3, 7, 7, 5, 2]).astype(dtype)


def cases():
    """{name: a function of the module} for every expression."""
    found = {}
    for dtype in DTYPES:
        left, right = _values(dtype)
        for name in OPERATORS:
            function = getattr(operator, name)
            found[f"{dtype} {name}"] = _binary(function, left, right)
            found[f"{dtype} {name} 3"] = _with_number(function, left, 3)
            found[f"{dtype} {name} 2.6"] = _with_number(function, left, 2.6)
            found[f"9.7 {name} {dtype}"] = _with_number(_swapped(function), right, 9.7)
        for name in IN_PLACE:
            found[f"{dtype} {name}"] = _in_place(name, left, right)
        for name in FUNCTIONS:
            found[f"{dtype} {name}"] = _of_one(name, left)
    return found


def _in_place(method, left, right):
    return lambda o3c: getattr(o3c.Tensor(left), method)(o3c.Tensor(right))


def _binary(function, left, right):
    return lambda o3c: function(o3c.Tensor(left), o3c.Tensor(right))


def _with_number(function, array, number):
    return lambda o3c: function(o3c.Tensor(array), number)


def _swapped(function):
    return lambda tensor, number: function(number, tensor)


def _of_one(name, array):
    return lambda o3c: getattr(o3c.Tensor(array), name)()


def answer(case, module):
    """The result of an expression: [dtype, shape, the elements' bytes in hex], or "error"."""
    try:
        result = case(module).numpy()
    except Exception:
        return "error"
    if result.dtype == np.bool_:
        result = result.view(np.uint8) != 0  # True is 255 in some of Open3D's tensors
    return [str(result.dtype), list(result.shape), result.tobytes().hex()]
