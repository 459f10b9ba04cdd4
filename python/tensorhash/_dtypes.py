"""Converts dtypes of strings, NumPy, torch, TensorFlow and tensorhash.core.

Inside the package a dtype is its name, such as "int64".
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, ClassVar, Final

import numpy as np

NAMES: Final = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
)


class Dtype:
    """The type of an element, with Open3D's names: ``Dtype.Int64``, ``Dtype.Float32``, ...

    >>> Dtype.Int64, Dtype.Int64.byte_size()
    (Int64, 8)
    """

    __slots__ = ("_byte_size", "_name")

    Undefined: ClassVar[Dtype]
    Bool: ClassVar[Dtype]
    Int8: ClassVar[Dtype]
    Int16: ClassVar[Dtype]
    Int32: ClassVar[Dtype]
    Int64: ClassVar[Dtype]
    UInt8: ClassVar[Dtype]
    UInt16: ClassVar[Dtype]
    UInt32: ClassVar[Dtype]
    UInt64: ClassVar[Dtype]
    Float16: ClassVar[Dtype]
    BFloat16: ClassVar[Dtype]
    Float32: ClassVar[Dtype]
    Float64: ClassVar[Dtype]

    def __init__(self, name: str, byte_size: int) -> None:
        self._name = name
        self._byte_size = byte_size

    def byte_size(self) -> int:
        """The size of one element in bytes."""
        return self._byte_size

    def to_string(self) -> str:
        """The name, such as ``"Int64"``."""
        return self._name

    def __repr__(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dtype) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Dtype, (self._name, self._byte_size)


def _open3d_name(name: str) -> str:
    title = name.title()  # "uint8" -> "Uint8"
    for wrong, right in (("Uint", "UInt"), ("Bfloat", "BFloat")):
        title = title.replace(wrong, right)
    return title


_BY_NAME: Final = {}
_BYTES: Final = {"bool": 1, "bfloat16": 2}
for _name in NAMES:
    _bytes = _BYTES.get(_name) or np.dtype(_name).itemsize
    _BY_NAME[_name] = Dtype(_open3d_name(_name), _bytes)
    setattr(Dtype, _open3d_name(_name), _BY_NAME[_name])
Dtype.Undefined = Dtype("Undefined", 0)


def core_dtype(name: str) -> Dtype:
    """The Dtype of a name: ``"int64"`` gives ``Int64``."""
    return _BY_NAME[name]


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of a name. bfloat16 needs the package ml_dtypes."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        ml_dtypes: Any = importlib.import_module("ml_dtypes")
    except ImportError:
        raise TypeError(
            "bfloat16: NumPy itself has no such dtype; install ml_dtypes "
            "(pip install ml_dtypes), or use torch tensors"
        ) from None
    bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return bfloat16


def name_of(numpy_type: np.dtype[Any]) -> str:
    """The name of a NumPy dtype of any byte order; TypeError if tables do not support it."""
    if numpy_type.name not in NAMES:
        raise TypeError(f"dtype: expected one of {', '.join(NAMES)}; got {numpy_type}")
    return numpy_type.name


def parse_dtype(dtype: Any, argument: str) -> tuple[str, str | None]:
    """(name, framework of the dtype: "torch", "core", or None for all others)."""
    if isinstance(dtype, Dtype):
        if dtype == Dtype.Undefined:
            raise TypeError(f"{argument}: expected one of {', '.join(NAMES)}; got Undefined")
        return dtype.to_string().lower(), "core"
    if isinstance(dtype, str) and dtype in NAMES:
        return dtype, None
    module = type(dtype).__module__.partition(".")[0]
    if module == "torch":
        return _known(str(dtype).removeprefix("torch."), dtype, argument), "torch"
    if module == "tensorflow":
        return _known(str(getattr(dtype, "name", dtype)), dtype, argument), None
    if dtype is None:
        raise TypeError(f"{argument}: expected a dtype such as 'int64', got None")
    try:
        return _known(np.dtype(dtype).name, dtype, argument), None
    except TypeError:
        raise _unknown(dtype, argument) from None


def _known(name: str, dtype: Any, argument: str) -> str:
    if name not in NAMES:
        raise _unknown(dtype, argument)
    return name


def _unknown(dtype: Any, argument: str) -> TypeError:
    return TypeError(f"{argument}: expected one of {', '.join(NAMES)}; got {dtype!r}")


def bfloat16_bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits, as uint16, of float32 numbers rounded to the nearest bfloat16, ties to even."""
    words = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    rounded = (words + (0x7FFF + ((words >> 16) & 1))) >> 16
    # Rounding could turn a NaN into infinity or zero, so make every NaN a quiet NaN instead.
    quiet = (words >> 16) | 0x40
    return np.where(np.isnan(words.view(np.float32)), quiet, rounded).astype(np.uint16)
