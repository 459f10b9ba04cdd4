"""Tensors on a device: made, moved, shared, viewed and indexed there; no arithmetic."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._device import Device, usable_device
from tensorhash._dtypes import Dtype, core_dtype, name_of, numpy_dtype
from tensorhash._frameworks import copied_to_numpy
from tensorhash._types import NumPyArray
from tensorhash.core._base import Base, for_core, new_shape
from tensorhash.core._format import tensor_text
from tensorhash.core._views import View, broadcast, reshaped, resolved, view_of
from tensorhash.core.size_vector import SizeVector
from tensorhash.core.tensor import Tensor, target_of


class DeviceTensor(Tensor):
    """A Tensor on a device besides the CPU. Its methods queue work there and rarely wait.

    What is not here needs the elements, and is refused.
    """

    __slots__ = ("_held",)

    _held: _core.Tensor

    def __new__(cls, values: Any, dtype: Any = None, device: Any = None) -> Any:
        """A copy of `values` on the device."""
        return Tensor(values, dtype).to(device=device)

    def __init__(self, values: Any, dtype: Any = None, device: Any = None) -> None:
        """`__new__` has made the tensor."""

    @classmethod
    def _wrap(cls, array: Any) -> Any:
        """A Tensor on the CPU, also for class methods of this class, such as `zeros`."""
        return Tensor._wrap(array)

    @classmethod
    def _hold(cls, held: _core.Tensor) -> DeviceTensor:
        self = object.__new__(cls)
        self._held = held
        return self

    def __getattr__(self, name: str) -> Any:
        """Every method that computes asks for the NumPy array, which only the CPU has."""
        if name == "_array":
            raise RuntimeError(
                f"tensor: expected one on the CPU, got one on {self.device}, where Tensors cannot "
                f"compute; use torch.from_dlpack(t) there, or copy it with .cpu()"
            )
        raise AttributeError(f"a Tensor has no attribute {name!r}")

    # Properties.

    @property
    def shape(self) -> SizeVector:
        """The size of each dimension."""
        return SizeVector(self._held.shape)

    @property
    def strides(self) -> SizeVector:
        """The strides in elements, one per dimension."""
        bytes_each = numpy_size(self._held.dtype)
        return SizeVector(stride // bytes_each for stride in _core.byte_strides(self._held))

    @property
    def dtype(self) -> Dtype:
        """The dtype of the elements."""
        return core_dtype(self._held.dtype)

    @property
    def device(self) -> Device:
        """The device of the memory."""
        return Device(self._held.device)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._held.shape)

    @property
    def is_cpu(self) -> bool:
        """False: the tensor is on a device."""
        return False

    @property
    def is_cuda(self) -> bool:
        """Whether the tensor is on a CUDA device."""
        return self.device.is_cuda()

    def num_elements(self) -> int:
        """The number of elements."""
        return math.prod(self._held.shape)

    def is_contiguous(self) -> bool:
        """Whether the elements are contiguous in C order."""
        return _core.is_contiguous(self._held)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a 0-d Tensor has no length")
        return self._held.shape[0]

    # Elements: these copy to the CPU.

    def __bool__(self) -> bool:
        return bool(self.cpu())

    def __int__(self) -> int:
        return int(self.cpu())

    def __float__(self) -> float:
        return float(self.cpu())

    def __index__(self) -> int:
        return operator.index(self.cpu())

    def item(self) -> bool | int | float:
        """The only element, as a Python number."""
        element: bool | int | float = self.cpu().item()
        return element

    def __repr__(self) -> str:
        array = copied_to_numpy(self._held)
        address = _core.address(self._held)
        return tensor_text(array, self.strides, str(self.dtype), str(self.device), address)

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("a 0-d Tensor has no rows to iterate over")
        return (self[row] for row in range(len(self)))

    # Indexing.

    def __getitem__(self, index: Any) -> Any:
        selected = view_of(self._held, index)
        if selected.rows is None:
            return self._hold(selected.held)
        taken = _core.take_rows(selected.held, selected.rows)
        return self._hold(selected.back(taken))

    def __setitem__(self, index: Any, value: Any) -> None:
        selected = view_of(self._held, index)
        values = self._of_own_dtype(value)
        if selected.rows is None:
            _core.assign(selected.held, broadcast(values, tuple(selected.held.shape)))
        else:
            self._put(selected, values)

    def _put(self, selected: View, values: _core.Tensor) -> None:
        assert selected.rows is not None
        count = selected.rows.shape[0]
        target = selected.held
        shape = selected.shape_back((count, *target.shape[1:]))
        rows = selected.front(broadcast(values, shape))
        if _core.is_contiguous(target):
            _core.put_rows(target, selected.rows, rows)
            return
        changed = _core.clone(target)
        _core.put_rows(changed, selected.rows, rows)
        _core.assign(target, changed)

    def _of_own_dtype(self, value: Any) -> _core.Tensor:
        """`value` on this device, in this dtype."""
        dtype = self._held.dtype
        array = for_core(value, "value")
        if isinstance(array, _core.Tensor):
            return array if array.dtype == dtype else _core.cast(array, dtype)
        cast = Tensor._wrap(array).to(dtype=core_dtype(dtype))
        return _core.Tensor.wrap(cast.numpy(), "value").to(self._held.device)

    # Conversions, copies and views.

    def to(self, *target: Any, dtype: Any = None, device: Any = None, copy: bool = False) -> Any:
        """Converts to another dtype or device: `to(dtype, copy)`, `to(device, dtype)`.

        Shares memory if nothing changes, unless `copy` is True.
        """
        wanted, place, copy = target_of(target, dtype, device, copy)
        held = self._held
        if wanted is not None and name_of(wanted) != held.dtype:
            held, copy = _core.cast(held, name_of(wanted)), False
        where = held.device if place is None else usable_device(place)
        if where != held.device:
            return Tensor._given(held.to(where))
        return self._hold(_core.clone(held) if copy else held)

    def cpu(self) -> Any:
        """A copy on the CPU."""
        return self.to(device="cpu")

    def clone(self) -> Any:
        """A contiguous copy."""
        return self._hold(_core.clone(self._held))

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy on the CPU: the other process may have no such device."""
        restored: tuple[Any, ...] = self.cpu().__reduce__()
        return restored

    def contiguous(self) -> Any:
        """The tensor itself if it is contiguous, else a contiguous copy."""
        return self if self.is_contiguous() else self.clone()

    def reshape(self, *shape: Any) -> Any:
        """Changes the shape: `reshape((-1, 1))` or `reshape(-1, 1)`. A view where possible."""
        wanted = resolved(new_shape(shape[0] if len(shape) == 1 else shape), self._held.shape)
        held = reshaped(self._held, wanted)
        return self._hold(_core.reshape(_core.clone(self._held), wanted) if held is None else held)

    def view(self, *shape: Any) -> Any:
        """A view with another shape; ValueError if that needs a copy."""
        wanted = resolved(new_shape(shape[0] if len(shape) == 1 else shape), self._held.shape)
        held = reshaped(self._held, wanted)
        if held is None:
            raise ValueError(
                f"view: a view of shape {SizeVector(wanted)} is not possible with strides "
                f"{self.strides}; use reshape()"
            )
        return self._hold(held)

    def T(self) -> Any:
        """The transpose of a tensor with at most two dimensions."""
        if self.ndim > 2:
            raise ValueError(f"T: expected at most 2 dimensions, got shape {self.shape}")
        strides = _core.byte_strides(self._held)
        return self._hold(_core.view(self._held, self._held.shape[::-1], strides[::-1], 0))

    # Exchange.

    def _exported(self) -> _core.Tensor:
        return self._held

    def _for_core(self) -> _core.Tensor:
        return self._held

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._held.__dlpack_device__()

    def numpy(self) -> NumPyArray:
        """Refused: NumPy's arrays are on the CPU."""
        raise RuntimeError(
            f"numpy: expected a tensor on the CPU, got one on {self.device}; copy it with .cpu()"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumPyArray:
        return self.numpy()

    def save(self, file_name: Any) -> None:
        """Writes a .npy file with exactly this name. On failure the old file does not change."""
        self.cpu().save(file_name)


def numpy_size(dtype: str) -> int:
    """Bytes of an element."""
    return 2 if dtype == "bfloat16" else int(numpy_dtype(dtype).itemsize)


def on_device(array: Any, device: str) -> DeviceTensor:
    """A copy of a NumPy array on a device."""
    dense = np.ascontiguousarray(array).reshape(array.shape)
    return DeviceTensor._hold(_core.Tensor.wrap(dense, "values").to(device))


Base._on_device = staticmethod(on_device)
Base._over = staticmethod(DeviceTensor._hold)
