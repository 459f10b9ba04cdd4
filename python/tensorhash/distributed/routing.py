"""Decides which rank owns a key, by a hash of its bytes.

This hash is independent of the table's own hash; otherwise the keys of one rank would fill only a
part of its table. The rule is part of the checkpoint format, under the name POLICY.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

POLICY: Final = "murmur64-v1"
MOST_RANKS: Final = 1 << 16

# Rows per block: a block and its temporaries fit into a core's cache.
_BLOCK: Final = 1 << 14


def owners(keys: Bytes, dtype: str, ranks: int) -> np.ndarray[Any, Any]:
    """The owner of each row of `keys` (uint8 [N, key bytes]): uint16 [N], each below `ranks`."""
    result = np.empty(len(keys), dtype=np.uint16)
    for start in range(0, len(keys), _BLOCK):
        block = keys[start : start + _BLOCK]
        high = _hash(_canonical_words(block, dtype)) >> np.uint64(32)
        result[start : start + _BLOCK] = (high * np.uint64(ranks)) >> np.uint64(32)
    return result


def _canonical_words(block: Bytes, dtype: str) -> np.ndarray[Any, Any]:
    """The rows as 64-bit words, padded with zeros; equal keys give equal words."""
    rows, width = block.shape
    words = np.zeros((rows, max(1, -(-width // 8)) * 8), dtype=np.uint8)
    words[:, :width] = block
    if dtype in ("float32", "float64"):
        numbers = words.view(dtype)
        numbers[numbers == 0] = 0  # -0.0 becomes 0.0
        numbers[np.isnan(numbers)] = np.nan  # all NaNs are equal keys, as in the table
    return words.view("<u8")


def _hash(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """MurmurHash3's 64-bit finalizer, chained over the words of a row."""
    mixed = np.full(len(words), 0x2545F4914F6CDD1D, dtype=np.uint64)
    for column in range(words.shape[1]):
        mixed ^= words[:, column]
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(0xC4CEB9FE1A85EC53)
        mixed ^= mixed >> np.uint64(33)
    return mixed
