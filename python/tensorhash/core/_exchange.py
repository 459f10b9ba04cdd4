"""Converts Tensors from and to NumPy, DLPack and .npy files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash import _core
from tensorhash._disk import Limit, open_regular, parse_max_bytes, replacing, size_of
from tensorhash._dtypes import name_of
from tensorhash._frameworks import PLAIN, framework_of
from tensorhash._npy import read_npy
from tensorhash._types import NumPyArray
from tensorhash.core._base import Base

if TYPE_CHECKING:
    from typing_extensions import Self


class Exchange(Base):
    """Methods that share memory with other libraries, and file methods."""

    __slots__ = ()

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
        home = framework_of(type(source)) or PLAIN
        return cls._given(home.shared(source, "source"))

    def to_dlpack(self) -> object:
        """A "dltensor" capsule over this memory, for `torch.utils.dlpack.from_dlpack`."""
        return self._exported().to_dlpack()

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        return self._exported().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def _exported(self) -> _core.Tensor:
        return _core.Tensor.wrap(self._array, "tensor")

    def numpy(self) -> NumPyArray:
        """A NumPy array over this memory."""
        array: NumPyArray = self._array
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumPyArray:
        array: NumPyArray = self._array
        wanted = array.dtype if dtype is None else np.dtype(dtype)
        if wanted == array.dtype:
            return array.copy() if copy else array
        if copy is False:
            raise ValueError(f"copy=False: {array.dtype} cannot become {wanted} without a copy")
        return array.astype(wanted)

    def save(self, file_name: str | os.PathLike[str]) -> None:
        """Writes a .npy file with exactly this name. On failure the old file does not change."""
        path = os.fsdecode(file_name)
        if name_of(self._array.dtype) == "bfloat16":
            raise TypeError(f"{path}: .npy has no bfloat16; convert with .to(o3c.float32)")
        with replacing(path) as file:
            np.lib.format.write_array(file, np.asarray(self._array, order="C"), allow_pickle=False)

    @classmethod
    def load(cls, file_name: str | os.PathLike[str], *, max_bytes: int | None = None) -> Self:
        """Reads a .npy file; ValueError says what is wrong with the file.

        Untrusted files are safe: the tensor takes no more bytes than the file has, and at most
        `max_bytes`.
        """
        path = os.fsdecode(file_name)
        most = parse_max_bytes(max_bytes)
        if os.path.isdir(path):
            raise ValueError(f"{path}: expected a file, got a folder")
        with open_regular(path) as file:
            size = size_of(file)
            Limit(path, size, most)
            try:
                array = read_npy(file, size, "its array")
            except (ValueError, TypeError, OverflowError) as error:
                raise ValueError(f"{path}: not a readable .npy file: {error}") from error
        return cls._wrap(np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C"))
