"""StaticHashTable: filled from TensorFlow's initialisers and plain arrays, then immutable."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf

raw = tf.raw_ops


def test_initialisers(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("zero\none\ntwo\n")
    line = tf.lookup.TextFileIndex.LINE_NUMBER
    whole = tf.lookup.TextFileIndex.WHOLE_LINE
    for initializer in (
        tf.lookup.KeyValueTensorInitializer(
            ["zero", "one", "two"], tf.constant([0, 1, 2], tf.int64)
        ),
        tf.lookup.TextFileInitializer(str(words), tf.string, whole, tf.int64, line),
        {"zero": 0, "one": 1, "two": 2},
        (["zero", "one", "two"], [0, 1, 2]),
    ):
        table = thtf.StaticHashTable(initializer, -1)
        assert table.lookup(["two", "none", "zero"]).numpy().tolist() == [2, -1, 0]
        assert table[["one"]].numpy().tolist() == [1]
        assert int(table.size()) == 3
        keys, values = table.export()
        assert dict(zip(keys.numpy(), values.numpy(), strict=True)) == {
            b"zero": 0,
            b"one": 1,
            b"two": 2,
        }


def test_vector_keys_and_values_and_other_dtypes():
    keys = np.int32([[1, 2], [3, 4]])
    values = np.float16([[1, 2, 3], [4, 5, 6]])
    table = thtf.StaticHashTable((keys, values), np.zeros(3, np.float16))
    assert table.key_shape == (2,)
    assert table.lookup([[3, 4], [9, 9]]).numpy().tolist() == [[4, 5, 6], [0, 0, 0]]


def test_changes_are_refused():
    table = thtf.StaticHashTable({1: 2}, -1)
    handle, one = table.resource_handle, tf.constant([1])
    for change in (
        lambda: raw.LookupTableInsertV2(table_handle=handle, keys=one, values=one),
        lambda: raw.LookupTableRemoveV2(table_handle=handle, keys=one),
        lambda: raw.LookupTableImportV2(table_handle=handle, keys=one, values=one),
        lambda: thtf.ops.tensorhash_accumulate(handle, one, one),
        lambda: thtf.ops.tensorhash_clear(handle),
        lambda: thtf.ops.tensorhash_reserve(handle, 10),
    ):
        with pytest.raises(tf.errors.FailedPreconditionError, match="read-only"):
            change()
    with pytest.raises(tf.errors.FailedPreconditionError, match="row 0"):
        thtf.ops.tensorhash_initialize(handle, one, tf.constant([7]))
    assert table.lookup([1, 7]).numpy().tolist() == [2, -1]


def test_equal_keys_need_equal_values():
    assert int(thtf.StaticHashTable(([1, 2, 1], [5, 6, 5]), -1).size()) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="row 2"):
        thtf.StaticHashTable(([1, 2, 1], [5, 6, 7]), -1)


def test_shared_tables_are_filled_once():
    one = thtf.StaticHashTable({1: 2, 3: 4}, -1, shared_name="static")
    two = thtf.StaticHashTable({1: 2, 3: 4}, -1, shared_name="static")
    assert two.lookup([3]).numpy().tolist() == one.lookup([3]).numpy().tolist() == [4]
    with pytest.raises(tf.errors.FailedPreconditionError, match="one initialisation"):
        thtf.StaticHashTable({1: 3}, -1, shared_name="static")


@pytest.mark.parametrize("keys", [[1, 3], ["one", "three"]])
def test_a_shared_table_is_not_opened_with_part_of_its_contents(keys):
    a, b = keys
    name = f"static parts {a}"
    whole = thtf.StaticHashTable({a: 2, b: 4}, -1, shared_name=name)
    nothing = (tf.convert_to_tensor(keys)[:0], tf.zeros(0, tf.int32))
    for part, count in (({a: 2}, 1), (([a, a], [2, 2]), 1), (nothing, 0)):
        with pytest.raises(
            tf.errors.FailedPreconditionError, match=f"2 entries again; got {count} of them"
        ):
            thtf.StaticHashTable(part, -1, shared_name=name)
    for more in ({a: 2, b: 4, keys[0] * 2: 5}, {b: 4, a: 3}):
        with pytest.raises(tf.errors.FailedPreconditionError, match="row . of keys"):
            thtf.StaticHashTable(more, -1, shared_name=name)
    again = thtf.StaticHashTable(([b, a, b], [4, 2, 4]), -1, shared_name=name)
    assert again.lookup(keys).numpy().tolist() == whole.lookup(keys).numpy().tolist() == [2, 4]


@pytest.mark.parametrize("key", [1, "one"], ids=["number", "string"])
def test_a_shared_name_has_one_kind_of_table(key):
    dtype = tf.convert_to_tensor(key).dtype
    static_name, mutable_name = f"a static name {key}", f"a mutable name {key}"
    static = thtf.StaticHashTable({key: 2}, -1, shared_name=static_name)
    match = f'"{static_name}" is another table: expected a tensorhash HashTable.*got a tensorhash StaticHashTable'
    with pytest.raises(tf.errors.InvalidArgumentError, match=match):
        thtf.HashTable(dtype, tf.int32, -1, shared_name=static_name)
    assert static.lookup([key]).numpy().tolist() == [2]
    mutable = thtf.HashTable(dtype, tf.int32, -1, shared_name=mutable_name)
    match = f'"{mutable_name}" is another table: expected a tensorhash StaticHashTable.*got a tensorhash HashTable'
    with pytest.raises(tf.errors.InvalidArgumentError, match=match):
        thtf.StaticHashTable({key: 2}, -1, shared_name=mutable_name)
    assert int(mutable.size()) == 0


def test_reading_before_the_contents_are_there_is_an_error():
    handle = thtf.ops.tensorhash_anonymous_static_table(key_dtype=tf.int64, value_dtype=tf.int64)
    with pytest.raises(tf.errors.FailedPreconditionError, match="not initialised"):
        thtf.ops.tensorhash_find(handle, tf.constant([1], tf.int64), tf.constant(0, tf.int64))
    with pytest.raises(tf.errors.FailedPreconditionError, match="mutable table"):
        mutable = thtf.HashTable(tf.int64, tf.int64, -1)
        one = tf.constant([1], tf.int64)
        thtf.ops.tensorhash_initialize(mutable.resource_handle, one, one)


def test_empty_contents():
    table = thtf.StaticHashTable((np.zeros(0, np.int64), np.zeros((0, 2), np.float32)), [1.0, 2.0])
    assert table.lookup([5]).numpy().tolist() == [[1, 2]]
