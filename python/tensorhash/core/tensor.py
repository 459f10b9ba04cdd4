"""Tensor: Open3D's array, thin over a NumPy array on the CPU."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash import _core
from tensorhash._arrays import Framework, is_number, take_array, to_numpy, without_arrays
from tensorhash._device import Device, usable_device
from tensorhash._dtypes import Dtype, core_dtype, name_of, numpy_dtype, parse_dtype
from tensorhash._table import parse_shape
from tensorhash.core._format import tensor_text
from tensorhash.core._operators import Operators
from tensorhash.core.size_vector import SizeVector

if TYPE_CHECKING:
    from typing_extensions import Self

_CPU = Device("CPU:0")


def _as_numpy(value: Any, argument: str) -> Any:
    """The array of a Tensor, another framework's array or a list; shares memory where it can."""
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, (list, tuple, range)) or is_number(value):
        return np.asarray(without_arrays(value, argument))
    taken = take_array(value, None, argument)
    rows = value if taken is None else taken[0]
    return to_numpy(rows) if isinstance(rows, _core.Tensor) else np.asarray(rows)


def _parse(dtype: Any) -> Any:
    return numpy_dtype(parse_dtype(dtype, "dtype")[0])


def _require_fit(array: Any, wanted: Any) -> None:
    """Numbers from a list may lose their fraction to an integer dtype, as in Open3D; never more."""
    if wanted.kind not in "iu" or array.size == 0:
        return
    limits = np.iinfo(wanted)
    low, high = array.min(), array.max()
    # Written so that NaN does not fit either.
    if not (low > limits.min - 1 and high < limits.max + 1):
        raise ValueError(
            f"values: expected {limits.min} to {limits.max}, which {wanted} holds, "
            f"got {low} to {high}"
        )


def _new_shape(shape: Any) -> tuple[int, ...]:
    return parse_shape(SizeVector(shape), "shape")


