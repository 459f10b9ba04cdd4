"""Converts arguments to tensors of the table's dtype. Numbers that do not fit are errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tensorhash._columns import no_column, no_vector
from tensorhash._frameworks import NUMPY, framework_of
from tensorhash._types import NumPyArray
from tensorhash.tensorflow._errors import refuse
from tensorhash.tensorflow._exact import require_exact


def as_tensor(
    argument: str, value: Any, dtype: tf.DType, shape: Sequence[int] = (), *, exact: bool = False
) -> tf.Tensor:
    """Converts `value` to a tensor of `dtype`.

    A tensor must have the dtype. Arrays, lists and numbers must be of its kind: booleans, integers
    in its range, strings, or any numbers for floats. TensorFlow rounds these to the dtype; with
    `exact`, a number that would be rounded is an error. If the element `shape` has rank 1, a tuple
    of 1-D arrays has one per column.
    """
    if len(shape) == 1 and holds_arrays(value):
        return _join_columns(argument, value, dtype, exact)
    value = without_nulls(argument, value, dtype)
    if not isinstance(value, PLAIN) and not hasattr(value, "__array__"):
        value = tf.convert_to_tensor(value)  # a class registered with TensorFlow
    _check(argument, value, dtype)
    if exact and dtype.is_floating:
        require_exact(argument, value, dtype)
    name = argument.partition("[")[0]  # the name of a graph node has no brackets
    return tf.convert_to_tensor(value, dtype=dtype, name=name)


def holds_arrays(value: Any) -> bool:
    """Whether `value` is a tuple of columns: a tuple that holds an array with rows."""
    return isinstance(value, tuple) and any(map(_has_rows, value))


def _has_rows(value: Any) -> bool:
    if isinstance(value, np.generic) or not (tf.is_tensor(value) or hasattr(value, "__array__")):
        return False
    return getattr(value, "ndim", 1) != 0


def _join_columns(
    argument: str, columns: tuple[Any, ...], dtype: tf.DType, exact: bool
) -> tf.Tensor:
    """The rows of a tuple of 1-D arrays, one per column. Shapes may be unknown in a graph."""
    parts: list[tf.Tensor] = []
    for at, column in enumerate(columns):
        label = f"{argument}[{at}]"
        if not _has_rows(column):
            raise refuse(no_column(label, column))
        part = as_tensor(label, column, dtype, exact=exact)
        if part.shape.rank not in (None, 1):
            raise refuse(no_vector(label, part.shape))
        if parts and not part.shape.is_compatible_with(parts[0].shape):
            raise refuse(
                f"{label}: expected {parts[0].shape[0]} rows as {argument}[0] has, "
                f"got {part.shape[0]}"
            )
        parts.append(part)
    return tf.stack(parts, axis=-1)


def without_nulls(argument: str, value: Any, dtype: tf.DType | None) -> Any:
    """Converts masked arrays, and columns of pandas, polars and Arrow; a null is an error.

    TensorFlow converts through NumPy, which ignores masks and turns nulls into NaN. Columns of
    strings become objects; the check for strings finds their nulls. Ragged and sparse tensors are
    errors, too.
    """
    if isinstance(value, tf.RaggedTensor | tf.SparseTensor):
        dense = "flat_values" if isinstance(value, tf.RaggedTensor) else "values"
        raise refuse(
            f"{argument}: expected a dense tensor, got a {type(value).__name__}; "
            f"pass {argument}.{dense}"
        )
    source = framework_of(type(value))
    if type(value) is np.ndarray or source is None or source.results is not NUMPY:
        return value
    if source is not NUMPY and dtype == tf.string:
        return np.asarray(value, dtype=object)
    try:
        return source.take(value, argument)
    except (TypeError, ValueError) as error:
        raise refuse(str(error)) from error


PLAIN = (np.ndarray, np.generic, list, tuple, range, str, bytes, int, float, complex, type(None))
# The kinds of Python's types, which have no fixed width.
KINDS = {bool: "bool", int: "integer", float: "float", str: "string", bytes: "string"}


def _check(argument: str, value: Any, dtype: tf.DType) -> None:
    if tf.is_tensor(value):
        if value.dtype != dtype:
            raise _refusal(argument, dtype, tf.as_dtype(value.dtype).name, cast=True)
    elif isinstance(value, range):
        _check_integers(argument, dtype, "int", min(value, default=0), max(value, default=0))
    elif isinstance(value, list | tuple):
        _check_list(argument, tf.nest.flatten(value), dtype)
    elif hasattr(value, "__array__"):  # NumPy, pandas, torch, ...
        _check_array(argument, np.asarray(value), dtype)
    else:
        _check_list(argument, [value], dtype)


def _check_list(argument: str, leaves: list[Any], dtype: tf.DType) -> None:
    """Checks the leaves grouped by type: two passes, not one call per number."""
    groups: dict[type, list[Any]] = {}
    for leaf in leaves:
        groups.setdefault(type(leaf), []).append(leaf)
    for group, members in groups.items():
        kind = next((KINDS[base] for base in group.__mro__ if base in KINDS), None)
        if hasattr(group, "__array__"):
            for leaf in members:
                _check(argument, without_nulls(argument, leaf, dtype), dtype)
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
    except TypeError:  # TensorFlow has no dtype for it, for example dates and records
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
    """Whether `dtype` accepts values of this kind; the range of integers is checked elsewhere."""
    return kind == _kind(dtype) or (kind == "integer" and dtype.is_floating)


def _refusal(
    argument: str, dtype: tf.DType, came: str, *, expected: str = "", cast: bool = False
) -> tf.errors.InvalidArgumentError:
    hint = f"; cast it with tf.cast({argument}, tf.{dtype.name})" if cast else ""
    return refuse(f"{argument}: expected {dtype.name}{expected}, got {came}{hint}")
