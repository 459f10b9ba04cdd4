"""The common base of all tables: the methods that need only keys.

Over 400 lines, because each method has an example.
"""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import numpy as np

from tensorhash import _core, _files
from tensorhash._arguments import element_text, integer, parse_seed, parse_shape
from tensorhash._arrays import is_number, take_array
from tensorhash._device import usable_device
from tensorhash._dtypes import parse_dtype
from tensorhash._frameworks import Framework, framework, to_numpy
from tensorhash._lists import array_of, rows_of
from tensorhash._types import ArrayLike, ArrayT, DeviceLike, DtypeLike, Element, ShapeLike

if TYPE_CHECKING:
    from typing_extensions import Self

# Every NumPy batch uses it, so skip the lookup of the framework.
_GIVE_NUMPY: Any = to_numpy


class Table(Generic[ArrayT]):
    """A set of keys, each at a buffer index. The private base of all tables."""

    _suffix: ClassVar[str] = ".thash"
    _default_framework: ClassVar[str] = "numpy"

    # The core's tables have the same methods but no common base; a subclass may hold another table.
    _table: _core.HashMap
    _framework: Framework
    _key: Element

    def _create(
        self,
        init_capacity: int,
        key: tuple[DtypeLike, ShapeLike],
        values: list[tuple[DtypeLike, ShapeLike]],
        device: DeviceLike,
        seed: int | None = None,
    ) -> None:
        """Parses the arguments and makes the core's table."""
        homes: set[str | None] = set()

        def element(dtype: DtypeLike, shape: ShapeLike, prefix: str) -> Element:
            name, home = parse_dtype(dtype, f"{prefix}_dtype")
            homes.add(home)
            return name, parse_shape(shape, f"{prefix}_element_shape")

        rows = integer(init_capacity, "init_capacity")
        key_element = element(*key, "key")
        value_elements = [element(*value, "value") for value in values]
        table = self._make(rows, key_element, value_elements, device, parse_seed(seed))
        home = next((name for name in ("torch", "core") if name in homes), self._default_framework)
        self._hold(table, framework(home))

    def _make(
        self, rows: int, key: Element, values: list[Element], device: Any, seed: int | None
    ) -> Any:
        """Makes the core's table."""
        return _core.HashMap(rows, key, values, usable_device(device), seed)

    def _hold(self, table: Any, home: Framework) -> None:
        """Wraps the core's `table`. Views and listings use the framework `home`."""
        self._table = table
        self._framework = home
        dtype, shape = table.key_element
        self._key = dtype, tuple(shape)

    @classmethod
    def _of(cls, table: Any, home: Framework) -> Self:
        self = cls.__new__(cls)
        self._hold(table, home)
        return self

    # Batches.

    def _take(
        self, array: ArrayLike, element: Element, argument: str
    ) -> tuple[Any, Callable[[_core.Tensor], ArrayT]]:
        """(array for the core, function that makes the results). Lists get the element's dtype."""
        if type(array) is np.ndarray:
            return array, _GIVE_NUMPY
        dtype, shape = element
        taken = take_array(array, dtype, argument)
        give: Any = self._framework.give
        if taken is not None:
            give = taken[1].give
            return taken[0], give
        if is_number(array):
            raise ValueError(
                f"{argument}: expected a batch of rows, got the number {array}; pass [{array}]"
            )
        exact = element is self._key  # rounding could make two keys equal
        return rows_of(array, dtype, shape, argument, exact), give

    def find(self, keys: ArrayLike) -> tuple[ArrayT, ArrayT]:
        """Finds keys. Returns (int32 [N] buffer indices, -1 if missing; bool [N] found).

        >>> import tensorhash
        >>> s = tensorhash.HashSet(10, "int64", ())
        >>> s.insert([100, 200])
        (array([0, 1], dtype=int32), array([ True,  True]))
        >>> s.find([200, 7])
        (array([ 1, -1], dtype=int32), array([ True, False]))
        """
        rows, give = self._take(keys, self._key, "keys")
        indices, found = self._table.find(rows)
        return give(indices), give(found)

    def contains(self, keys: ArrayLike) -> ArrayT:
        """bool [N]: which keys are in the table.

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> s.contains([8, 5])
        array([ True, False])
        """
        rows, give = self._take(keys, self._key, "keys")
        return give(self._table.contains(rows))

    def erase(self, keys: ArrayLike) -> ArrayT:
        """Removes keys. Other entries keep their buffer indices.

        Returns bool [N]: which rows removed a key. Of equal keys, the first row does.

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> s.erase([8, 5, 8])
        array([ True, False, False])
        """
        rows, give = self._take(keys, self._key, "keys")
        return give(self._table.erase(rows))

    def __contains__(self, key: ArrayLike) -> bool:
        return bool(np.asarray(self._table.contains(self._one_row(key)))[0])

    def _one_row(self, key: ArrayLike) -> Any:
        dtype, shape = self._key
        if isinstance(key, np.generic):
            key = key.item()
        taken = take_array(key, dtype, "key")
        row = np.asarray(array_of(key, dtype, "key", exact=True) if taken is None else taken[0])
        if row.size != math.prod(shape):
            raise ValueError(f"key: expected one key of shape {shape}, got shape {row.shape}")
        return row.reshape(1, *shape)

    def _give(self, tensor: _core.Tensor) -> ArrayT:
        """Converts a core tensor to an array in the framework of the table's dtypes.

        NumPy has no arrays on devices: it gets a copy on the CPU.
        """
        give: Callable[[_core.Tensor], Any] = self._framework.give
        given: ArrayT = give(tensor if self._framework.on_devices else tensor.cpu())
        return given

    def _give_view(self, tensor: _core.Tensor) -> ArrayT:
        """The same for a view. Instead of a copy, NumPy gets the core's tensor on the device."""
        is_plain = self._framework.on_devices or self.is_cpu
        given: Any = self._give(tensor) if is_plain else tensor
        view: ArrayT = given
        return view

    # Listings: ascending by buffer index, in the framework of the table's dtypes.

    def keys(self) -> ArrayT:
        """A copy of all keys, [size, *key_element_shape].

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> s.keys()
        array([7, 8, 9])
        """
        return self._give(self._table.keys())

    def active_buf_indices(self) -> ArrayT:
        """int32 [size]: the buffer indices in use.

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> _ = s.erase([7])
        >>> s.active_buf_indices()
        array([1, 2], dtype=int32)
        """
        return self._give(self._table.active_buf_indices())

    def key_tensor(self) -> ArrayT:
        """A view of the key buffer, [capacity, *key_element_shape]; do not write to it.

        Index it with buffer indices. After growth or compact() an old view is still safe to read,
        but no longer shows the table.

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> indices, _ = s.find([9, 7])
        >>> s.key_tensor()[indices]
        array([9, 7])
        """
        return self._give_view(self._table.key_tensor())

    def __iter__(self) -> Iterator[ArrayT]:
        keys: Any = self.keys()
        rows: Iterator[ArrayT] = iter(keys)
        return rows

    def size(self) -> int:
        """The number of keys.

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> s.size(), len(s)
        (3, 3)
        """
        return self._table.size()

    def __len__(self) -> int:
        return self._table.size()

    def capacity(self) -> int:
        """The number of buffer rows: how many keys fit before the table grows.

        >>> tensorhash.HashSet(1000, "int64", ()).capacity()
        1000
        """
        return self._table.capacity()

    def memory_usage(self) -> dict[str, int]:
        """Memory in bytes of "keys", "values", "index" and "bookkeeping", and the "total".

        >>> sorted(tensorhash.HashSet(1000, "int64", ()).memory_usage())
        ['bookkeeping', 'index', 'keys', 'total', 'values']
        """
        return self._table.memory_usage()

    def validate(self) -> None:
        """Checks the whole table; RuntimeError if it is not consistent.

        >>> tensorhash.HashSet(0, "int64", ()).validate()
        """
        self._table.validate()

    # Storage.

    def reserve(self, capacity: int) -> None:
        """Makes room for `capacity` keys. Never shrinks the table, never moves an entry.

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> s.reserve(1000)
        >>> s.capacity(), s.size()
        (1000, 3)
        """
        self._table.reserve(integer(capacity, "capacity"))

    def shrink_to_fit(self) -> None:
        """Gives back the memory that growth and erased keys left. Never moves an entry.

        The capacity becomes the last live index plus one. Freed indices beyond it are forgotten.

        >>> s = tensorhash.HashSet(1000, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> s.shrink_to_fit()
        >>> s.capacity()
        3
        """
        self._table.shrink_to_fit()

    def clear(self) -> None:
        """Removes all keys; the capacity stays.

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> s.clear()
        >>> s.size()
        0
        """
        self._table.clear()

    def compact(self) -> ArrayT:
        """Moves all entries to the buffer indices 0..size-1. No other method moves entries.

        Returns int32 [capacity]: the new index of each old index, -1 if it had no entry.

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> _ = s.erase([7])
        >>> s.compact()[:3]
        array([-1,  0,  1], dtype=int32)
        """
        return self._give(self._table.compact())

    def clone(self) -> Self:
        """An independent copy with the same buffer indices.

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8, 9])
        >>> copy = s.clone()
        >>> _ = copy.erase([7])
        >>> len(copy), len(s)
        (2, 3)
        """
        return self._of(self._table.clone(), self._framework)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.clone()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _restore, (type(self), self._framework.name, self._payload(protocol))

    def _payload(self, protocol: Any) -> pickle.PickleBuffer | bytes:
        """The whole table as bytes. From protocol 5 on, pickle writes a buffer without a copy."""
        image: Any = np.asarray(self._table.to_bytes())
        return pickle.PickleBuffer(image) if int(protocol) >= 5 else bytes(image.tobytes())

    @classmethod
    def _from_bytes(cls, payload: Any) -> Any:
        """The core's table from the bytes of to_bytes()."""
        return _core.HashMap.from_bytes(payload)

    # Devices.

    @property
    def device(self) -> str:
        """The table's device, such as "cpu:0"."""
        return self._table.device

    @property
    def is_cpu(self) -> bool:
        """Whether the table is on the CPU."""
        return str(self.device).lower().startswith("cpu")

    @property
    def is_cuda(self) -> bool:
        """Whether the table is on a CUDA device."""
        return str(self.device).lower().startswith("cuda")

    def to(self, device: DeviceLike, copy: bool = False) -> Self:
        """The table on another device; itself if it is already there and `copy` is False.

        A copy has the same buffer indices.

        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> s.to("cpu") is s, s.to("cpu", copy=True) is s
        (True, False)
        """
        name = usable_device(device)
        if name == self._table.device:
            return self.clone() if copy else self
        return self._of(self._copy_to(name), self._framework)

    def _copy_to(self, device: str) -> Any:
        """The core's table on another device."""
        return self._table.to(device)

    def cpu(self) -> Self:
        """The table on the CPU; itself if it is already there.

        >>> tensorhash.HashSet(0, "int64", ()).cpu().device
        'cpu:0'
        """
        return self.to("cpu")

    def cuda(self, device_id: int = 0) -> Self:
        """The table on a CUDA device; RuntimeError if this build has none.

        >>> tensorhash.HashSet(0, "int64", ()).cuda()  # doctest: +SKIP
        """
        return self.to(f"cuda:{integer(device_id, 'device_id')}")

    # Files.

    def save(self, file_name: str | os.PathLike[str]) -> str:
        """Writes the table to a file and returns the file's name.

        ".thash" is the native format, ".npz" is Open3D's. Any other name gets a suffix: ".thash" in
        tensorhash, ".npz" in tensorhash.core. If the save fails, an existing file does not change.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = tensorhash.HashSet(0, "int64", ()).save(f"{folder}/ids")
        >>> name.endswith("/ids.thash")
        True
        """
        return _files.save(self._table, file_name, self._suffix)

    @classmethod
    def load(cls, file_name: str | os.PathLike[str], *, max_bytes: int | None = None) -> Self:
        """Reads a file of `save`, including the buffer indices.

        ValueError says what is wrong with a file. Untrusted files are safe: neither the arrays nor
        the table take more than `max_bytes`, by default 64 MiB plus 32 bytes per byte of the file.
        A capacity that would need more is not restored.

        >>> import tempfile
        >>> s = tensorhash.HashSet(0, "int64", ())
        >>> _ = s.insert([7, 8])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tensorhash.HashSet.load(s.save(f"{folder}/ids")).keys()
        array([7, 8])
        """
        table = _files.load(file_name, cls._suffix, max_bytes)
        cls._require_kind(table, file_name)
        return cls._of(table, framework(cls._default_framework))

    @classmethod
    def _require_kind(cls, table: _core.HashMap, file_name: Any) -> None:
        """ValueError if this class cannot hold the table."""

    def __repr__(self) -> str:
        values = "".join(f", value {element_text(v)}" for v in self._table.value_elements)
        return (
            f"{type(self).__name__}(size={self.size()}, capacity={self.capacity()}, "
            f"key {element_text(self._key)}{values}, {self.device}, {self._framework.name})"
        )


def _restore(cls: type[Table[Any]], home: str, payload: Any) -> Table[Any]:
    return cls._of(cls._from_bytes(payload), framework(home))
