"""What HashMap and HashSet share: everything that needs keys only."""

from __future__ import annotations

import math
import operator
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from tensorhash import _core, _files
from tensorhash._arrays import Framework, framework, is_number, take_array, to_numpy
from tensorhash._device import usable_device
from tensorhash._dtypes import parse_dtype
from tensorhash._lists import array_of, rows_of

if TYPE_CHECKING:
    from typing_extensions import Self

#: An array of NumPy, torch, JAX, TensorFlow or tensorhash.core; anything with `__dlpack__`; a column
#: or frame of pandas, polars or Arrow without nulls; a tuple of 1-D arrays, one per column; a list.
ArrayLike: TypeAlias = Any
#: An array of the framework that the documentation of the call names.
Array: TypeAlias = Any
#: "int64", np.int64, torch.int64, tensorhash.core.int64.
DtypeLike: TypeAlias = Any
ShapeLike: TypeAlias = Any

Element: TypeAlias = tuple[str, tuple[int, ...]]


def parse_shape(shape: ShapeLike, argument: str) -> tuple[int, ...]:
    """An element shape: 3, (3,), [3] and () are all legal."""
    try:
        extents = shape if hasattr(shape, "__len__") else (shape,)
        numbers = tuple(operator.index(extent) for extent in extents)
    except TypeError:
        raise TypeError(f"{argument}: expected an int or a tuple of ints, got {shape!r}") from None
    for number in numbers:
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"{argument}: expected extents that fit 64 bits, got {number}")
    return numbers


def element_text(element: tuple[str, Sequence[int]]) -> str:
    """ "int32 (3,)"."""
    return f"{element[0]} {tuple(element[1])}"


def integer(value: Any, argument: str, most: int | None = 2**31 - 1) -> int:
    """An int that fits 64 bits, from anything that is one.

    `most` is what the core takes at most, and says itself of any number that reaches it; None:
    the caller compares, with any number.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{argument}: expected an int, got {type(value).__name__}") from None
    if most is not None and not -(2**63) <= number < 2**63:
        bound = f"at most {most}" if number > 0 else "0 or more"
        raise ValueError(f"{argument}: expected {bound}, got {number}")
    return number


def seed_of(seed: Any) -> int | None:
    """The seed of a table's hash; None: the table draws its own."""
    if seed is None:
        return None
    number = integer(seed, "seed", None)
    if not 0 <= number < 2**64:
        raise ValueError(f"seed: expected None or 0 to 2**64 - 1, got {number}")
    return number


