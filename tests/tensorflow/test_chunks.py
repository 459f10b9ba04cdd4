"""HashTable.save and restore: large tables in chunks."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf


@pytest.mark.parametrize("key_dtype", [tf.int64, tf.string])
@pytest.mark.parametrize("chunk_bytes", [1, 100, 1 << 20])
def test_a_restored_table_has_the_same_entries(rng, tmp_path, key_dtype, chunk_bytes):
    table = thtf.HashTable(key_dtype, tf.float32, [0.0, 0.0])
    numbers = rng.permutation(100)
    keys = numbers.astype(str).astype(object) if key_dtype == tf.string else numbers
    table.insert(keys, rng.random((100, 2)).astype(np.float32))
    table.remove(keys[::3])
    path = table.save(tmp_path / "table", chunk_bytes=chunk_bytes)
    data = [one for one in tmp_path.iterdir() if ".data-" in one.name]
    assert len(data) == {1: len(keys[1::3]) + len(keys[2::3]), 1 << 20: 1}.get(
        chunk_bytes, len(data)
    )
    again = thtf.HashTable(key_dtype, tf.float32, [0.0, 0.0])
    again.insert(keys[:5], np.ones((5, 2), np.float32))
    again.restore(path)
    assert int(again.size()) == int(table.size()) == 66
    assert np.array_equal(again.lookup(keys), table.lookup(keys))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert names[:1] == ["keys-000000"]
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(
        ["table.index", *(one.name for one in data)]
    )


def test_an_empty_table_is_saved(tmp_path):
    table = thtf.HashTable(tf.int64, tf.float32, 0.0)
    path = table.save(tmp_path / "empty")
    table.insert([1], [1.0])
    table.restore(path)
    assert int(table.size()) == 0


def test_a_chunk_is_all_the_memory_that_saving_takes(tmp_path, monkeypatch):
    table = thtf.HashTable(tf.int64, tf.float32, tf.zeros(16))
    table.insert(np.arange(1000), np.ones((1000, 16), np.float32))
    seen = []
    save = tf.raw_ops.SaveV2
    monkeypatch.setattr(
        tf.raw_ops, "SaveV2", lambda **kw: (seen.append(kw["tensors"][0].shape[0]), save(**kw))
    )
    table.save(tmp_path / "t", chunk_bytes=72 * 100)
    assert seen == [100] * 10


def test_a_file_of_another_table_is_refused_before_anything_changes(tmp_path):
    path = thtf.HashTable(tf.int64, tf.float32, [0.0, 0.0]).save(tmp_path / "two")
    table = thtf.HashTable(tf.int64, tf.float32, 0.0)
    table.insert([1], [1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="path: expected a checkpoint of Hash"):
        table.restore(path)
    with pytest.raises(tf.errors.NotFoundError):
        table.restore(tmp_path / "nothing")
    with pytest.raises(tf.errors.InvalidArgumentError, match="chunk_bytes: expected at least 1"):
        table.save(tmp_path / "x", chunk_bytes=0)
    with pytest.raises(RuntimeError, match="save: expected an eager call"):
        tf.function(lambda: table.save(tmp_path / "x"))()
    bounded = thtf.HashTable(tf.int64, tf.float32, 0.0, max_capacity=4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="save: expected a table without max"):
        bounded.save(tmp_path / "x")
    assert int(table.size()) == 1
