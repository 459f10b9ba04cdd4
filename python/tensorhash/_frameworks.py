"""Converts between arrays of each framework and the core's tensors.

`take` passes a framework's array to the core; `give` returns an array over the core's memory. A
framework is imported only when one of its arrays arrives, so the user has imported it already.
Columns and frames of pandas, polars and Arrow are in _frames.py.
"""

from __future__ import annotations

import abc
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._dtypes import numpy_dtype
from tensorhash._types import Array, NumPyArray


class Framework(abc.ABC):
    """Reads and makes the arrays of one library."""

    name: str
    cast: str  # the expression of a cast, for messages; {0} is the argument, {1} the dtype
    on_devices: bool = False  # whether its arrays can be on a device

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles by name, so that each framework keeps a single instance."""
        return framework, (self.name,)

    @abc.abstractmethod
    def take(self, array: Any, argument: str) -> Any:
        """What the core can read: a NumPy array, a buffer, or a core tensor."""

    @abc.abstractmethod
    def give(self, tensor: _core.Tensor) -> Array:
        """An array of this library over the tensor's memory."""

    def shared(self, array: Any, argument: str) -> _core.Tensor:
        """A core tensor over the array's memory, for an array with `__dlpack__` or a capsule."""
        return _core.Tensor.from_dlpack(array, argument)

    @property
    def results(self) -> Framework:
        """The framework of the results of a call with such arrays."""
        return self

    def way_to(self, dtype: str, array: Any, argument: str) -> str:
        """The expression that casts `array` to `dtype` in this library, for messages."""
        return self.cast.format(argument, dtype)


def to_numpy(tensor: _core.Tensor) -> NumPyArray:
    """A NumPy array over the tensor's memory, read-only if the tensor is."""
    array: Any = _core.to_numpy(tensor)
    if array is None:  # bfloat16, an empty tensor, or an unknown NumPy
        array = np.asarray(tensor)
        if tensor.dtype == "bfloat16":
            array = array.view(numpy_dtype("bfloat16"))
    made: NumPyArray = array
    return made


def as_numpy(rows: Any) -> NumPyArray:
    """A NumPy array of what `take` returned. Shares its memory where possible."""
    return to_numpy(rows) if isinstance(rows, _core.Tensor) else np.asarray(rows)


def copied_to_numpy(tensor: _core.Tensor) -> NumPyArray:
    """The same for a tensor that may be on a device: then it is copied to the CPU."""
    return to_numpy(tensor.cpu())


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

    def give(self, tensor: _core.Tensor) -> Array:
        return to_numpy(tensor)


class _Plain(Framework):
    """The core's own tensors: for arrays on a device that have no known framework."""

    name = "tensorhash"
    cast = '{0}.astype("{1}")'
    on_devices = True

    def take(self, array: Any, argument: str) -> Any:
        return _core.Tensor.wrap(array, argument)

    def give(self, tensor: _core.Tensor) -> Array:
        same: Any = tensor
        given: Array = same
        return given


class _Torch(Framework):
    name = "torch"
    cast = "{0}.to(torch.{1})"
    on_devices = True

    def __init__(self) -> None:
        dlpack: Any = importlib.import_module("torch.utils.dlpack")
        self._export: Callable[[Any], Any] = dlpack.to_dlpack
        self._import: Callable[[Any], Array] = dlpack.from_dlpack
        self._torch: Any = importlib.import_module("torch")

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
        if array.layout is not self._torch.strided:
            raise TypeError(
                f"{argument}: expected a dense tensor, got layout {array.layout}; "
                f"pass {argument}.to_dense()"
            )
        if array.requires_grad:
            raise ValueError(
                f"{argument}: this tensor requires grad, which a table does not track; "
                f"pass {argument}.detach()"
            )
        if array.is_conj() or array.is_neg():
            array = array.resolve_conj().resolve_neg()
        if array.device.type != "cpu":
            if not _core.device_count(array.device.type):
                raise RuntimeError(
                    f"{argument}: expected a tensor on the CPU, got one on {array.device}; "
                    f"pass {argument}.cpu()"
                )
            require_storage(array, argument)
            return self.shared(array, argument)
        try:
            capsule = self._export(array)
        except Exception as error:
            raise ValueError(f"{argument}: torch refused to share the memory: {error}") from error
        require_storage(array, argument)
        return _core.Tensor.wrap(capsule, argument)

    def give(self, tensor: _core.Tensor) -> Array:
        if not tensor.device.startswith("cpu"):
            return self._import(tensor)  # torch says which stream is to wait for the tensor
        # A legacy capsule: neither it nor torch can mark memory as read-only.
        return self._import(tensor.to_dlpack())

    def shared(self, array: Any, argument: str) -> _core.Tensor:
        """The owner's stream is torch's current one, on which torch also frees the memory."""
        if array.is_neg():  # torch shares the memory as it is
            raise ValueError(
                f"{argument}: expected a tensor with its numbers in memory, got one with a lazy "
                f"minus sign; pass {argument}.resolve_neg()"
            )
        stream = self._stream(array.device)
        if stream is None:
            return _core.Tensor.from_dlpack(array, argument)
        with self._torch.cuda.device(array.device):  # torch shares memory of this device only
            return _core.Tensor.from_dlpack(array, argument, stream)

    def _stream(self, device: Any) -> int | None:
        """torch's current stream; DLPack's 1 is CUDA's 0."""
        if device.type != "cuda":
            return None
        stream: int = self._torch.cuda.current_stream(device).cuda_stream
        return stream or 1


