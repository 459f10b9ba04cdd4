"""Strings crafted to collide under TensorFlow's string hash."""

from __future__ import annotations

import struct

import numpy as np
import tensorflow as tf

import tensorhash.tensorflow as thtf

MURMUR = 0xC6A4A7935BD1E995


def word_before(left: int) -> int:
    """The word that Murmur's 64-bit hash turns into `left`."""
    inverse = pow(MURMUR, -1, 2**64)
    left = left * inverse % 2**64
    left ^= left >> 47
    return left * inverse % 2**64


def colliding(rows: int) -> list[bytes]:
    """In each pair of words, the first flips the top bit of the hash, the second flips it back."""
    words = [
        [word_before((place * 77) ^ ((row >> place // 2 & 1) << 63)) for place in range(20)]
        for row in range(rows)
    ]
    return [struct.pack("<20Q", *row) for row in words]


def test_strings_that_collide_under_murmur_are_ordinary_strings():
    strings = colliding(1024)
    assert len(set(strings)) == 1024
    table = thtf.HashTable(tf.string, tf.int64, -1)
    table.insert(tf.constant(strings), tf.range(1024, dtype=tf.int64))
    assert np.array_equal(table.lookup(tf.constant(strings)).numpy(), np.arange(1024))
    table.remove(tf.constant(strings[::2]))
    expected = np.where(np.arange(1024) % 2 == 0, -1, np.arange(1024))
    assert np.array_equal(table.lookup(tf.constant(strings)).numpy(), expected)
