"""Tensor: Open3D's array class, a thin layer over a NumPy array; on a device a DeviceTensor."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash import _core
from tensorhash._device import Device, usable_device
from tensorhash._dtypes import Dtype, core_dtype, name_of
from tensorhash._frameworks import Framework
from tensorhash.core._arithmetic import Arithmetic
from tensorhash.core._base import as_numpy, is_float, new_shape, parse
from tensorhash.core._creation import Creation
from tensorhash.core._elementwise import Elementwise
from tensorhash.core._exchange import Exchange
from tensorhash.core._format import tensor_text
from tensorhash.core._indexing import indices
from tensorhash.core._linalg import LinearAlgebra
from tensorhash.core._operands import same_dtype
from tensorhash.core._reductions import Reductions
from tensorhash.core.size_vector import SizeVector

if TYPE_CHECKING:
    from typing_extensions import Self

_CPU = Device("CPU:0")


def _require_fit(array: Any, wanted: Any) -> None:
    """ValueError for numbers outside an integer dtype's range; fractions are allowed."""
    if wanted.kind not in "iu" or array.size == 0:
        return
    limits = np.iinfo(wanted)
    low, high = array.min().item(), array.max().item()
    # With `not`, the comparison also catches NaN.
    if not (low > limits.min - 1 and high < limits.max + 1):
        raise ValueError(
            f"values: expected {limits.min} to {limits.max}, which {wanted} holds, "
            f"got {low} to {high}"
        )


