"""The contents of a StaticHashTable are read exactly or refused."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf

Invalid = tf.errors.InvalidArgumentError
LARGE = [2**53, 2**53 + 1]


def made(keys: object, values: object) -> thtf.StaticHashTable:
    return thtf.StaticHashTable((keys, values), -1)


def test_masked_entries_are_refused():
    masked = np.ma.masked_array([1, 2], mask=[False, True])
    with pytest.raises(Invalid, match="keys: expected no masked entries, got 1"):
        made(masked, [7, 8])
    with pytest.raises(Invalid, match="values: expected no masked entries, got 1"):
        made([7, 8], masked)
    assert int(made(np.ma.masked_array(LARGE), [7, 7]).size()) == 2


@pytest.mark.parametrize(
    ("keys", "number"),
    [
        ([2**24, 2**24 + 1, 0.5], "16777217"),
        ([0.5, np.int64(2**53), np.int64(2**53 + 1)], "9007199254740993"),
        ([np.array(2**53), np.array(2**53 + 1), 0.5], "9007199254740993"),
        ([2**64, 1, 2], "18446744073709551616"),
    ],
)
def test_integers_that_would_be_rounded_are_refused(keys, number):
    with pytest.raises(Invalid, match=f"keys.*{number}"):
        made(keys, [7, 7, 8])
    with pytest.raises(Invalid, match=f"values.*{number}"):
        made([1, 2, 3], keys)


def test_a_dict_of_mixed_numbers_is_refused():
    with pytest.raises(Invalid, match="keys: row 1: .*float32.*16777217"):
        thtf.StaticHashTable({2**24: 7, 2**24 + 1: 7, 0.5: 8}, -1)
    with pytest.raises(Invalid, match="keys: expected int32, got bool"):
        thtf.StaticHashTable({2: 7, True: 8}, -1)
    for nothing in ({None: 7, 1: 8}, {1: None, 2: 8}):
        with pytest.raises(Invalid, match="(keys|values): .*expected a number, got None"):
            thtf.StaticHashTable(nothing, -1)


def test_wide_integers_and_tensorflows_dtypes():
    for keys, dtype in (
        ([1, 2], tf.int32),
        ([1, 2**40], tf.int64),
        ([1, 2**63], tf.uint64),
        ([1, 0.5], tf.float32),
        (np.array([1, 0.1]), tf.float64),
        (np.array([1, 2**40], object), tf.int64),
        (["a", b"b"], tf.string),
        (np.array(["a", "b"], object), tf.string),
    ):
        table = made(keys, [7, 8])
        assert table.key_dtype == dtype
        assert table.lookup(keys).numpy().tolist() == [7, 8]


def test_a_tuple_of_arrays_has_one_per_column():
    table = thtf.StaticHashTable(((np.array([1, 2, 3]), np.array([4, 5, 6])), [7, 8, 9]), -1)
    assert table.key_shape == (2,)
    assert table.lookup([[2, 5], [1, 5]]).numpy().tolist() == [8, -1]
    tensors = (tf.constant([1, 2, 3]), tf.constant([4, 5, 6]))
    assert thtf.StaticHashTable((tensors, [7, 8, 9]), -1).key_shape == (2,)
    with pytest.raises(Invalid, match="keys: expected columns that one dtype holds exactly"):
        thtf.StaticHashTable(((np.array([1, 2]), np.array([0.5, 1])), [7, 8]), -1)


def test_ragged_and_sparse_contents_are_refused():
    ragged = tf.ragged.constant([[1], [2, 3]])
    with pytest.raises(Invalid, match=r"keys: expected a dense .*; pass keys.flat_values"):
        made(ragged, [7, 8, 9])
    with pytest.raises(Invalid, match=r"values: expected a dense .*; pass values.values"):
        made([1], tf.SparseTensor([[0]], [5], [1]))


def libraries() -> dict:
    """For each installed library: a column of these numbers, one with a null, one of words."""
    found = {}
    try:
        import polars

        found["polars"] = polars.Series
    except ImportError:
        pass
    try:
        import pandas

        found["pandas"] = lambda rows: pandas.Series(
            rows, dtype="object" if isinstance(rows[0], str) else "Int64"
        )
    except ImportError:
        pass
    try:
        import pyarrow

        found["pyarrow"] = pyarrow.array
    except ImportError:
        pass
    return found


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_columns_are_read_exactly_and_nulls_are_refused(library):
    if library not in libraries():
        pytest.skip(f"{library} is not installed")
    column = libraries()[library]
    with pytest.raises(Invalid, match="keys: expected no nulls, got 1, the first in row 2"):
        made(column([*LARGE, None]), np.array([7, 7, 8]))
    with pytest.raises(Invalid, match="values: expected no nulls, got 1, the first in row 2"):
        made([1, 2, 3], column([*LARGE, None]))
    table = made(column(LARGE), column(LARGE))
    assert int(table.size()) == 2
    assert table.lookup(LARGE).numpy().tolist() == LARGE
    words = made(column(["a", "bc"]), [7, 8])
    assert words.lookup(["bc", "a"]).numpy().tolist() == [8, 7]
    with pytest.raises(Invalid, match="keys: expected string, got"):
        made(column(["a", None]), [7, 8])
