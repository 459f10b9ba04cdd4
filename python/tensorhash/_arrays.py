"""Converts arrays of every framework to what the core reads: checked, or joined from columns."""

from __future__ import annotations

import array as python_array
import itertools
import numbers
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._columns import join_columns, no_column, no_vector
from tensorhash._dtypes import numpy_dtype
from tensorhash._frameworks import NUMPY, PLAIN, Framework, as_numpy, framework_of
from tensorhash._types import NumPyArray


def take_array(array: Any, dtype: str | None, argument: str) -> tuple[Any, Framework] | None:
    """(array for the core, framework of the results); None if `array` is a list or a number.

    With `dtype`, an array of another dtype is a TypeError that says how to cast it. The core checks
    the dtype of NumPy's arrays. A tuple that holds an array is a tuple of columns.
    """
    source = framework_of(type(array))
    if source is not None:
        taken = source.take(array, argument)
        if dtype is not None and source is not NUMPY:
            _require_dtype(taken, dtype, array, argument, source)
        return taken, source.results
    if isinstance(array, tuple) and any(map(is_array, array)):
        return _take_columns(array, dtype, argument)
    if isinstance(array, (list, tuple, range)) or is_number(array):
        return None
    foreign = _take_foreign(array, argument)
    is_on_device = isinstance(foreign, _core.Tensor) and not foreign.device.startswith("cpu")
    return foreign, PLAIN if is_on_device else NUMPY


def _require_dtype(taken: Any, dtype: str, array: Any, argument: str, source: Framework) -> None:
    got = taken.dtype
    if got == (dtype if isinstance(got, str) else numpy_dtype(dtype)):
        return
    got = got if isinstance(got, str) else got.name
    if got != dtype:  # with equal names only the byte order differs, and the core swaps the bytes
        raise TypeError(
            f"{argument}: expected {dtype}, got {got}; "
            f"cast with {source.way_to(dtype, array, argument)}"
        )


def is_number(value: Any) -> bool:
    """Whether `value` is a single number of Python or NumPy."""
    return isinstance(value, (numbers.Number, np.generic))


# A class with one of these methods is an array class, whatever its framework.
_ARRAY_METHODS = ("__dlpack__", "__array__", "__arrow_c_array__", "__arrow_c_stream__")


def _is_array_class(cls: type) -> bool:
    if framework_of(cls) is not None or issubclass(cls, (memoryview, python_array.array)):
        return True
    return not issubclass(cls, np.generic) and any(hasattr(cls, name) for name in _ARRAY_METHODS)


def is_array(value: Any) -> bool:
    """Whether `value` is an array with rows: not a list, a number or an array of rank 0."""
    return _is_array_class(type(value)) and getattr(value, "ndim", 1) != 0


def _take_columns(
    columns: tuple[Any, ...], dtype: str | None, argument: str
) -> tuple[Any, Framework]:
    """The rows of a tuple of 1-D arrays, one per column; results use the first one's framework."""
    parts: list[tuple[str, Any]] = []
    home: Framework | None = None
    for at, column in enumerate(columns):
        label = f"{argument}[{at}]"
        if not is_array(column):
            raise TypeError(no_column(label, column))
        part, source = _take_as_numpy(column, label)
        _core.Tensor.wrap(part, label)  # a dtype that is not numeric raises, and names this column
        if part.ndim != 1:
            raise ValueError(no_vector(label, part.shape))
        if len(part) != len(parts[0][1] if parts else part):
            raise ValueError(
                f"{label}: expected {len(parts[0][1])} rows as {argument}[0] has, got {len(part)}"
            )
        if dtype is not None:
            _require_dtype(part, dtype, column, label, framework_of(type(column)) or NUMPY)
        parts.append((label, part))
        home = home or source
    return join_columns(parts, argument), home or NUMPY


def _take_as_numpy(array: Any, argument: str) -> tuple[NumPyArray, Framework]:
    """(NumPy array, framework of the results)."""
    taken = take_array(array, None, argument)
    if taken is None:
        return np.asarray(array), NUMPY
    rows, source = taken
    return as_numpy(rows), source


def without_arrays(values: Any, argument: str) -> Any:
    """The same nested list with each array replaced by a NumPy array, as `take_array` reads it.

    NumPy itself would read a column with nulls as floats, and would ignore the mask of a masked
    array. An array of rank 0 becomes a number, for the checks of integers in _lists.py.
    """
    if not any(map(_is_array_class, _leaf_classes(values))):
        return values
    return _read_arrays(values, argument)


_NUMBERS = {bool, int, float}


def _leaf_classes(values: Any) -> set[type]:
    """The classes of the leaves of a nested list, without bool, int and float."""
    found: set[type] = set()
    level = values if isinstance(values, (list, tuple)) else ()
    for _ in range(64):  # NumPy's limit on dimensions
        classes = set(map(type, level))
        if classes <= _NUMBERS:
            break
        lists = {cls for cls in classes if issubclass(cls, (list, tuple))}
        found |= classes - lists - _NUMBERS
        nested = level if lists == classes else [one for one in level if type(one) in lists]
        level = list(itertools.chain.from_iterable(nested))
    return found


def _read_arrays(values: Any, argument: str) -> Any:
    if isinstance(values, (list, tuple)):
        return [_read_arrays(one, f"{argument}[{at}]") for at, one in enumerate(values)]
    if not _is_array_class(type(values)):
        return values
    array = _take_as_numpy(values, argument)[0]
    return array if array.ndim else array[()]


def _take_foreign(array: Any, argument: str) -> Any:
    """Converts an object that is neither a list nor an array of a known framework."""
    if hasattr(array, "__dlpack__"):
        return _core.Tensor.from_dlpack(array, argument)
    if type(array).__name__ == "PyCapsule" or isinstance(array, (memoryview, _core.Tensor)):
        return _core.Tensor.wrap(array, argument)
    if hasattr(array, "__array__"):
        return _through_numpy(array, argument)
    try:
        return memoryview(array)
    except TypeError:
        pass
    hint = f"; pass list({argument})" if hasattr(array, "__iter__") else ""
    if hasattr(array, "__arrow_c_stream__"):
        hint = f"; pass pyarrow.table({argument})"
    elif hasattr(array, "__arrow_c_array__"):
        hint = f"; pass pyarrow.array({argument})"
    hint = "" if isinstance(array, str) else hint
    raise TypeError(
        f"{argument}: expected an array (NumPy, torch, JAX, TensorFlow, anything with __dlpack__) "
        f"or a list, got {type(array).__name__}{hint}"
    )


def _through_numpy(array: Any, argument: str) -> Any:
    """np.asarray(array). TypeError if nulls or mixed columns made it turn integers into floats."""
    plain = np.asarray(array)
    dtypes = getattr(array, "dtypes", None)
    own = [getattr(array, "dtype", None)] if dtypes is None else list(dtypes)
    integers = [str(one) for one in own if "int" in str(one).lower()]
    if plain.dtype.kind == "f" and integers:
        raise TypeError(
            f"{argument}: expected an array that NumPy reads exactly, got {type(array).__name__} "
            f"of {integers[0]} that NumPy reads as {plain.dtype}, which may round; drop its nulls, "
            f"or cast it to one dtype first"
        )
    return plain
