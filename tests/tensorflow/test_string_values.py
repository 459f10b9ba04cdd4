"""String values: all operations against a dict; reductions that need numbers are refused."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from conftest import KEY_DTYPES, random_array

import tensorhash
import tensorhash.tensorflow as thtf

raw = tf.raw_ops
Refused = tf.errors.InvalidArgumentError


def words(rng, shape):
    return random_array(rng, tf.string, shape, span=1000)


def as_key(key):
    return key if isinstance(key, bytes) else np.asarray(key).tobytes()


@pytest.mark.parametrize("key_dtype", KEY_DTYPES, ids=str)
@pytest.mark.parametrize("value_shape", [(), (2,)])
@pytest.mark.parametrize("own", [True, False])
def test_a_table_agrees_with_a_dict(key_dtype, value_shape, own, rng):
    default = np.full(value_shape, b"none", object)
    table = thtf.HashTable(key_dtype, tf.string, tf.constant(default))
    handle, want = table.resource_handle, {}
    for _ in range(4):
        keys = random_array(rng, key_dtype, (150,))
        values = words(rng, (150, *value_shape))
        gone = random_array(rng, key_dtype, (20,))
        asked = random_array(rng, key_dtype, (5, 7))
        if own:
            table.insert(keys, values)
            table.remove(gone)
            got, exists = table.lookup(asked, return_exists=True)
        else:
            raw.LookupTableInsertV2(table_handle=handle, keys=keys, values=values)
            raw.LookupTableRemoveV2(table_handle=handle, keys=gone)
            got = raw.LookupTableFindV2(table_handle=handle, keys=asked, default_value=default)
        for key, value in zip(keys, values, strict=True):
            want[as_key(key)] = value
        for key in gone:
            want.pop(as_key(key), None)
        expected = [want.get(as_key(key), default) for key in asked.reshape(-1)]
        assert np.array_equal(
            got.numpy(), np.array(expected, object).reshape(*asked.shape, *value_shape)
        )
        if own:
            there = [as_key(key) in want for key in asked.reshape(-1)]
            assert exists.numpy().reshape(-1).tolist() == there
        assert int(table.size()) == len(want)
    keys, values = table.export()
    assert {as_key(key) for key in keys.numpy()} == set(want)
    for key, value in zip(keys.numpy(), values.numpy(), strict=True):
        assert np.array_equal(value, want[as_key(key)])
    batches = [part.numpy() for _, part in table.export_batches(7)]
    assert np.array_equal(np.concatenate([values[:0], *batches]), values)


def test_of_equal_keys_the_last_wins_and_first_keeps():
    table = thtf.HashTable(tf.int64, tf.string, "")
    table.insert([1, 2, 1], ["a", "b", "c"])
    table.accumulate([1, 3, 3], ["x", "y", "z"], reduce="first")
    assert table[[1, 2, 3]].numpy().tolist() == [b"c", b"b", b"y"]
    assert table.set([2, 9, 2], ["p", "q", "r"]).numpy().tolist() == [True, False, True]
    assert table[[2, 9]].numpy().tolist() == [b"r", b""]
    assert table.lookup([9, 8], ["u", "v"]).numpy().tolist() == [b"u", b"v"]


@pytest.mark.parametrize("key_dtype", [tf.int64, tf.string])
def test_a_recycled_entry_has_only_its_own_string(key_dtype):
    table = thtf.HashTable(key_dtype, tf.string, "none")
    as_keys = tf.strings.as_string if key_dtype == tf.string else tf.identity
    for round_ in range(5):
        keys = as_keys(tf.range(round_ * 10, round_ * 10 + 40, dtype=tf.int64))
        table.insert(keys, tf.fill([40], f"round {round_}"))
        table.remove(keys[:30])
        left = as_keys(tf.range(round_ * 10 + 30, round_ * 10 + 40, dtype=tf.int64))
        assert table[left].numpy().tolist() == [b"round %d" % round_] * 10
        assert table[keys[:30]].numpy().tolist() == [b"none"] * 30
    table.clear()
    assert table[as_keys(tf.constant([41], tf.int64))].numpy().tolist() == [b"none"]
    table.insert(as_keys(tf.constant([41], tf.int64)), ["new"])
    assert table[as_keys(tf.constant([41], tf.int64))].numpy().tolist() == [b"new"]


def test_calls_that_need_numbers_are_refused_and_change_nothing():
    table = thtf.HashTable(tf.int64, tf.string, "")
    table.insert([1], ["a"])
    for reduce in ("sum", "min", "max"):
        with pytest.raises(Refused, match=f"reduce: expected first or last.*got {reduce}"):
            table.accumulate([1, 2], ["b", "c"], reduce=reduce)
    with pytest.raises(Refused, match="gradients: expected a table of floats"):
        table.update([1], ["b"], tensorhash.optim.SGD())
    with pytest.raises(Refused, match="devices: expected none, or cpu:0, for string keys and"):
        thtf.HashTable(tf.int64, tf.string, "", devices=["cpu:0", "cpu:1"])
    with pytest.raises(Refused, match="values: expected string, got int"):
        table.insert([1], [2])
    assert table[[1, 2]].numpy().tolist() == [b"a", b""]


@pytest.mark.parametrize("key_dtype", [tf.int64, tf.string])
def test_checkpoints_and_saved_models_hold_the_strings(key_dtype, tmp_path):
    keys = tf.constant([1, 2, 3], tf.int64)
    keys = tf.strings.as_string(keys) if key_dtype == tf.string else keys
    module = tf.Module()
    module.table = thtf.HashTable(key_dtype, tf.string, "none")
    module.table.insert(keys, ["a", "b\0c", "d" * 100])
    module.look = tf.function(
        module.table.lookup, input_signature=[tf.TensorSpec([None], key_dtype)]
    )
    file = tf.train.Checkpoint(table=module.table).save(tmp_path / "checkpoint")
    other = thtf.HashTable(key_dtype, tf.string, "none")
    tf.train.Checkpoint(table=other).restore(file).assert_consumed()
    assert other[keys].numpy().tolist() == [b"a", b"b\0c", b"d" * 100]
    tf.saved_model.save(module, tmp_path / "model")
    loaded = tf.saved_model.load(tmp_path / "model")
    assert loaded.look(keys).numpy().tolist() == [b"a", b"b\0c", b"d" * 100]


def test_tensorflows_table_of_strings_restores_into_ours(tmp_path):
    theirs = tf.lookup.experimental.MutableHashTable(tf.int64, tf.string, "")
    theirs.insert(tf.constant([1, 2], tf.int64), tf.constant(["a", "b"]))
    file = tf.train.Checkpoint(table=theirs).save(tmp_path / "checkpoint")
    ours = thtf.HashTable(tf.int64, tf.string, "")
    tf.train.Checkpoint(table=ours).restore(file).assert_consumed()
    assert ours[[2, 1]].numpy().tolist() == [b"b", b"a"]


def test_static_tables_of_strings():
    table = thtf.StaticHashTable((["x", "y", "x"], ["a", "b", "a"]), "none")
    assert table[["y", "z"]].numpy().tolist() == [b"b", b"none"]
    with pytest.raises(Refused, match="row 1 has the key of an earlier row"):
        thtf.StaticHashTable((["x", "x"], ["a", "b"]), "none")


@pytest.mark.parametrize("bits", [0, 3])
def test_strings_that_collide_are_different_keys(bits, rng):
    handle = thtf.ops.tensorhash_anonymous_table(
        key_dtype=tf.string, value_dtype=tf.string, hash_bits=bits
    )
    keys = tf.strings.as_string(tf.range(50))
    raw.LookupTableInsertV2(table_handle=handle, keys=keys, values=tf.strings.join(["v", keys]))
    raw.LookupTableRemoveV2(table_handle=handle, keys=keys[::3])
    found = raw.LookupTableFindV2(table_handle=handle, keys=keys, default_value="")
    want = [b"" if row % 3 == 0 else b"v%d" % row for row in range(50)]
    assert found.numpy().tolist() == want
