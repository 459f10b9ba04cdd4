"""Random numbers that depend only on a seed and a key: first rows of ids, and chances.

They come from integers, without functions of the C library, so every machine gives the same bits.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tensorhash._types import NumPyArray

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_ALL_BITS: Final = 2**64 - 1
_BLOCK: Final = 1 << 12  # rows per block, so that temporaries stay in the cache


def uniform(keys: NumPyArray, seed: int, width: int, scale: float) -> NumPyArray:
    """float64 [N, width] between -scale and scale, one row per key (int64 [N] or [N, words])."""
    return _rows(keys, seed, width, lambda words: (words[0] >> np.uint64(40)) * 2.0**-23 - 1, scale)


def normal(keys: NumPyArray, seed: int, width: int, scale: float) -> NumPyArray:
    """As uniform, with mean 0 and standard deviation `scale`: each is a sum of twelve numbers."""
    return _rows(keys, seed, width, _sum_of_twelve, scale, 3)


def chance(keys: NumPyArray, seed: int, round_number: int) -> NumPyArray:
    """float64 [N], at least 0 and below 1, for each key in a round."""
    step = int(_GOLDEN) * (round_number + 1) & _ALL_BITS
    mixed = _mix(_hash(keys, seed) + np.uint64(step))
    numbers: NumPyArray = (mixed >> np.uint64(11)) * 2.0**-53
    return numbers


def hash_strings(strings: Sequence[bytes], person: bytes = b"") -> NumPyArray:
    """int64 [N]: a published hash of each string, another one for each `person`."""
    digests = b"".join(
        hashlib.blake2b(one, digest_size=8, person=person).digest() for one in strings
    )
    return np.frombuffer(digests, "<i8").astype(np.int64)


def _sum_of_twelve(words: list[NumPyArray]) -> NumPyArray:
    """Twelve 16-bit numbers have a variance of one after division by 65536."""
    total = np.zeros(words[0].shape, np.uint64)
    for word in words:
        for shift in (0, 16, 32, 48):
            total += (word >> np.uint64(shift)) & np.uint64(0xFFFF)
    # The middle of each step, so that the mean is 0.
    numbers: NumPyArray = (total.astype(np.float64) + 6) / 65536 - 6
    return numbers


def _rows(
    keys: NumPyArray, seed: int, width: int, numbers: Any, scale: float, words: int = 1
) -> NumPyArray:
    out = np.empty((len(keys), width))
    steps = _GOLDEN * np.arange(1, width * words + 1, dtype=np.uint64).reshape(words, width)
    hashes = _hash(keys, seed)
    for start in range(0, len(keys), _BLOCK):
        block = hashes[start : start + _BLOCK, None]
        out[start : start + _BLOCK] = numbers([_mix(block + step) for step in steps]) * scale
    return out


def _hash(keys: NumPyArray, seed: int) -> NumPyArray:
    """uint64 [N]: a hash of each key's words."""
    words = (
        keys.reshape(len(keys), math.prod(keys.shape[1:]))
        .astype(np.int64, copy=False)
        .view(np.uint64)
    )
    start = (seed * int(_GOLDEN) + 1) & _ALL_BITS
    mixed = _mix(np.full(len(keys), start, np.uint64))
    for column in range(words.shape[1]):
        mixed = _mix(mixed ^ words[:, column])
    return mixed


def _mix(words: NumPyArray) -> NumPyArray:
    """The finalizer of splitmix64."""
    words = words + _GOLDEN
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NumPyArray = words ^ (words >> np.uint64(31))
    return mixed
