"""Tables with max_capacity: evictions, scores, checkpoints, beside tensorhash.BoundedHashMap."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tensorhash
import tensorhash.tensorflow as thtf


def make(eviction="lru", capacity=20, **kwargs):
    return thtf.HashTable(
        tf.int64, tf.float32, [0.0, 0.0], max_capacity=capacity, eviction=eviction, **kwargs
    )


@pytest.mark.parametrize("eviction", ["lru", "score"])
@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("reduce", ["first", "last", "sum"])
def test_evictions_are_those_of_the_engine(rng, eviction, graph, reduce):
    table = make(eviction)
    oracle = tensorhash.BoundedHashMap(20, "int64", (), "float32", (2,), eviction=eviction)

    def accumulate(keys, values, scores):
        given = scores if eviction == "score" else None
        return table.accumulate(keys, values, reduce=reduce, scores=given)

    call = tf.function(accumulate) if graph else accumulate
    for _ in range(6):
        keys = rng.integers(0, 40, 15)
        values = rng.integers(0, 9, (15, 2)).astype(np.float32)
        scores = rng.integers(-5, 5, 15)
        got = call(tf.constant(keys), tf.constant(values), tf.constant(scores))
        _, added, evicted = oracle.accumulate(
            keys, values, reduce=reduce, **({"scores": scores} if eviction == "score" else {})
        )
        assert got.added.numpy().tolist() == added.tolist()
        assert got.keys.numpy().tolist() == evicted.keys.tolist()
        assert np.array_equal(got.values, evicted.values)
        assert got.scores.numpy().tolist() == evicted.scores.tolist()
        table.touch(keys[:3])
        oracle.get(keys[:3], touch=True)
        gone = keys[-1:]
        table.remove(gone)
        oracle.erase(gone)
    keys, values, scores = table.export_scores()
    assert keys.numpy().tolist() == oracle.keys().tolist()
    assert np.array_equal(values, oracle.get(keys.numpy()))
    assert scores.numpy().tolist() == oracle.scores().tolist()
    assert np.array_equal(table.lookup(keys), values)


def test_set_and_update_keep_what_is_in_the_table(rng):
    table = make("score", capacity=2)
    table.insert([1, 2], [[1.0, 1.0], [2.0, 2.0]], scores=[5, 6])
    assert table.set([2, 3], [[7.0, 7.0], [9.0, 9.0]]).numpy().tolist() == [True, False]
    assert table.lookup([1, 2, 3]).numpy()[:, 0].tolist() == [1, 7, 0]
    assert sorted(table.export_scores()[2].numpy().tolist()) == [5, 6]
    table.update([1], [[1.0, 1.0]], tensorhash.optim.SGD(lr=0.5))
    assert table.lookup([1]).numpy().tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("way", ["checkpoint", "saved_model"])
@pytest.mark.parametrize("eviction", ["lru", "score"])
def test_a_restored_table_evicts_the_same_entries(rng, tmp_path, way, eviction):
    class Holder(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = make(eviction, capacity=8)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def insert(self, keys):
            values = tf.repeat(tf.cast(keys, tf.float32)[:, None], 2, axis=1)
            scores = keys % 5 if eviction == "score" else None
            return self.table.insert(keys, values, scores=scores).keys

    holder = Holder()
    holder.insert(tf.range(6, dtype=tf.int64))
    holder.insert(tf.constant([3, 9, 10, 1], tf.int64))
    if way == "checkpoint":
        path = tf.train.Checkpoint(holder=holder).save(tmp_path / "c")
        again = Holder()
        tf.train.Checkpoint(holder=again).restore(path).assert_consumed()
    else:
        tf.saved_model.save(holder, tmp_path / "m")
        again = tf.saved_model.load(tmp_path / "m")
    for _ in range(5):
        keys = tf.constant(rng.integers(0, 30, 5))
        assert holder.insert(keys).numpy().tolist() == again.insert(keys).numpy().tolist()


def test_a_state_of_another_kind_is_refused():
    table, other = make(capacity=4), make(capacity=5)
    table.insert([1], [[1.0, 2.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="with max_capacity 5, got one with"):
        other._restore_state(table._save_state())
    assert int(other.size()) == 0


def test_wrong_arguments_are_refused():
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(tf.errors.InvalidArgumentError, match="max_capacity: expected an integ"):
            make(capacity=wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match='eviction: expected "lru" or "score"'):
        make("fifo")
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected none for a table with str"):
        thtf.HashTable(tf.string, tf.float32, 0.0, max_capacity=4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="devices: expected none, or cpu:0"):
        make(devices=["cpu:0", "cpu:1"])
    table = make("score")
    with pytest.raises(tf.errors.InvalidArgumentError, match="scores: expected one per key"):
        table.insert([1], [[1.0, 1.0]])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="scores: expected one per key, 1, got"
    ):
        table.insert([1], [[1.0, 1.0]], scores=[1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="scores"):
        make("lru").insert([1], [[1.0, 1.0]], scores=[1])
    plain = thtf.HashTable(tf.int64, tf.float32, 0.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="scores: expected none for a table"):
        plain.insert([1], [1.0], scores=[1])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="touch: expected a table with max_cap"
    ):
        plain.touch([1])
    assert int(table.size()) == int(plain.size()) == 0


def test_calls_that_could_not_return_evicted_entries_are_refused():
    table = make()
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected one without max_capacity"):
        tf.raw_ops.LookupTableInsertV2(
            table_handle=table.resource_handle,
            keys=tf.constant([1], tf.int64),
            values=tf.constant([[1.0, 2.0]]),
        )
    assert int(table.size()) == 0


def test_a_shared_name_means_one_size():
    table = make(shared_name="bounded_twins", capacity=4)
    table.insert([1], [[1.0, 2.0]])
    assert int(make(shared_name="bounded_twins", capacity=4).size()) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="is another table"):
        make(shared_name="bounded_twins", capacity=5)
