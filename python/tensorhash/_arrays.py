"""Arrays of every framework, in and out of the core.

Each framework is a pair: `take` hands its arrays to the core, `give` makes its arrays of the
core's memory. Neither copies. No framework is imported before the user did: an array of its own
is the proof.
"""

from __future__ import annotations

import abc
import functools
import importlib
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorhash import _core
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
            raise TypeError(
                f"{argument}: expected an array without masked entries; "
                f"pass {argument}.compressed() or {argument}.filled(...)"
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

    def take(self, array: Any, argument: str) -> Any:
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
        if array.is_sparse or array.is_quantized or str(array.layout) != "torch.strided":
            raise TypeError(f"{argument}: expected a dense tensor, got layout {array.layout}")
        if array.is_conj() or array.is_neg():
            array = array.resolve_conj().resolve_neg()
        return _core.Tensor.wrap(self._export(array), argument)

    def give(self, tensor: _core.Tensor) -> Any:
        # The old capsule cannot say "read-only", and neither can torch.
        return self._import(tensor.to_dlpack())


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
    """(what the core reads, the framework it came from), or None if `array` is a list or a number.

    With a dtype, arrays of another are refused in the words of their framework (NumPy's words are
    the core's own).
    """
    source = framework_of(type(array))
    if source is not None:
        taken = source.take(array, argument)
        if dtype is not None and source is not NUMPY:
            _require_dtype(taken, dtype, argument, source)
        return taken, source
    if isinstance(array, (list, tuple, range)) or is_number(array):
        return None
    return _take_foreign(array, argument), NUMPY


def _require_dtype(taken: Any, dtype: str, argument: str, source: Framework) -> None:
    got = taken.dtype
    if got == (dtype if isinstance(got, str) else numpy_dtype(dtype)):
        return
    got = got if isinstance(got, str) else got.name
    if got != dtype:  # equal names: the byte order differs, which the core puts right
        raise TypeError(
            f"{argument}: expected {dtype}, got {got}; "
            f"cast with {source.cast.format(argument, dtype)}"
        )


def is_number(value: Any) -> bool:
    """True for one number of Python's or NumPy's."""
    return isinstance(value, (numbers.Number, np.generic))


def _take_foreign(array: Any, argument: str) -> Any:
    """What the core can read of an object that is no list and no known framework's array."""
    if hasattr(array, "__dlpack__"):
        return _core.Tensor.from_dlpack(array, argument)
    if type(array).__name__ == "PyCapsule" or isinstance(array, (memoryview, _core.Tensor)):
        return _core.Tensor.wrap(array, argument)
    if hasattr(array, "__array__"):
        return np.asarray(array)
    try:
        return memoryview(array)
    except TypeError:
        pass
    hint = f"; pass list({argument})" if hasattr(array, "__iter__") else ""
    hint = "" if isinstance(array, str) else hint
    raise TypeError(
        f"{argument}: expected an array (NumPy, torch, JAX, TensorFlow, anything with __dlpack__) "
        f"or a list, got {type(array).__name__}{hint}"
    )
