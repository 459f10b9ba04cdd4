"""TensorFlow's lookup ops on our table, and our own, against a dict."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow as tf
from conftest import KEY_DTYPES, VALUE_DTYPES, Oracle, random_array

import tensorhash.tensorflow as thtf

raw = tf.raw_ops


def same(a: object, b: np.ndarray) -> bool:
    a = np.asarray(a.numpy() if tf.is_tensor(a) else a)
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def check_export(table: thtf.HashTable, oracle: Oracle) -> None:
    keys, values = raw.LookupTableExportV2(
        table_handle=table.resource_handle, Tkeys=table.key_dtype, Tvalues=table.value_dtype
    )
    assert values.shape == [len(oracle.items), *oracle.default.shape]
    exported = Oracle(oracle.key_shape, oracle.default)
    exported.insert(keys.numpy(), values.numpy())
    assert exported.items.keys() == oracle.items.keys()
    assert all(same(exported.items[key], oracle.items[key]) for key in oracle.items)


@pytest.mark.parametrize("value_dtype", VALUE_DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("key_dtype", KEY_DTYPES, ids=lambda d: d.name)
def test_every_pair_of_dtypes_agrees_with_a_dict(key_dtype, value_dtype, rng):
    shape = (2,) if value_dtype in (tf.float32, tf.int8) else ()
    default = random_array(rng, value_dtype, shape)
    table = thtf.HashTable(key_dtype, value_dtype, default)
    oracle = Oracle((), default)
    handle = table.resource_handle
    for rank in range(4):
        batch = (5, 4, 3)[:rank]
        keys = random_array(rng, key_dtype, batch)
        values = random_array(rng, value_dtype, batch + shape)
        raw.LookupTableInsertV2(table_handle=handle, keys=keys, values=tf.constant(values))
        oracle.insert(np.asarray(keys), np.asarray(values))
        asked = tf.constant(random_array(rng, key_dtype, batch))
        want, there = oracle.lookup(
            np.asarray(asked.numpy(), object if key_dtype == tf.string else None)
        )
        got = raw.LookupTableFindV2(table_handle=handle, keys=asked, default_value=default)
        assert same(got, want)
        got, exists = table.lookup(asked, return_exists=True)
        assert same(got, want)
        assert same(exists, there)
        gone = random_array(rng, key_dtype, (3,), span=40)
        raw.LookupTableRemoveV2(table_handle=handle, keys=gone)
        oracle.remove(gone)
        assert int(raw.LookupTableSizeV2(table_handle=handle)) == len(oracle.items)
    check_export(table, oracle)


@pytest.mark.parametrize("key_shape", [(3,), (1,), (2, 2), (7,)], ids=str)
@pytest.mark.parametrize(
    "key_dtype", [tf.int32, tf.int64, tf.uint8, tf.float64], ids=lambda d: d.name
)
def test_keys_of_several_elements(key_dtype, key_shape, rng):
    default = np.float32([[1, 2, 3], [4, 5, 6]])
    table = thtf.HashTable(key_dtype, tf.float32, default, key_shape=key_shape)
    oracle = Oracle(key_shape, default)
    for rank in range(4):
        batch = (6, 3, 2)[:rank]
        keys = random_array(rng, key_dtype, batch + key_shape, span=3)
        values = rng.normal(size=(*batch, 2, 3)).astype(np.float32)
        raw.LookupTableInsertV2(table_handle=table.resource_handle, keys=keys, values=values)
        oracle.insert(keys, values)
        asked = random_array(rng, key_dtype, batch + key_shape, span=3)
        want, there = oracle.lookup(asked)
        got, exists = table.lookup(asked, return_exists=True)
        assert same(got, want)
        assert same(exists, there)
    check_export(table, oracle)
    keys, values = table.export()
    other = thtf.HashTable(key_dtype, tf.float32, default, key_shape=key_shape)
    raw.LookupTableImportV2(table_handle=other.resource_handle, keys=keys, values=values)
    check_export(other, oracle)


KINDS = {"number": (tf.int64, ()), "string": (tf.string, ()), "vector": (tf.int32, (3,))}


@pytest.mark.parametrize("kind", KINDS)
def test_removes_of_every_rank(kind, rng):
    key_dtype, key_shape = KINDS[kind]
    table = thtf.HashTable(key_dtype, tf.int32, -1, key_shape=key_shape)
    oracle = Oracle(key_shape, np.int32(-1))
    keys = random_array(rng, key_dtype, (100, *key_shape), span=4 if key_shape else 60)
    table.insert(keys, np.arange(100))
    oracle.insert(keys, np.arange(100, dtype=np.int32))
    for rank in range(4):
        gone = keys[: 3**rank].reshape((3,) * rank + key_shape)
        raw.LookupTableRemoveV2(table_handle=table.resource_handle, keys=gone)
        oracle.remove(np.asarray(gone))
        assert len(oracle.items) > 0
        check_export(table, oracle)


@pytest.mark.parametrize("kind", KINDS)
def test_imports_replace_everything(kind, rng):
    key_dtype, key_shape = KINDS[kind]
    table = thtf.HashTable(key_dtype, tf.int32, -1, key_shape=key_shape)
    for rank in range(4):
        batch = (5, 4, 3)[:rank]
        keys = random_array(rng, key_dtype, batch + key_shape)
        values = rng.integers(0, 1000, batch).astype(np.int32)
        raw.LookupTableImportV2(table_handle=table.resource_handle, keys=keys, values=values)
        oracle = Oracle(key_shape, np.int32(-1))
        oracle.insert(np.asarray(keys), values)
        check_export(table, oracle)


@pytest.mark.parametrize("hash_bits", [64, 3, 0])
def test_strings_with_equal_hashes_are_different_keys(hash_bits, rng):
    def make():
        table = thtf.HashTable(tf.string, tf.int32, -1)
        table._creation["hash_bits"] = hash_bits
        table._resource_handle = table._create_resource()
        return table

    table = make()
    oracle = Oracle((), np.int32(-1))
    for step in range(12):
        keys = random_array(rng, tf.string, (40,), span=50)
        values = rng.integers(0, 1000, 40).astype(np.int32)
        table.insert(keys, values)
        oracle.insert(keys, values)
        gone = random_array(rng, tf.string, (15,), span=50 + 20 * (step % 2))
        table.remove(gone)
        oracle.remove(gone)
        asked = random_array(rng, tf.string, (80,), span=70)
        got, exists = table.lookup(asked, return_exists=True)
        want, there = oracle.lookup(asked)
        assert same(got, want)
        assert same(exists, there)
        check_export(table, oracle)
    other = make()
    other._import(*table.export())
    check_export(other, oracle)
    other.clear()
    assert int(other.size()) == 0
    sums = make()
    sums.accumulate(keys, values)
    for key in set(keys):
        assert int(sums.lookup(key)) == int(values[keys == key].sum())


def test_of_equal_keys_the_last_wins_and_accumulate_joins_rows_in_order():
    table = thtf.HashTable(tf.int64, tf.float32, 0.0)
    table.insert([5, 5, 5], [1.0, 2.0, 3.0])
    assert table[5].numpy() == 3
    table.accumulate([5, 6, 6], [10.0, 1.0, 2.0])
    assert table[[5, 6]].numpy().tolist() == [13, 3]
    table.accumulate([5, 7], [-1.0, -1.0], reduce="first")
    assert table[[5, 7]].numpy().tolist() == [13, -1]
    table.accumulate([5, 7], [-2.0, -2.0], reduce="min")
    assert table[[5, 7]].numpy().tolist() == [-2, -2]
    table.accumulate([5, 7], [9.0, -9.0], reduce="max")
    assert table[[5, 7]].numpy().tolist() == [9, -2]


def test_there_is_one_default_for_all_keys_or_one_per_key():
    table = thtf.HashTable(tf.int64, tf.float32, [0.0, 0.0])
    table.insert([1], [[5.0, 6.0]])
    assert table.lookup([1, 2], [8.0, 9.0]).numpy().tolist() == [[5, 6], [8, 9]]
    each = [[1.0, 2.0], [3.0, 4.0]]
    assert table.lookup([1, 2], each).numpy().tolist() == [[5, 6], [3, 4]]


def test_export_in_chunks_is_the_whole_table_once():
    table = thtf.HashTable(tf.int64, tf.int64, -1)
    keys = np.arange(1000) * 7
    table.insert(keys, keys + 1)
    table.remove(keys[::3])
    left = np.delete(keys, np.s_[::3])
    for size in (1000, 64, 33):
        chunks = list(table.export_batches(size))
        assert all(len(k) == size for k, _ in chunks[:-1])
        assert len(chunks) == -(-len(left) // size)
        got_keys = np.concatenate([k for k, _ in chunks])
        got_values = np.concatenate([v for _, v in chunks])
        assert got_keys.tolist() == left.tolist()
        assert (got_values == got_keys + 1).all()
    table.clear()
    assert list(table.export_batches(10)) == []


def test_empty_batches_are_ordinary():
    table = thtf.HashTable(tf.int32, tf.float64, [0.0, 0.0], key_shape=(3,))
    table.insert(np.zeros((0, 3), np.int32), np.zeros((0, 2)))
    values, exists = table.lookup(np.zeros((4, 0, 3), np.int32), return_exists=True)
    assert values.shape == (4, 0, 2)
    assert exists.shape == (4, 0)
    table.remove(np.zeros((0, 3), np.int32))
    keys, values = table.export()
    assert keys.shape == (0, 3)
    assert values.shape == (0, 2)
    strings = thtf.HashTable(tf.string, tf.int32, -1)
    strings.insert(tf.zeros((0,), tf.string), tf.zeros((0,), tf.int32))
    assert strings.lookup(tf.zeros((0, 2), tf.string)).shape == (0, 2)
    assert strings.export()[0].shape == (0,)


def test_reserve_and_large_batches_grow_the_table():
    table = thtf.HashTable(tf.int64, tf.float32, tf.zeros(8), capacity=10)
    table.reserve(1000)
    keys = np.random.default_rng(1).permutation(200_000)
    values = np.repeat(keys.astype(np.float32)[:, None], 8, 1)
    table.insert(keys, values)
    assert int(table.size()) == 200_000
    assert same(table.lookup(keys[::-1]), values[::-1].copy())


def test_named_tables_share_and_anonymous_ones_do_not():
    one = thtf.HashTable(tf.int64, tf.int64, -1, shared_name="shared")
    two = thtf.HashTable(tf.int64, tf.int64, -2, shared_name="shared")
    one.insert([1], [10])
    assert two.lookup([1, 2]).numpy().tolist() == [10, -2]
    elsewhere = thtf.HashTable(tf.int64, tf.int64, -3, shared_name="shared", container="c")
    assert int(elsewhere.size()) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match='"shared" is another table.*float'):
        thtf.HashTable(tf.int64, tf.float32, 0.0, shared_name="shared")
    assert int(thtf.HashTable(tf.int64, tf.int64, -1).size()) == 0


@pytest.mark.parametrize("sharing", [True, False])
def test_a_node_name_is_a_shared_name_on_request(sharing):
    types = {"key_dtype": tf.int64, "value_dtype": tf.int64}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        by_node = thtf.ops.tensorhash_table(
            **types, use_node_name_sharing=sharing, name="the_name_of_a_node"
        )
        by_name = thtf.ops.tensorhash_table(**types, shared_name="the_name_of_a_node", name="b")
        one = tf.constant([1], tf.int64)
        session.run(thtf.ops.tensorhash_accumulate(by_node, one, one))
        sizes = [raw.LookupTableSizeV2(table_handle=handle) for handle in (by_node, by_name)]
        assert session.run(sizes) == [1, 1 if sharing else 0]


def test_positional_arguments_are_in_tensorflows_order():
    for ours, theirs in (
        (thtf.HashTable, tf.lookup.experimental.MutableHashTable),
        (thtf.StaticHashTable, tf.lookup.StaticHashTable),
    ):
        for method in ("lookup", "insert", "remove", "size", "export"):
            if hasattr(theirs, method):
                want = [*inspect.signature(getattr(theirs, method)).parameters]
                got = inspect.signature(getattr(ours, method)).parameters.values()
                assert [p.name for p in got if p.kind != p.KEYWORD_ONLY] == want
    table = thtf.HashTable(tf.int64, tf.int64, -1)
    assert table.lookup([1], None, "a_name").numpy().tolist() == [-1]
    assert thtf.StaticHashTable({1: 2}, -1).lookup([1], "a_name").numpy().tolist() == [2]
