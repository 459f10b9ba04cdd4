"""StringIndex: numbers distinct strings from 0 on, in order of first occurrence."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._arguments import parse_seed
from tensorhash._disk import parse_max_bytes
from tensorhash._frameworks import NUMPY, as_numpy
from tensorhash._types import Array, ArrayLike, NumPyArray
from tensorhash.data._arrow import text_column
from tensorhash.data._keys import decode_strings
from tensorhash.data._text import Strings


class StringIndex:
    """Maps strings to dense int64 numbers, in order of first occurrence.

    Strings are compared by their bytes: text is UTF-8, so that "a" and b"a" are one string. Batches
    may be lists of str or bytes, NumPy arrays of dtype S, U, StringDType or object, and columns of
    pandas, polars, Arrow or anything that exports Arrow data; only lists and object arrays have a
    Python object per row. Nulls are refused. The index grows by itself.

    >>> index = StringIndex()
    >>> index.insert(["b", "a", "b"])
    array([0, 1, 0])
    >>> index.find(np.array(["a", "c"]))
    array([ 1, -1])
    >>> index.decode([1, 0])
    array(['a', 'b'], dtype=object)
    """

    def __init__(self, *, seed: int | None = None) -> None:
        self._core = _core.StringIndex(parse_seed(seed))

    def insert(self, strings: ArrayLike) -> Array:
        """int64 [N]: the number of each string. New strings get the next numbers, in row order.

        >>> StringIndex().insert(["x", "y", "x"]).tolist()
        [0, 1, 0]
        """
        read = _read(strings)
        return NUMPY.give(self._core.insert(read.rows, read.kind, "strings"))

    def find(self, strings: ArrayLike) -> Array:
        """int64 [N]: the number of each string, or -1 if it is not in the index.

        >>> index = StringIndex()
        >>> index.find(["x"]).tolist()
        [-1]
        """
        read = _read(strings)
        return NUMPY.give(self._core.find(read.rows, read.kind, "strings"))

    def decode(self, numbers: ArrayLike, as_bytes: bool = False) -> NumPyArray:
        """The strings with these numbers: an object array of str, or of bytes.

        Rows with equal numbers share one object. IndexError if a number was not given out.

        >>> index = StringIndex()
        >>> _ = index.insert(["x", "y"])
        >>> index.decode([1, 1, 0]).tolist()
        ['y', 'y', 'x']
        """
        return decode_strings(self._core, numbers, bool(as_bytes))

    def strings(self) -> tuple[NumPyArray, NumPyArray]:
        """All strings in Arrow's layout: (offsets int64 [N + 1], bytes uint8).

        >>> index = StringIndex()
        >>> _ = index.insert(["ab", "c"])
        >>> index.strings()
        (array([0, 2, 3]), array([97, 98, 99], dtype=uint8))
        """
        offsets, data = self._core.strings()
        return as_numpy(offsets), as_numpy(data)

    def __len__(self) -> int:
        """The number of distinct strings."""
        return self._core.size()

    def __contains__(self, string: object) -> bool:
        """Whether one string is in the index."""
        return isinstance(string, (str, bytes)) and bool(np.asarray(self.find([string]))[0] >= 0)

    def memory_usage(self) -> int:
        """Bytes of memory in use.

        >>> StringIndex().memory_usage() < 1000
        True
        """
        return self._core.memory()

    def save(self, file_name: Any) -> str:
        """Writes the index to a file and returns its name; a suffix ".thash" is added if missing.

        >>> import tempfile
        >>> index = StringIndex()
        >>> _ = index.insert(["x"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     len(StringIndex.load(index.save(folder + "/words")))
        1
        """
        path = _with_suffix(file_name)
        self._core.save(os.fsencode(path))
        return path

    @staticmethod
    def load(file_name: Any, max_bytes: int | None = None) -> StringIndex:
        """Reads a file of `save`. Safe for untrusted files, as the `load` of tables.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     StringIndex.load(StringIndex().save(folder + "/words"))
        StringIndex of 0 strings
        """
        core = _core.StringIndex.load(
            os.fsencode(_with_suffix(file_name)), parse_max_bytes(max_bytes)
        )
        return _from_core(core)

    def clone(self) -> StringIndex:
        """An independent copy with the same numbers.

        >>> index = StringIndex()
        >>> _ = index.clone().insert(["x"])
        >>> len(index)
        0
        """
        return _from_core(self._core.clone())

    __copy__ = clone

    def __deepcopy__(self, memo: Any) -> StringIndex:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (as_numpy(self._core.to_bytes()).tobytes(),)

    def __repr__(self) -> str:
        return f"StringIndex of {len(self)} strings"


def _read(strings: ArrayLike) -> Strings:
    read = text_column(strings, "strings")
    if read is None:
        raise TypeError(
            f"strings: expected a list, a 1-D array or a column of strings, got {_said(strings)}"
        )
    return read


def _said(array: Any) -> str:
    """What came instead of strings, for a message."""
    if isinstance(array, (str, bytes)):
        return f"one {type(array).__name__}; pass a list"
    if isinstance(array, (list, tuple)):
        return f"a {type(array).__name__} with {type(array[0]).__name__} in row 0"
    if isinstance(array, np.ndarray):
        return f"an array of {array.dtype} of shape {array.shape}"
    hint = (
        "" if hasattr(array, "dtype") or not hasattr(array, "__iter__") else "; pass list(strings)"
    )
    kind = f" of {array.dtype}" if hasattr(array, "dtype") else ""
    return f"{type(array).__name__}{kind}{hint}"


def _with_suffix(file_name: Any) -> str:
    if not isinstance(file_name, (str, bytes, os.PathLike)):
        raise TypeError(f"file_name: expected a path, got {type(file_name).__name__}")
    path = os.fsdecode(file_name)
    return path if path.endswith(".thash") else f"{path}.thash"


def _from_core(core: _core.StringIndex) -> StringIndex:
    index = StringIndex.__new__(StringIndex)
    index._core = core
    return index


def _from_bytes(data: bytes) -> StringIndex:
    """For pickles."""
    return _from_core(_core.StringIndex.from_bytes(np.frombuffer(data, np.uint8)))
