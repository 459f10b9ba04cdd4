"""Arrays of every framework, in and out of the core.

Each framework is a pair: `take` hands its arrays to the core, `give` makes its arrays of the
core's memory. Neither copies. No framework is imported before the user did: an array of its own
is the proof. Columns and frames of pandas, polars and Arrow are in _frames.py.
"""

from __future__ import annotations

import abc
import array as python_array
import functools
import importlib
import itertools
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._columns import join_columns
from tensorhash._dtypes import numpy_dtype


class Framework(abc.ABC):
    """How to read the arrays of one library, and how to make them."""

    name: str
    cast: str  # how its users write a cast; {0} is the argument, {1} the dtype

    def __reduce__(self) -> tuple[Any, ...]:
        """By name: pickles and copies hold the one that there is."""
        return framework, (self.name,)

    @abc.abstractmethod
    def take(self, array: Any, argument: str) -> Any:
        """What the core reads: a NumPy array, anything with a buffer, or a core tensor."""

    @abc.abstractmethod
    def give(self, tensor: _core.Tensor) -> Any:
        """An array of this library over the tensor's memory."""

    @property
    def results(self) -> Framework:
        """The framework in which the results of a call with such arrays come."""
        return self

    def way_to(self, dtype: str, array: Any, argument: str) -> str:
        """How a user of this library casts `array` to another dtype."""
        return self.cast.format(argument, dtype)


def to_numpy(tensor: _core.Tensor) -> Any:
    """A NumPy array over the tensor's memory, read-only if the tensor is."""
    array = _core.to_numpy(tensor)
    if array is None:  # a dtype that is not NumPy's own, or no memory
        array = np.asarray(tensor)
        if tensor.dtype == "bfloat16":
            array = array.view(numpy_dtype("bfloat16"))
    return array


class _NumPy(Framework):
    name = "numpy"
    cast = '{0}.astype("{1}")'

    def take(self, array: Any, argument: str) -> Any:
        if type(array) is not np.ndarray and np.ma.is_masked(array):
            raise ValueError(
                f"{argument}: expected no masked entries, got {np.ma.getmaskarray(array).sum()}; "
                f"drop them with {argument}.compressed() or fill them with {argument}.filled(...)"
            )
        return array

    def give(self, tensor: _core.Tensor) -> Any:
        return to_numpy(tensor)


class _Torch(Framework):
    name = "torch"
    cast = "{0}.to(torch.{1})"

    def __init__(self) -> None:
        dlpack: Any = importlib.import_module("torch.utils.dlpack")
        self._export: Callable[[Any], Any] = dlpack.to_dlpack
        self._import: Callable[[Any], Any] = dlpack.from_dlpack
        self._strided: Any = importlib.import_module("torch").strided

    def take(self, array: Any, argument: str) -> Any:
        if array.is_nested:
            raise TypeError(
                f"{argument}: expected one dense tensor, got a nested one; "
                f"pass torch.cat({argument}.unbind())"
            )
        if array.is_quantized:
            raise TypeError(
                f"{argument}: expected a dense tensor, got a quantized one; "
                f"pass {argument}.dequantize() or {argument}.int_repr()"
            )
        if array.layout is not self._strided:
            raise TypeError(
                f"{argument}: expected a dense tensor, got layout {array.layout}; "
                f"pass {argument}.to_dense()"
            )
        if array.device.type != "cpu":
            raise RuntimeError(
                f"{argument}: expected a tensor on the CPU, got one on {array.device}; "
                f"pass {argument}.cpu()"
            )
        if array.requires_grad:
            raise ValueError(
                f"{argument}: this tensor requires grad, which a table does not track; "
                f"pass {argument}.detach()"
            )
        if array.is_conj() or array.is_neg():
            array = array.resolve_conj().resolve_neg()
        try:
            capsule = self._export(array)
        except Exception as error:
            raise ValueError(f"{argument}: torch refused to share the memory: {error}") from error
        _require_storage(array, argument)
        return _core.Tensor.wrap(capsule, argument)

    def give(self, tensor: _core.Tensor) -> Any:
        # The old capsule cannot say "read-only", and neither can torch.
        return self._import(tensor.to_dlpack())


def _require_storage(array: Any, argument: str) -> None:
    """ValueError if a torch tensor is larger than its storage, which `resize_` can shrink or free."""
    got = array.untyped_storage().nbytes()
    offset = array.storage_offset()
    if array.is_contiguous() and got >= array.nbytes + offset * array.element_size():
        return
    steps = zip(array.shape, array.stride(), strict=True)
    last = offset + sum((extent - 1) * step for extent, step in steps)
    expected = (last + 1) * array.element_size() if array.numel() else 0
    if got < expected:
        raise ValueError(
            f"{argument}: expected a storage of at least {expected} bytes for shape "
            f"{tuple(array.shape)}, got {got}: it was freed or resized"
        )


