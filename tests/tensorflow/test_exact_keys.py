"""Keys are read exactly or refused: floats that would round, nulls, masks, and columns of a key."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf

Invalid = tf.errors.InvalidArgumentError

# The key dtype, keys that it would round, and the number in the message.
ROUNDED = {
    "list": (tf.float64, [2**53, 2**53 + 1], "9007199254740993"),
    "list of float32": (tf.float32, [2**24, 2**24 + 1, 0.5], "16777217"),
    "negative": (tf.float32, [-(2**24) - 1], "-16777217"),
    "nested": (tf.float64, [[1, 2], [3, 2**53 + 1]], "9007199254740993"),
    "range": (tf.float32, range(2**24, 2**24 + 2), "16777217"),
    "number": (tf.float64, 2**53 + 1, "9007199254740993"),
    "huge": (tf.float64, [2**63 + 1], "9223372036854775809"),
    "NumPy number": (tf.float64, np.int64(2**53 + 1), "9007199254740993"),
    "NumPy numbers": (tf.float64, [np.int64(2**53), np.int64(2**53 + 1)], "9007199254740993"),
    "arrays of rank 0": (tf.float64, [np.array(2**53 + 1), 0.5], "9007199254740993"),
    "integer array": (tf.float64, np.array([2**53, 2**53 + 1]), "9007199254740993"),
    "uint64 array": (tf.float64, np.array([2**64 - 1], np.uint64), "18446744073709551615"),
    "integer objects": (tf.float64, np.array([2**53 + 1], object), "9007199254740993"),
    "list of arrays": (tf.float64, [np.array([1, 2**53 + 1])], "9007199254740993"),
    "float64 array": (tf.float32, np.array([0.5, 0.1]), "0.1"),
    "wide floats": (tf.float32, np.array([1e300]), "1e\\+300"),
    "wide floats in a list": (tf.float32, [1e300], "1e\\+300"),
}
EXACT = {
    "powers of two": (tf.float64, [2**53, 2**60, 2**63], 3),
    "array of powers": (tf.float32, np.array([2**24, 2**40, -(2**62)]), 3),
    "largest uint64 power": (tf.float64, np.array([2**63, 3], np.uint64), 2),
    "halves": (tf.float32, np.array([0.5, 1.5, np.nan, np.inf, -np.inf]), 5),
    "floats of a list are rounded": (tf.float32, [0.1, 1, np.float64(0.2)], 3),
    "one number": (tf.float32, np.float64(0.1), 1),
    "a tensor beside numbers": (tf.float32, [tf.constant(0.1), 3], 2),
    "float32 in float64": (tf.float64, np.float32([0.1, 0.2]), 2),
}


def verbs(table: thtf.HashTable, keys: object) -> dict:
    values = np.zeros(np.shape(keys), np.int64)
    return {
        "lookup": lambda: table.lookup(keys),
        "insert": lambda: table.insert(keys, values),
        "set": lambda: table.set(keys, values),
        "accumulate": lambda: table.accumulate(keys, values),
        "remove": lambda: table.remove(keys),
    }


@pytest.mark.parametrize("name", ROUNDED)
def test_keys_that_a_float_dtype_would_round_are_refused(name):
    dtype, keys, number = ROUNDED[name]
    table = thtf.HashTable(dtype, tf.int64, 0)
    for call in verbs(table, keys).values():
        with pytest.raises(
            Invalid, match=rf"keys.*{dtype.name}.*{number}|keys.*{number}.*{dtype.name}"
        ):
            call()
        with pytest.raises(Invalid, match=number):
            tf.function(call).get_concrete_function()
    assert int(table.size()) == 0


@pytest.mark.parametrize("name", EXACT)
def test_keys_that_a_float_dtype_holds_go_in(name):
    dtype, keys, count = EXACT[name]
    table = thtf.HashTable(dtype, tf.int64, 0)
    for call in verbs(table, keys).values():
        call()
    table.insert(keys, np.zeros(np.shape(keys), np.int64))
    assert int(table.size()) == count


def test_values_are_rounded():
    table = thtf.HashTable(tf.int64, tf.float32, 0.0)
    table.insert([1, 2], [2**24 + 1, 0.1])
    table.insert([3, 4], np.array([2**24 + 1, 0.1]))
    assert table.lookup([1, 2, 3, 4]).numpy().tolist() == [2**24, np.float32(0.1)] * 2


def test_masks_and_nulls_inside_lists_are_refused():
    masked = np.ma.masked_array([1, 2], mask=[False, True])
    table = thtf.HashTable(tf.int64, tf.int64, 0)
    with pytest.raises(Invalid, match="keys: expected no masked entries, got 1"):
        table.insert([masked, masked], [[1, 2], [3, 4]])
    words = thtf.HashTable(tf.string, tf.int64, 0)
    with pytest.raises(Invalid, match="keys: expected no masked entries, got 1"):
        words.insert(np.ma.masked_array(["a", "b"], mask=[False, True]), [1, 2])


@pytest.mark.parametrize("graph", [False, True])
def test_a_tuple_of_arrays_has_one_per_column_of_the_key(graph):
    table = thtf.HashTable(tf.int64, tf.float32, [0.0, 0.0], key_shape=(2,))
    wrap = tf.function if graph else lambda function: function
    x, y = np.array([1, 2, 3]), np.array([4, 5, 6], np.int32)

    @wrap
    def fill():
        table.insert((x, y), (np.float32([1, 2, 3]), np.float32([4, 5, 6])))

    fill()
    assert int(table.size()) == 3
    assert table.lookup([[1, 4], [3, 6]]).numpy().tolist() == [[1, 4], [3, 6]]
    tensors = (tf.constant(x), tf.constant(y, tf.int64))
    assert wrap(table.lookup)(tensors).numpy().tolist() == [[1, 4], [2, 5], [3, 6]]
    # Rows as before: a list of arrays, tuples of numbers, tensors of rank 0.
    assert table.lookup([np.array([2, 5])]).numpy().tolist() == [[2, 5]]
    assert table.lookup(((2, 5), (1, 4))).numpy().tolist() == [[2, 5], [1, 4]]
    assert table.lookup(tuple(map(tf.constant, np.array([2, 5])))).numpy().tolist() == [2, 5]


def test_columns_that_do_not_fit_together_are_refused():
    table = thtf.HashTable(tf.float64, tf.int64, 0, key_shape=(2,))
    x = np.array([1.0, 2.0, 3.0])
    for keys, message in (
        (
            (x, [1.0, 2.0, 3.0]),
            r"keys\[1\]: expected an array, since .* got list; for rows pass a list",
        ),
        (
            (x, x[:, None]),
            r"keys\[1\]: expected a 1-D array, .* got shape \(3, 1\); for rows pass a list",
        ),
        ((x, x[:2]), r"keys\[1\]: expected 3 rows as keys\[0\] has, got 2"),
        ((x, np.array([1, 2, 2**53 + 1])), r"keys\[1\].*9007199254740993"),
        ((x, x, x), r"key shape \[3,3\] must end with the table's key shape \[2\]"),
    ):
        with pytest.raises(Invalid, match=message):
            table.lookup(keys)


def test_without_a_key_shape_a_tuple_of_arrays_is_a_batch_as_in_tensorflow():
    table = thtf.HashTable(tf.int64, tf.int64, 0)
    table.insert((np.array([1, 2, 3]), np.array([4, 5, 6])), [[1, 2, 3], [4, 5, 6]])
    assert table.lookup([4]).numpy().tolist() == [4]