def require_storage(array: Any, argument: str) -> None:
    """ValueError if a torch tensor is larger than its storage, which `resize_` can shrink."""
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
    on_devices = True

    def __init__(self) -> None:
        self._jax: Any = importlib.import_module("jax")

    def take(self, array: Any, argument: str) -> Any:
        if isinstance(array, self._jax.core.Tracer):
            raise TypeError(
                f"{argument}: a table cannot run inside jax.jit; call it outside, "
                f"or through jax.pure_callback"
            )
        return _core.Tensor.from_dlpack(array, argument)

    def give(self, tensor: _core.Tensor) -> Array:
        narrow = _NARROW.get(tensor.dtype)
        given: Array
        if narrow is not None and not self._jax.config.jax_enable_x64:
            given = self._jax.numpy.asarray(_narrowed(copied_to_numpy(tensor), narrow))
        else:
            given = self._jax.dlpack.from_dlpack(tensor)
        return given

    def way_to(self, dtype: str, array: Any, argument: str) -> str:
        if dtype in _NARROW and not self._jax.config.jax_enable_x64:
            return f'np.asarray({argument}).astype("{dtype}"), or set jax_enable_x64'
        return super().way_to(dtype, array, argument)


# JAX has no 64-bit dtypes unless jax_enable_x64 is set, and uses these instead.
_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32"}


def _narrowed(array: NumPyArray, dtype: str) -> NumPyArray:
    narrow = array.astype(dtype)
    if narrow.dtype.kind in "iu" and not np.array_equal(narrow, array):
        raise ValueError(
            f"some results do not fit JAX's {dtype}; call jax.config.update('jax_enable_x64', True)"
        )
    return narrow


class _CuPy(Framework):
    name = "cupy"
    cast = '{0}.astype("{1}")'
    on_devices = True

    def __init__(self) -> None:
        self._cupy: Any = importlib.import_module("cupy")

    def take(self, array: Any, argument: str) -> Any:
        return self.shared(array, argument)

    def shared(self, array: Any, argument: str) -> _core.Tensor:
        """The owner's stream is CuPy's current one, on which CuPy also frees the memory."""
        stream: int = self._cupy.cuda.get_current_stream().ptr
        return _core.Tensor.from_dlpack(array, argument, stream or 1)

    def give(self, tensor: _core.Tensor) -> Array:
        if tensor.device.startswith("cpu"):
            return to_numpy(tensor)
        given: Array = self._cupy.from_dlpack(tensor)
        return given


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

    def give(self, tensor: _core.Tensor) -> Array:
        given: Array = self._tf.experimental.dlpack.from_dlpack(tensor.to_dlpack())
        return given


NUMPY: Framework = _NumPy()
PLAIN: Framework = _Plain()


@functools.cache
def framework(name: str) -> Framework:
    """The framework with this name. Imports it: unpickling a table of torch needs torch."""
    if name == "core":
        found: Framework = importlib.import_module("tensorhash.core.tensor").CORE
        return found
    if name in ("pandas", "polars", "pyarrow"):
        frames: dict[str, Framework] = importlib.import_module("tensorhash._frames").FRAMES
        return frames[name]
    if name in (NUMPY.name, PLAIN.name):
        return NUMPY if name == NUMPY.name else PLAIN
    made: dict[str, type[Framework]] = {
        "torch": _Torch,
        "jax": _Jax,
        "cupy": _CuPy,
        "tensorflow": _TensorFlow,
    }
    return made[name]()


# The framework of each array class, by (top-level package, class name).
_ARRAY_CLASSES = {
    ("numpy", "ndarray"): "numpy",
    ("torch", "Tensor"): "torch",
    ("jax", "Array"): "jax",
    ("jax", "Tracer"): "jax",
    ("jaxlib", "ArrayImpl"): "jax",
    ("cupy", "ndarray"): "cupy",
    ("tensorflow", "Tensor"): "tensorflow",
    ("tensorflow", "SymbolicTensor"): "tensorflow",
    ("tensorhash", "Tensor"): "core",
    **{("pandas", name): "pandas" for name in ("DataFrame", "Series", "Index", "ExtensionArray")},
    **{("polars", name): "polars" for name in ("DataFrame", "Series", "LazyFrame")},
    **{("pyarrow", name): "pyarrow" for name in ("Table", "RecordBatch", "ChunkedArray", "Array")},
}


_BY_CLASS: dict[type, Framework | None] = {}


def framework_of(cls: type) -> Framework | None:
    """The framework of an array class; None for lists, numbers and unknown classes."""
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
