"""Arguments as tensors of the table's dtype. Numbers that do not fit are refused, never truncated or wrapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tensorhash._frameworks import NUMPY, framework_of
from tensorhash._types import NumPyArray


def refuse(message: str) -> tf.errors.InvalidArgumentError:
    """TensorFlow's error for a wrong argument."""
    return tf.errors.InvalidArgumentError(None, None, message)


def as_tensor(argument: str, value: Any, dtype: tf.DType) -> tf.Tensor:
    """`value` as a tensor of `dtype`.

    A tensor must have the dtype. Arrays, lists and numbers must be of its kind: booleans, integers that it can hold,
    strings, or any numbers for floats, which are rounded as TensorFlow rounds them.
    """
    value = _without_nulls(argument, value, dtype)
    if not isinstance(value, PLAIN) and not hasattr(value, "__array__"):
        value = tf.convert_to_tensor(value)  # a class that is registered with TensorFlow
    _check(argument, value, dtype)
    return tf.convert_to_tensor(value, dtype=dtype, name=argument)


def _without_nulls(argument: str, value: Any, dtype: tf.DType) -> Any:
    """Masked arrays, and columns of pandas, polars and Arrow, as arrays; a null in them is refused.

    TensorFlow converts through NumPy, which ignores masks and turns nulls into NaN.
    """
    source = framework_of(type(value))
    if type(value) is np.ndarray or dtype == tf.string or source is None:
        return value
    if source.results is not NUMPY:
        return value
    try:
        return source.take(value, argument)
    except (TypeError, ValueError) as error:
        raise refuse(str(error)) from error


PLAIN = (np.ndarray, np.generic, list, tuple, range, str, bytes, int, float, complex, type(None))
# Python's own numbers have no fixed width.
KINDS = {bool: "bool", int: "integer", float: "float", str: "string", bytes: "string"}


def _check(argument: str, value: Any, dtype: tf.DType) -> None:
    if tf.is_tensor(value):
        if value.dtype != dtype:
            raise _refusal(argument, dtype, tf.as_dtype(value.dtype).name, cast=True)
    elif isinstance(value, range):
        _check_integers(argument, dtype, "int", min(value, default=0), max(value, default=0))
    elif isinstance(value, list | tuple):
        _check_list(argument, tf.nest.flatten(value), dtype)
    elif hasattr(value, "__array__"):  # NumPy's arrays and numbers, and those of pandas, torch, ...
        _check_array(argument, np.asarray(value), dtype)
    else:
        _check_list(argument, [value], dtype)


def _check_list(argument: str, leaves: list[Any], dtype: tf.DType) -> None:
    """Checks by type: a long list of numbers costs two passes, not one call per number."""
    groups: dict[type, list[Any]] = {}
    for leaf in leaves:
        groups.setdefault(type(leaf), []).append(leaf)
    for group, members in groups.items():
        kind = next((KINDS[base] for base in group.__mro__ if base in KINDS), None)
        if hasattr(group, "__array__"):
            for leaf in members:
                _check(argument, leaf, dtype)
        elif kind == "integer":
            _check_integers(argument, dtype, group.__name__, min(members), max(members))
        elif kind is None or not _fits(kind, dtype):
            raise _refusal(argument, dtype, f"{group.__name__}, {members[0]!r}")


def _check_array(argument: str, array: NumPyArray, dtype: tf.DType) -> None:
    if array.dtype == object:
        _check_list(argument, array.ravel().tolist(), dtype)
        return
    try:
        kind = _kind(tf.as_dtype(array.dtype))
    except TypeError:  # dates and records, which TensorFlow has no dtype for
        kind = "other"
    came = str(array.dtype)
    if kind == "integer" and dtype.is_integer:
        if array.size and not np.can_cast(array.dtype, dtype.as_numpy_dtype):
            _check_integers(argument, dtype, came, int(array.min()), int(array.max()))
    elif not _fits(kind, dtype):
        raise _refusal(argument, dtype, came, cast=kind != "other")


def _check_integers(argument: str, dtype: tf.DType, came: str, least: int, most: int) -> None:
    if not _fits("integer", dtype):
        raise _refusal(argument, dtype, f"{came}, {least}")
    if dtype.is_integer and not dtype.min <= least <= most <= dtype.max:
        wrong = least if least < dtype.min else most
        bounds = f" with numbers from {dtype.min} to {dtype.max}"
        raise _refusal(argument, dtype, f"{wrong} ({came})", expected=bounds)


def _kind(dtype: tf.DType) -> str:
    if dtype.is_bool:
        return "bool"
    if dtype.is_integer:
        return "integer"
    if dtype.is_floating:
        return "float"
    return "string" if dtype == tf.string else "other"


def _fits(kind: str, dtype: tf.DType) -> bool:
    """Whether numbers of this kind go into the dtype; the range of integers is checked elsewhere."""
    return kind == _kind(dtype) or (kind == "integer" and dtype.is_floating)


def _refusal(
    argument: str, dtype: tf.DType, came: str, *, expected: str = "", cast: bool = False
) -> tf.errors.InvalidArgumentError:
    hint = f"; cast it with tf.cast({argument}, tf.{dtype.name})" if cast else ""
    return refuse(f"{argument}: expected {dtype.name}{expected}, got {came}{hint}")