class Tensor(Arithmetic, Elementwise, Reductions, LinearAlgebra, Creation, Exchange):
    """An n-dimensional array with Open3D's methods. The constructor copies its values.

    >>> t = Tensor([[1, 2], [3, 4]], dtype=Dtype.Float32)
    >>> t[Tensor([True, False])].shape
    SizeVector[1, 2]
    >>> np.asarray(t)          # the same memory
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """

    __slots__ = ()

    def __new__(
        cls, values: Any, dtype: Dtype | Any | None = None, device: Device | str | None = None
    ) -> Self:
        """A DeviceTensor for a device besides the CPU."""
        if device is None or usable_device(device).startswith("cpu"):
            return object.__new__(cls)
        return Tensor(values, dtype).to(device=device)  # type: ignore[return-value]

    def __init__(
        self, values: Any, dtype: Dtype | Any | None = None, device: Device | str | None = None
    ) -> None:
        wanted = None if dtype is None else parse(dtype)
        array = as_numpy(values, "values")
        if wanted is None:
            name_of(array.dtype)
            wanted = array.dtype.newbyteorder("=")
        elif isinstance(values, (list, tuple, int, float)):
            _require_fit(array, wanted)
        self._array = np.array(array, dtype=wanted, order="C", copy=True)

    # Properties.

    @property
    def shape(self) -> SizeVector:
        """The size of each dimension."""
        return SizeVector(self._array.shape)

    @property
    def strides(self) -> SizeVector:
        """The strides in elements, one per dimension."""
        return SizeVector(stride // self._array.itemsize for stride in self._array.strides)

    @property
    def dtype(self) -> Dtype:
        """The dtype of the elements."""
        return core_dtype(name_of(self._array.dtype))

    @property
    def device(self) -> Device:
        """The device of the memory."""
        return _CPU

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._array.ndim)

    @property
    def is_cpu(self) -> bool:
        """Whether the tensor is on the CPU."""
        return True

    @property
    def is_cuda(self) -> bool:
        """Whether the tensor is on a CUDA device."""
        return False

    def num_elements(self) -> int:
        """The number of elements."""
        return int(self._array.size)

    def num_dims(self) -> int:
        """The number of dimensions."""
        return self.ndim

    def is_contiguous(self) -> bool:
        """Whether the elements are contiguous in C order."""
        return bool(self._array.flags.c_contiguous)

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise ValueError(f"truth of a Tensor: expected one element, got shape {self.shape}")
        return bool(self._array)

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)

    def __index__(self) -> int:
        return operator.index(self._array)

    def item(self) -> bool | int | float:
        """The only element, as a Python number."""
        element: bool | int | float = self._array.item()
        return element

    def __repr__(self) -> str:
        address = self._array.__array_interface__["data"][0]
        return tensor_text(self._array, self.strides, str(self.dtype), str(self.device), address)

    # Elements.

    def __getitem__(self, index: Any) -> Self:
        return self._wrap(self._array[indices(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        with np.errstate(invalid="ignore"):
            self._array[indices(index)] = as_numpy(value, "value")

    def __iter__(self) -> Iterator[Self]:
        if self.ndim == 0:
            raise TypeError("a 0-d Tensor has no rows to iterate over")
        return (self[row] for row in range(len(self)))

    # Conversions, copies and views.

    def to(self, *target: Any, dtype: Any = None, device: Any = None, copy: bool = False) -> Self:
        """Converts to another dtype or device: `to(dtype, copy)`, `to(device, dtype)`.

        Shares memory if nothing changes, unless `copy` is True.
        """
        wanted, place, copy = target_of(target, dtype, device, copy)
        array = self._array
        return self._made(_cast(array, array.dtype if wanted is None else wanted, copy), place)

    def cpu(self) -> Self:
        """The tensor itself: it is on the CPU."""
        return self

    def cuda(self, device_id: int = 0) -> Self:
        """A copy on a CUDA device; RuntimeError if there is no such device."""
        return self.to(device=f"cuda:{device_id}")

    def clone(self) -> Self:
        """A contiguous copy."""
        return self._wrap(self._array.copy(order="C"))

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._array)

    def contiguous(self) -> Self:
        """The tensor itself if it is contiguous, else a contiguous copy."""
        return self if self.is_contiguous() else self.clone()

    def reshape(self, *shape: Any) -> Self:
        """Changes the shape: `reshape((-1, 1))` or `reshape(-1, 1)`. A view where possible."""
        wanted = shape[0] if len(shape) == 1 else shape
        return self._wrap(self._array.reshape(new_shape(wanted)))

    def view(self, *shape: Any) -> Self:
        """A view with another shape; ValueError if that needs a copy."""
        result = self.reshape(*shape)
        if self._array.size and not np.shares_memory(result._array, self._array):
            raise ValueError(
                f"view: a view of shape {result.shape} is not possible with strides "
                f"{self.strides}; use reshape()"
            )
        return result

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """Joins the dimensions `start_dim` to `end_dim` into one. A view where possible."""
        dims = max(self.ndim, 1)
        first, last = start_dim % dims, end_dim % dims
        if not (-dims <= start_dim < dims and -dims <= end_dim < dims and first <= last):
            raise ValueError(
                f"start_dim, end_dim: expected two of {dims} dimensions in ascending order, "
                f"got {start_dim} and {end_dim}"
            )
        extents = tuple(self.shape)
        joined = math.prod(extents[first : last + 1])
        return self.reshape((*extents[:first], joined, *extents[last + 1 :]))

    def T(self) -> Self:
        """The transpose of a tensor with at most two dimensions."""
        if self.ndim > 2:
            raise ValueError(f"T: expected at most 2 dimensions, got shape {self.shape}")
        return self._wrap(self._array.T)

    def append(self, values: Any, axis: int | None = None) -> Self:
        """A copy with `values` appended along `axis`; without an axis, both flattened."""
        added = same_dtype(self._array, values, "values")
        try:
            return self._wrap(np.append(self._array, added, axis=axis))
        except ValueError as error:
            raise ValueError(f"values: expected a shape that can be appended: {error}") from None


def target_of(target: Any, dtype: Any, device: Any, copy: bool) -> tuple[Any, Any, bool]:
    """(NumPy dtype or None, device or None, copy) of the arguments of `to`."""
    for argument in target:
        if isinstance(argument, bool):
            copy = argument
        elif isinstance(argument, Device) or (
            isinstance(argument, str)
            and argument.lower().startswith(("cpu", "cuda", "sycl", "emu"))
        ):
            device = argument
        else:
            dtype = argument
    return None if dtype is None else parse(dtype), device, copy


def _cast(array: Any, dtype: Any, copy: bool) -> Any:
    """Casts to another dtype as C++ does: drops fractions, and gives no warning for NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        if dtype == np.uint32 and is_float(array.dtype):
            # For numbers out of range, the result of NumPy's cast depends on the memory layout.
            array, copy = array.astype(np.int64), False
        return array.astype(dtype, copy=copy)


def _restore(cls: type[Tensor], array: Any) -> Tensor:
    return cls._wrap(array)


class _Core(Framework):
    name = "core"
    cast = "{0}.to(o3c.{1})"
    on_devices = True

    def take(self, array: Any, argument: str) -> Any:
        return array._for_core()

    def give(self, tensor: _core.Tensor) -> Tensor:
        return Tensor._given(tensor)


CORE = _Core()