class _Jax(Framework):
    name = "jax"
    cast = '{0}.astype("{1}")'

    def __init__(self) -> None:
        self._jax: Any = importlib.import_module("jax")

    def take(self, array: Any, argument: str) -> Any:
        if isinstance(array, self._jax.core.Tracer):
            raise TypeError(
                f"{argument}: a table cannot run inside jax.jit; call it outside, "
                f"or through jax.pure_callback"
            )
        return _core.Tensor.from_dlpack(array, argument)

    def give(self, tensor: _core.Tensor) -> Any:
        narrow = _NARROW.get(tensor.dtype)
        if narrow is not None and not self._jax.config.jax_enable_x64:
            return self._jax.numpy.asarray(_narrowed(to_numpy(tensor), narrow))
        return self._jax.dlpack.from_dlpack(tensor)

    def way_to(self, dtype: str, array: Any, argument: str) -> str:
        if dtype in _NARROW and not self._jax.config.jax_enable_x64:
            return f'np.asarray({argument}).astype("{dtype}"), or set jax_enable_x64'
        return super().way_to(dtype, array, argument)


# What JAX makes of 64 bits unless jax_enable_x64 is set.
_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32"}


def _narrowed(array: Any, dtype: str) -> Any:
    narrow = array.astype(dtype)
    if narrow.dtype.kind in "iu" and not np.array_equal(narrow, array):
        raise ValueError(
            f"some results do not fit JAX's {dtype}; set jax.config.update('jax_enable_x64', True)"
        )
    return narrow


class _TensorFlow(Framework):
    name = "tensorflow"
    cast = 'tf.cast({0}, "{1}")'

    def __init__(self) -> None:
        self._tf: Any = importlib.import_module("tensorflow")

    def take(self, array: Any, argument: str) -> Any:
        if not hasattr(array, "numpy"):
            raise TypeError(
                f"{argument}: expected an eager tensor; inside tf.function call the table "
                f"through tf.py_function"
            )
        if "CPU" not in array.device:
            raise RuntimeError(
                f"{argument}: expected a tensor on the CPU, got one on {array.device}; "
                f"copy it there first with tf.identity under tf.device('CPU:0')"
            )
        return array.numpy()

    def give(self, tensor: _core.Tensor) -> Any:
        return self._tf.experimental.dlpack.from_dlpack(tensor.to_dlpack())


NUMPY = _NumPy()


@functools.cache
def framework(name: str) -> Framework:
    """The framework of a name. It may import: a table pickled with torch needs torch again."""
    if name == "core":
        found: Framework = importlib.import_module("tensorhash.core.tensor").CORE
        return found
    if name in ("pandas", "polars", "pyarrow"):
        frames: dict[str, Framework] = importlib.import_module("tensorhash._frames").FRAMES
        return frames[name]
    made = {"numpy": lambda: NUMPY, "torch": _Torch, "jax": _Jax, "tensorflow": _TensorFlow}
    return made[name]()


# Names of the classes whose instances are arrays, with the top package that defines them.
_ARRAY_CLASSES = {
    ("numpy", "ndarray"): "numpy",
    ("torch", "Tensor"): "torch",
    ("jax", "Array"): "jax",
    ("jax", "Tracer"): "jax",
    ("jaxlib", "ArrayImpl"): "jax",
    ("tensorflow", "Tensor"): "tensorflow",
    ("tensorflow", "SymbolicTensor"): "tensorflow",
    ("tensorhash", "Tensor"): "core",
    **{("pandas", name): "pandas" for name in ("DataFrame", "Series", "Index", "ExtensionArray")},
    **{("polars", name): "polars" for name in ("DataFrame", "Series", "LazyFrame")},
    **{("pyarrow", name): "pyarrow" for name in ("Table", "RecordBatch", "ChunkedArray", "Array")},
}


_BY_CLASS: dict[type, Framework | None] = {}


def framework_of(cls: type) -> Framework | None:
    """The framework whose arrays `cls` makes; None for lists, numbers and strangers."""
    try:
        return _BY_CLASS[cls]
    except KeyError:
        return _BY_CLASS.setdefault(cls, _look_up_framework(cls))


def _look_up_framework(cls: type) -> Framework | None:
    for base in cls.__mro__:
        package = base.__module__.partition(".")[0]
        name = _ARRAY_CLASSES.get((package, base.__name__))
        if name is not None and base is not _core.Tensor:
            return framework(name)
    return None


def take_array(array: Any, dtype: str | None, argument: str) -> tuple[Any, Framework] | None:
    """(what the core reads, the framework of the results), or None if `array` is a list or a number.

    With a dtype, arrays of another are refused in the words of their framework (NumPy's words are
    the core's own). A tuple that holds an array is a tuple of columns.
    """
    source = framework_of(type(array))
    if source is not None:
        taken = source.take(array, argument)
        if dtype is not None and source is not NUMPY:
            _require_dtype(taken, dtype, array, argument, source)
        return taken, source.results
    if isinstance(array, tuple) and any(map(_is_array, array)):
        return _take_columns(array, dtype, argument)
    if isinstance(array, (list, tuple, range)) or is_number(array):
        return None
    return _take_foreign(array, argument), NUMPY