class Table:
    """A set of keys with a buffer index each; the base of HashMap and HashSet."""

    _suffix: ClassVar[str] = ".thash"
    _default_framework: ClassVar[str] = "numpy"

    _table: _core.HashMap
    _framework: Framework
    _key: Element

    def _create(
        self,
        init_capacity: int,
        key: tuple[DtypeLike, ShapeLike],
        values: list[tuple[DtypeLike, ShapeLike]],
        device: Any,
        seed: int | None = None,
    ) -> None:
        homes: set[str | None] = set()

        def element(dtype: DtypeLike, shape: ShapeLike, prefix: str) -> Element:
            name, home = parse_dtype(dtype, f"{prefix}_dtype")
            homes.add(home)
            return name, parse_shape(shape, f"{prefix}_element_shape")

        rows = integer(init_capacity, "init_capacity")
        key_element = element(*key, "key")
        value_elements = [element(*value, "value") for value in values]
        table = self._make(rows, key_element, value_elements, device, seed_of(seed))
        home = next((name for name in ("torch", "core") if name in homes), self._default_framework)
        self._hold(table, framework(home))

    def _make(
        self, rows: int, key: Element, values: list[Element], device: Any, seed: int | None
    ) -> Any:
        """The core's table."""
        return _core.HashMap(rows, key, values, usable_device(device), seed)

    def _hold(self, table: Any, home: Framework) -> None:
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
    ) -> tuple[Any, Callable[[_core.Tensor], Array]]:
        """(what the core reads, what makes the results); lists take the element's dtype."""
        if type(array) is np.ndarray:
            return array, to_numpy
        dtype, shape = element
        taken = take_array(array, dtype, argument)
        if taken is not None:
            return taken[0], taken[1].give
        if is_number(array):
            raise ValueError(
                f"{argument}: expected a batch of rows, got the number {array}; write [{array}]"
            )
        exact = element is self._key  # no two keys of a list become one
        return rows_of(array, dtype, shape, argument, exact), self._framework.give

    def find(self, keys: ArrayLike) -> tuple[Array, Array]:
        """Where each key lives: (int32 [N] buffer indices, -1 if missing; bool [N] found).

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

    def contains(self, keys: ArrayLike) -> Array:
        """bool [N]: which keys are there."""
        rows, give = self._take(keys, self._key, "keys")
        return give(self._table.contains(rows))

    def erase(self, keys: ArrayLike) -> Array:
        """Removes keys; bool [N]: which rows did, the first of equal keys. Others do not move."""
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

    # Listings: all ascend by buffer index, in the framework of the table's dtypes.

    def keys(self) -> Array:
        """A copy of the live keys, [size, *key_element_shape]."""
        return self._framework.give(self._table.keys())

    def active_buf_indices(self) -> Array:
        """int32 [size]: the buffer indices in use."""
        return self._framework.give(self._table.active_buf_indices())

    def key_tensor(self) -> Array:
        """The key buffer itself, [capacity, *key_element_shape], to be read at buffer indices.

        A view taken before growth or compact() keeps the old memory: safe, no longer the table's.
        """
        return self._framework.give(self._table.key_tensor())

    def __iter__(self) -> Iterator[Array]:
        return iter(self.keys())

    def size(self) -> int:
        """How many keys there are."""
        return self._table.size()

    def __len__(self) -> int:
        return self._table.size()

    def capacity(self) -> int:
        """Rows of the buffers: so many distinct keys fit before the table grows."""
        return self._table.capacity()

    def memory_usage(self) -> dict[str, int]:
        """Bytes held: "keys", "values", "index", "bookkeeping" and their "total"."""
        return self._table.memory_usage()

    def validate(self) -> None:
        """RuntimeError unless the table is consistent in itself."""
        self._table.validate()

    # Storage.

    def reserve(self, capacity: int) -> None:
        """Makes room for so many keys. Never shrinks, never moves an entry."""
        self._table.reserve(integer(capacity, "capacity"))

    def clear(self) -> None:
        """Removes all keys; the capacity stays."""
        self._table.clear()

    def compact(self) -> Array:
        """Moves the entries to 0..size-1; int32 [capacity]: old index -> new, -1 for none.

        The one call that moves entries.
        """
        return self._framework.give(self._table.compact())

    def clone(self) -> Self:
        """An independent copy, buffer indices included."""
        return self._of(self._table.clone(), self._framework)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.clone()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        image: Any = np.asarray(self._table.to_bytes())
        # From protocol 5 on, pickle writes the buffer without a copy in between.
        payload = pickle.PickleBuffer(image) if int(protocol) >= 5 else image.tobytes()
        return _restore, (type(self), self._framework.name, payload)

    @classmethod
    def _from_bytes(cls, payload: Any) -> Any:
        """The core's table of an image that its to_bytes() made."""
        return _core.HashMap.from_bytes(payload)

    # Devices.

    @property
    def device(self) -> Any:
        """Where the table lives, "cpu:0"."""
        return self._table.device

    @property
    def is_cpu(self) -> bool:
        """Whether it lives on the CPU."""
        return self._table.device.startswith("cpu")

    @property
    def is_cuda(self) -> bool:
        """Whether it lives on a CUDA device."""
        return not self.is_cpu

    def to(self, device: Any, copy: bool = False) -> Self:
        """The table on another device; itself if it is there already and `copy` is False."""
        usable_device(device)  # this build has one device: usable means here
        return self.clone() if copy else self

    def cpu(self) -> Self:
        """The table on the CPU: itself if it is there already."""
        return self.to("cpu")

    def cuda(self, device_id: int = 0) -> Self:
        """The table on a CUDA device."""
        return self.to(f"cuda:{integer(device_id, 'device_id')}")

    # Files.

    def save(self, file_name: str | os.PathLike[str]) -> str:
        """Writes a file: the old one or the new one stands at `file_name`, whatever happens.

        ".thash" is the native format, ".npz" Open3D's; another name gets the suffix of the package:
        ".thash" in tensorhash, ".npz" in tensorhash.core. Returns the name of the file.
        """
        return _files.save(self._table, file_name, self._suffix)

    @classmethod
    def load(cls, file_name: str | os.PathLike[str], *, max_bytes: int | None = None) -> Self:
        """Reads what `save` wrote, indices included; ValueError says what is wrong with a file.

        Any file may be given: neither its arrays nor the table take more than `max_bytes`, by
        default 64 MiB and 32 for each byte of the file. A capacity beyond that is not restored.
        """
        table = _files.load(file_name, cls._suffix, max_bytes)
        cls._require_kind(table, file_name)
        return cls._of(table, framework(cls._default_framework))

    @classmethod
    def _require_kind(cls, table: _core.HashMap, file_name: Any) -> None:
        """Raises if this class cannot hold the table."""

    def __repr__(self) -> str:
        values = "".join(f", value {element_text(v)}" for v in self._table.value_elements)
        return (
            f"{type(self).__name__}(size={self.size()}, capacity={self.capacity()}, "
            f"key {element_text(self._key)}{values}, {self.device}, {self._framework.name})"
        )


def _restore(cls: type[Table], home: str, payload: Any) -> Table:
    return cls._of(cls._from_bytes(payload), framework(home))