class Tensor(Operators):
    """An n-dimensional array with Open3D's methods; copies what it is made of.

    >>> t = Tensor([[1, 2], [3, 4]], dtype=Dtype.Float32)
    >>> t[Tensor([True, False])].shape
    SizeVector[1, 2]
    >>> np.asarray(t)          # the same memory
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """

    __slots__ = ("_array",)

    # Beside a NumPy array the operators of the Tensor decide.
    __array_priority__ = 100

    def __init__(
        self, values: Any, dtype: Dtype | Any | None = None, device: Device | str | None = None
    ) -> None:
        if device is not None:
            usable_device(device)
        wanted = None if dtype is None else _parse(dtype)
        array = _as_numpy(values, "values")
        if wanted is None:
            name_of(array.dtype)
            wanted = array.dtype.newbyteorder("=")
        elif isinstance(values, (list, tuple, int, float)):
            _require_fit(array, wanted)
        self._array = np.array(array, dtype=wanted, order="C", copy=True)

    @classmethod
    def _wrap(cls, array: Any) -> Self:
        self = cls.__new__(cls)
        self._array = array
        return self

    # Made of nothing.

    @classmethod
    def _made(cls, array: Any, device: Any) -> Self:
        if device is not None:
            usable_device(device)
        return cls._wrap(array)

    @classmethod
    def empty(cls, shape: Any, dtype: Any = Dtype.Float32, device: Any = None) -> Self:
        """A tensor whose elements are not set."""
        return cls._made(np.empty(_new_shape(shape), _parse(dtype)), device)

    @classmethod
    def zeros(cls, shape: Any, dtype: Any = Dtype.Float32, device: Any = None) -> Self:
        """A tensor of zeros."""
        return cls._made(np.zeros(_new_shape(shape), _parse(dtype)), device)

    @classmethod
    def ones(cls, shape: Any, dtype: Any = Dtype.Float32, device: Any = None) -> Self:
        """A tensor of ones."""
        return cls._made(np.ones(_new_shape(shape), _parse(dtype)), device)

    @classmethod
    def full(
        cls, shape: Any, fill_value: Any, dtype: Any = Dtype.Float32, device: Any = None
    ) -> Self:
        """A tensor of one value."""
        return cls._made(np.full(_new_shape(shape), fill_value, _parse(dtype)), device)

    @classmethod
    def eye(cls, n: int, dtype: Any = Dtype.Float64, device: Any = None) -> Self:
        """The n x n identity."""
        return cls._made(np.eye(n, dtype=_parse(dtype)), device)

    @classmethod
    def arange(
        cls, start: Any, stop: Any = None, step: Any = None, dtype: Any = None, device: Any = None
    ) -> Self:
        """start, start + step, ... below stop; `arange(n)` counts from 0."""
        first, end = (0, start) if stop is None else (start, stop)
        wanted = None if dtype is None else _parse(dtype)
        return cls._made(np.arange(first, end, 1 if step is None else step, dtype=wanted), device)

    # From and to others, without a copy.

    @classmethod
    def from_numpy(cls, array: Any) -> Self:
        """A tensor over the memory of a NumPy array."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"array: expected a NumPy array, got {type(array).__name__}")
        name_of(array.dtype)
        return cls._wrap(array)

    @classmethod
    def from_dlpack(cls, source: Any) -> Self:
        """A tensor over the memory of a DLPack capsule or of an object with `__dlpack__`."""
        return cls._wrap(to_numpy(_core.Tensor.from_dlpack(source, "source")))

    def to_dlpack(self) -> Any:
        """A "dltensor" capsule over this memory, for `torch.utils.dlpack.from_dlpack`."""
        return self._exported().to_dlpack()

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return self._exported().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def _exported(self) -> _core.Tensor:
        return _core.Tensor.wrap(self._array, "tensor")

    def numpy(self) -> Any:
        """A NumPy array over this memory."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        wanted = self._array.dtype if dtype is None else np.dtype(dtype)
        if wanted == self._array.dtype:
            return self._array.copy() if copy else self._array
        if copy is False:
            raise ValueError(f"copy=False: {self._array.dtype} cannot become {wanted} without one")
        return self._array.astype(wanted)

    # What it is.

    @property
    def shape(self) -> SizeVector:
        """The extents."""
        return SizeVector(self._array.shape)

    @property
    def strides(self) -> SizeVector:
        """Elements from one entry to the next, per dimension."""
        return SizeVector(stride // self._array.itemsize for stride in self._array.strides)

    @property
    def dtype(self) -> Dtype:
        """The type of the elements."""
        return core_dtype(name_of(self._array.dtype))

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return _CPU

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._array.ndim)

    @property
    def is_cpu(self) -> bool:
        """True: a Tensor is on the CPU."""
        return True

    @property
    def is_cuda(self) -> bool:
        """False: a Tensor is on the CPU."""
        return False

    def num_elements(self) -> int:
        """Elements in all."""
        return int(self._array.size)

    def num_dims(self) -> int:
        """The number of dimensions."""
        return self.ndim

    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other in C order."""
        return bool(self._array.flags.c_contiguous)

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        return bool(self._array)

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)

    def __index__(self) -> int:
        return operator.index(self._array)

    def item(self) -> Any:
        """The one element, as a Python number."""
        return self._array.item()

    def __repr__(self) -> str:
        return tensor_text(self._array, str(self.dtype), str(self.device))

    # Elements.

    def __getitem__(self, index: Any) -> Self:
        return self._wrap(self._array[_indices(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[_indices(index)] = _as_numpy(value, "value")

    def __iter__(self) -> Iterator[Self]:
        if self.ndim == 0:
            raise TypeError("a 0-d Tensor has no rows to iterate over")
        return (self[row] for row in range(len(self)))

    # The same elements otherwise.

    def to(self, *target: Any, dtype: Any = None, device: Any = None, copy: bool = False) -> Self:
        """The tensor as another dtype or on another device: `to(dtype, copy)`, `to(device, dtype)`.

        Shares memory if nothing changes, unless `copy`.
        """
        for argument in target:
            if isinstance(argument, bool):
                copy = argument
            elif isinstance(argument, Device) or (
                isinstance(argument, str) and argument.lower().startswith(("cpu", "cuda", "sycl"))
            ):
                device = argument
            else:
                dtype = argument
        if device is not None:
            usable_device(device)
        wanted = self._array.dtype if dtype is None else _parse(dtype)
        return self._wrap(self._array.astype(wanted, copy=copy))

    def cpu(self) -> Self:
        """The tensor itself: it is on the CPU."""
        return self

    def cuda(self, device_id: int = 0) -> Self:
        """The tensor on a CUDA device."""
        usable_device(f"cuda:{device_id}")
        return self

    def clone(self) -> Self:
        """A contiguous copy."""
        return self._wrap(self._array.copy(order="C"))

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._array)

    def contiguous(self) -> Self:
        """The tensor itself if it is contiguous, else a copy that is."""
        return self if self.is_contiguous() else self.clone()

    def reshape(self, *shape: Any) -> Self:
        """Another shape, `reshape((-1, 1))` or `reshape(-1, 1)`; a view where possible."""
        wanted = shape[0] if len(shape) == 1 else shape
        return self._wrap(self._array.reshape(_new_shape(wanted)))

    def view(self, *shape: Any) -> Self:
        """The same memory under another shape; ValueError if that needs a copy."""
        result = self.reshape(*shape)
        if self._array.size and not np.shares_memory(result._array, self._array):
            raise ValueError(f"view: strides {self.strides} allow no view of shape {result.shape}")
        return result

    def flatten(self) -> Self:
        """The elements in one dimension; a view where possible."""
        return self.reshape(-1)

    def T(self) -> Self:
        """The transpose of a tensor of at most two dimensions."""
        if self.ndim > 2:
            raise ValueError(f"T: expected at most 2 dimensions, got shape {self.shape}")
        return self._wrap(self._array.T)

    def append(self, values: Any, axis: int | None = None) -> Self:
        """A copy with `values` joined on along `axis`; without an axis, flattened."""
        return self._wrap(np.append(self._array, _as_numpy(values, "values"), axis=axis))


def _indices(index: Any) -> Any:
    """The index as NumPy takes it; the ellipsis keeps a single element a 0-d view, not a copy."""
    parts = index if isinstance(index, tuple) else (index,)
    plain = tuple(_one_index(part) for part in parts)
    return plain if any(part is Ellipsis for part in plain) else (*plain, Ellipsis)


def _one_index(part: Any) -> Any:
    if part is None or part is Ellipsis or isinstance(part, (int, slice)):
        return part
    array = _as_numpy(part, "index")
    if array.dtype.kind == "f" and array.size == 0:
        array = array.astype(np.int64)  # an empty list selects nothing
    if array.dtype.kind not in "biu":
        raise IndexError(f"index: expected integers or a mask, got {array.dtype}")
    return array


def _restore(cls: type[Tensor], array: Any) -> Tensor:
    return cls._wrap(array)


class _Core(Framework):
    name = "core"
    cast = "{0}.to(o3c.{1})"

    def take(self, array: Any, argument: str) -> Any:
        return array._array

    def give(self, tensor: _core.Tensor) -> Any:
        return Tensor._wrap(to_numpy(tensor))


CORE = _Core()
