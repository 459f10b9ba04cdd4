"""Ragged and sparse keys in every lookup: values have the structure of the keys."""

from __future__ import annotations

import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf
from tensorhash.optim import SGD

RAGGED = tf.ragged.constant([[1, 9], [], [2, 1, 3]], dtype=tf.int64)
SPARSE = tf.SparseTensor([[0, 3], [2, 1]], tf.constant([2, 9], tf.int64), [3, 4])


def mutable(**kwargs):
    table = thtf.HashTable(tf.int64, tf.float32, -1.0, **kwargs)
    table.insert([1, 2, 3], [10.0, 20.0, 30.0])
    return table


TABLES = {
    "mutable": mutable,
    "sharded": lambda: mutable(devices=["cpu:0", "cpu:1"]),
    "static": lambda: thtf.StaticHashTable(
        (tf.constant([1, 2, 3], tf.int64), [10.0, 20.0, 30.0]), -1.0
    ),
    "tensorflow": lambda: tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant([1, 2, 3], tf.int64), tf.constant([10.0, 20.0, 30.0])
        ),
        -1.0,
    ),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("graph", [False, True])
def test_ragged_and_sparse_keys(kind, graph):
    table = TABLES[kind]()
    verbs = [table.lookup, table.__getitem__]
    if hasattr(table, "get"):
        verbs.append(table.get)
    for verb in verbs:
        look = tf.function(verb) if graph else verb
        assert look(RAGGED).to_list() == [[10, -1], [], [20, 10, 30]]
        found = look(SPARSE)
        assert isinstance(found, tf.SparseTensor)
        assert tf.sparse.to_dense(found).numpy().tolist() == [[0, 0, 0, 20], [0] * 4, [0, -1, 0, 0]]


def test_exists_and_defaults_have_the_structure_too():
    table = mutable()
    values, exists = table.lookup(RAGGED, tf.cast(RAGGED, tf.float32) / 2, return_exists=True)
    assert values.to_list() == [[10, 4.5], [], [20, 10, 30]]
    assert exists.to_list() == [[True, False], [], [True, True, True]]
    _, exists = table.lookup(SPARSE, return_exists=True)
    assert tf.sparse.to_dense(exists).numpy().sum() == 1


def test_values_and_keys_with_a_shape():
    table = thtf.HashTable(tf.int64, tf.float32, [0.0, 0.0], key_shape=(2,))
    table.insert([[1, 2]], [[5.0, 6.0]])
    keys = tf.RaggedTensor.from_row_lengths(tf.constant([[1, 2], [3, 4], [1, 2]], tf.int64), [2, 1])
    assert table[keys].to_list() == [[[5, 6], [0, 0]], [[5, 6]]]
    vectors = thtf.HashTable(tf.int64, tf.float32, [0.0, 0.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="keys: expected a dense or a ragged"):
        vectors[SPARSE]


def test_other_dtypes_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="keys: expected int64, got int32"):
        mutable()[tf.cast(RAGGED, tf.int32)]


@pytest.mark.parametrize("graph", [False, True])
def test_operations_other_than_lookup_say_what_to_pass(graph):
    table = mutable(devices=["cpu:0"])
    optimizer = SGD(lr=0.1)
    for keys, way in ((RAGGED, "flat_values"), (SPARSE, "values")):
        rows = tf.cast(keys, tf.float32)
        kind = type(keys).__name__
        calls = [
            ("keys", lambda keys=keys, rows=rows: table.insert(keys, rows)),
            ("keys", lambda keys=keys, rows=rows: table.set(keys, rows)),
            ("keys", lambda keys=keys, rows=rows: table.accumulate(keys, rows)),
            ("keys", lambda keys=keys, rows=rows: table.update(keys, rows, optimizer)),
            ("keys", lambda keys=keys, rows=rows: table.insert_from_cpu("cpu:0", keys, rows)),
            ("keys", lambda keys=keys: table.remove(keys)),
            ("values", lambda rows=rows: table.insert([1, 2], rows)),
            ("gradients", lambda rows=rows: table.update([1, 2], rows, optimizer)),
        ]
        for argument, call in calls:
            match = f"{argument}: expected a dense tensor, got a {kind}; pass {argument}.{way}"
            with pytest.raises(tf.errors.InvalidArgumentError, match=match):
                tf.function(call)() if graph else call()
    assert table.lookup([1, 2, 3, 9]).numpy().tolist() == [10, 20, 30, -1]
    table.remove(RAGGED.flat_values)
    assert int(table.size()) == 0
