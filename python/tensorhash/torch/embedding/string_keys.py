"""Keys of strings that are the same on all ranks: 128 bits of a published hash."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tensorhash._types import NumPyArray
from tensorhash.data import StringIndex
from tensorhash.torch.embedding import seeded


class StringKeys:
    """int64 [N, 2] for batches of strings. Those of training are hashed once, and remembered.

    The first word is the hash that first rows depend on.
    """

    WORDS = (2,)

    def __init__(self) -> None:
        self._index = StringIndex()
        self._keys = np.empty((0, 2), np.int64)  # by the strings' numbers, then free rows
        self._known = 0

    def keys(self, strings: Any, remember: bool) -> torch.Tensor:
        """The key of each string; with `remember`, new ones are kept for later batches."""
        if not remember:
            index = StringIndex()
            numbers = np.asarray(index.insert(strings))
            return torch.from_numpy(_hashes(index, 0)[numbers])
        numbers = np.asarray(self._index.insert(strings))
        if len(self._index) > self._known:
            self._hash_new()
        return torch.from_numpy(self._keys[numbers])

    def _hash_new(self) -> None:
        fresh, size = _hashes(self._index, self._known), len(self._index)
        if size > len(self._keys):
            larger = np.empty((max(size, 2 * len(self._keys)), 2), np.int64)
            larger[: self._known] = self._keys[: self._known]
            self._keys = larger
        self._keys[self._known : size] = fresh
        self._known = size


def _hashes(index: StringIndex, start: int) -> NumPyArray:
    """int64 [N - start, 2]: the keys of the strings from this number on."""
    strings = list(index.decode(np.arange(start, len(index)), as_bytes=True))
    words = [seeded.hash_strings(strings, person) for person in (b"", b"tensorhash key 2")]
    return np.stack(words, 1)