def _require_dtype(taken: Any, dtype: str, array: Any, argument: str, source: Framework) -> None:
    got = taken.dtype
    if got == (dtype if isinstance(got, str) else numpy_dtype(dtype)):
        return
    got = got if isinstance(got, str) else got.name
    if got != dtype:  # equal names: the byte order differs, which the core puts right
        raise TypeError(
            f"{argument}: expected {dtype}, got {got}; "
            f"cast with {source.way_to(dtype, array, argument)}"
        )


def is_number(value: Any) -> bool:
    """True for one number of Python's or NumPy's."""
    return isinstance(value, (numbers.Number, np.generic))


# Attributes of the classes that are arrays, whatever framework they belong to.
_ARRAY_METHODS = ("__dlpack__", "__array__", "__arrow_c_array__", "__arrow_c_stream__")


def _is_array_class(cls: type) -> bool:
    if framework_of(cls) is not None or issubclass(cls, (memoryview, python_array.array)):
        return True
    return not issubclass(cls, np.generic) and any(hasattr(cls, name) for name in _ARRAY_METHODS)


def _is_array(value: Any) -> bool:
    """Whether it is an array with rows: neither a list nor a number, nor an array of rank 0."""
    return _is_array_class(type(value)) and getattr(value, "ndim", 1) != 0


def _take_columns(
    columns: tuple[Any, ...], dtype: str | None, argument: str
) -> tuple[Any, Framework]:
    """The rows of a tuple of 1-D arrays, one per column; results come as of the first."""
    parts: list[tuple[str, Any]] = []
    home: Framework | None = None
    for at, column in enumerate(columns):
        label = f"{argument}[{at}]"
        if not _is_array(column):
            raise TypeError(
                f"{label}: expected an array, since a tuple that holds arrays has one per column, "
                f"got {type(column).__name__}; for rows pass a list"
            )
        part, source = _take_as_numpy(column, label)
        _core.Tensor.wrap(part, label)  # refuses what is no number, by its place
        if part.ndim != 1:
            raise ValueError(
                f"{label}: expected a 1-D array, since a tuple of arrays has one per column, "
                f"got shape {part.shape}; for rows pass a list"
            )
        if len(part) != len(parts[0][1] if parts else part):
            raise ValueError(
                f"{label}: expected {len(parts[0][1])} rows as {argument}[0] has, got {len(part)}"
            )
        if dtype is not None:
            _require_dtype(part, dtype, column, label, framework_of(type(column)) or NUMPY)
        parts.append((label, part))
        home = home or source
    return join_columns(parts, argument), home or NUMPY


def _take_as_numpy(array: Any, argument: str) -> tuple[Any, Framework]:
    """(a NumPy array of what an array holds, the framework of the results)."""
    taken = take_array(array, None, argument)
    if taken is None:
        return np.asarray(array), NUMPY
    rows, source = taken
    return (to_numpy(rows) if isinstance(rows, _core.Tensor) else np.asarray(rows)), source


def without_arrays(values: Any, argument: str) -> Any:
    """A list with NumPy's arrays in place of the arrays in it, each read as `take_array` does.

    NumPy alone would read a column with nulls as floats, and a masked array without its mask.
    """
    if not any(map(_is_array_class, _leaf_classes(values))):
        return values
    return _read_arrays(values, argument)


_NUMBERS = {bool, int, float}


def _leaf_classes(values: Any) -> set[type]:
    """The classes of all that is in a list and neither a list nor one of Python's numbers."""
    found: set[type] = set()
    level = values if isinstance(values, (list, tuple)) else ()
    for _ in range(64):  # as many dimensions as NumPy has
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
    return _take_as_numpy(values, argument)[0] if _is_array_class(type(values)) else values


def _take_foreign(array: Any, argument: str) -> Any:
    """What the core can read of an object that is no list and no known framework's array."""
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
    """np.asarray(array), unless that made floats of integers: of nulls, or of mixed columns."""
    plain = np.asarray(array)
    dtypes = getattr(array, "dtypes", None)
    own = [getattr(array, "dtype", None)] if dtypes is None else list(dtypes)
    integers = [str(one) for one in own if "int" in str(one).lower()]
    if plain.dtype.kind == "f" and integers:
        raise TypeError(
            f"{argument}: expected an array that NumPy reads as it is, got {type(array).__name__} "
            f"of {integers[0]} that NumPy reads as {plain.dtype}, which may round; drop its nulls, "
            f"or cast it to one dtype first"
        )
    return plain
