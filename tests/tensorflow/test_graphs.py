"""Tables inside TensorFlow: functions, datasets, layers, checkpoints, SavedModels."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf


def make(key_dtype=tf.int64, key_shape=(), **kwargs):
    return thtf.HashTable(key_dtype, tf.float32, tf.zeros(2), key_shape=key_shape, **kwargs)


def in_a_new_process(code: str, *arguments: object) -> str:
    """Runs the code and returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_calls_in_a_function_happen_in_order():
    table = make()

    @tf.function
    def step(keys):
        before = table.lookup(keys)
        table.insert(keys, before + 1)
        middle = table.lookup(keys)
        table.accumulate(keys, tf.ones_like(middle))
        after, there = table.lookup(keys, return_exists=True)
        table.remove(keys)
        return before, middle, after, there, table.size()

    for _ in range(2):
        before, middle, after, there, size = step(tf.constant([4, 5], tf.int64))
        assert [int(x[0, 0]) for x in (before, middle, after)] == [0, 1, 2]
        assert there.numpy().all()
        assert int(size) == 0


def test_static_shapes_are_known_in_a_function():
    table = make(tf.int32, (3,))

    @tf.function(input_signature=[tf.TensorSpec([None, 7, 3], tf.int32)])
    def read(keys):
        values, exists = table.lookup(keys, return_exists=True)
        assert values.shape.as_list() == [None, 7, 2]
        assert exists.shape.as_list() == [None, 7]
        keys, values = table.export()
        assert keys.shape.as_list() == [None, 3]
        assert values.shape.as_list() == [None, 2]
        return exists

    assert read(tf.zeros((2, 7, 3), tf.int32)).shape == (2, 7)


def test_a_table_made_in_a_function_lives_outside_of_it():
    made = []

    @tf.function
    def build():
        if not made:
            made.append(make())
        made[0].accumulate(tf.constant([1], tf.int64), tf.ones((1, 2)))
        return made[0].lookup(tf.constant([1], tf.int64))

    build()
    assert build().numpy().tolist() == [[2, 2]]


def test_datasets():
    table = make()
    table.insert(np.arange(10), np.repeat(np.arange(10.0, dtype=np.float32)[:, None], 2, 1))
    data = tf.data.Dataset.range(12).batch(4).map(table.lookup, num_parallel_calls=2)
    assert data.element_spec.shape.as_list() == [None, 2]
    rows = np.concatenate(list(data.as_numpy_iterator()))
    assert rows[:, 0].tolist() == [*range(10), 0, 0]


def test_keras_models_export_and_reload(tmp_path):
    import keras

    class Lookup(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.table = make()
            self.table.insert([3], [[1.0, 2.0]])

        def call(self, keys):
            return self.table.lookup(keys)

    inputs = keras.Input((2,), dtype="int64")
    model = keras.Model(inputs, Lookup()(inputs))
    want = [[[1, 2], [0, 0]]]
    assert model(tf.constant([[3, 4]], tf.int64)).numpy().tolist() == want
    model.export(tmp_path / "model", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "model")
    assert loaded.serve(tf.constant([[3, 4]], tf.int64)).numpy().tolist() == want


KINDS = {
    "anonymous": {},
    "named": {"shared_name": "named"},
    "vector": {"key_dtype": tf.int32, "key_shape": (3,)},
    "string": {"key_dtype": tf.string},
}
KEYS = {
    "anonymous": [5, -6],
    "named": [5, -6],
    "vector": [[1, 2, 3], [3, 2, 1]],
    "string": ["five", "six\0"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints(kind, tmp_path):
    table = make(**KINDS[kind])
    table.clear()
    table.insert(KEYS[kind], [[1.0, 2.0], [3.0, 4.0]])
    path = tf.train.Checkpoint(table=table).save(tmp_path / "check")
    table.insert(KEYS[kind][:1], [[9.0, 9.0]])
    other = make(**{**KINDS[kind], "shared_name": None})
    other.accumulate(KEYS[kind][1:], [[7.0, 7.0]])
    for restored in (table, other):
        tf.train.Checkpoint(table=restored).restore(path).assert_consumed()
        assert restored.lookup(KEYS[kind]).numpy().tolist() == [[1, 2], [3, 4]]
        assert int(restored.size()) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_written_in_the_background(kind, tmp_path):
    """They hold the contents at the call of save."""
    table = make(**KINDS[kind])
    table.clear()
    options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
    checkpoint = tf.train.Checkpoint(table=table, step=tf.Variable(0))
    paths = []
    for version in (1.0, 2.0, 3.0):
        table.insert(KEYS[kind], tf.fill([2, 2], version))
        checkpoint.step.assign_add(1)
        paths.append(checkpoint.save(tmp_path / "check", options=options))
        table.clear()
    checkpoint.sync()
    for path, version in zip(paths, (1.0, 2.0, 3.0), strict=True):
        other = make(**{**KINDS[kind], "shared_name": None})
        step = tf.Variable(0)
        tf.train.Checkpoint(table=other, step=step).restore(path)
        assert other.lookup(KEYS[kind]).numpy().tolist() == [[version] * 2] * 2
        assert int(step) == int(version)


@pytest.mark.parametrize("kind", KINDS)
def test_the_copy_that_tensorflow_requests_is_an_independent_table(kind):
    table = make(**KINDS[kind])
    table.clear()
    table.insert(KEYS[kind], [[1.0, 2.0], [3.0, 4.0]])
    copies = {}
    table._copy_trackable_to_cpu(copies)
    copy = copies[table]
    assert copy.lookup(KEYS[kind]).numpy().tolist() == [[1, 2], [3, 4]]
    copy.clear()
    assert int(table.size()) == 2
    table.remove(KEYS[kind][:1])
    table._copy_trackable_to_cpu(copies)
    assert copies[table] is copy
    assert copy.lookup(KEYS[kind]).numpy().tolist() == [[0, 0], [3, 4]]


class Module(tf.Module):
    def __init__(self):
        self.tables = {kind: make(**options) for kind, options in KINDS.items()}
        for kind, table in self.tables.items():
            table.clear()
            table.insert(KEYS[kind], [[1.0, 2.0], [3.0, 4.0]])
        self.static = thtf.StaticHashTable({"a": 1, "b": 2}, -1)

    @tf.function(input_signature=[])
    def read(self):
        return {
            kind: table.lookup(tf.constant(KEYS[kind], table.key_dtype))
            for kind, table in self.tables.items()
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def number(self, texts):
        return self.static.lookup(texts)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def add(self, keys):
        table = self.tables["anonymous"]
        table.accumulate(keys, tf.ones([tf.size(keys), 2]))
        return table.lookup(keys)


def test_saved_models_in_a_new_process(tmp_path):
    tf.saved_model.save(Module(), tmp_path / "model")
    said = in_a_new_process(
        """
        import sys
        import tensorflow as tf
        import tensorhash.tensorflow
        first, second = (tf.saved_model.load(sys.argv[1]) for _ in range(2))
        for values in first.read().values():
            assert values.numpy().tolist() == [[1, 2], [3, 4]], values
        assert first.number(tf.constant(["b", "z"])).numpy().tolist() == [2, -1]
        keys = tf.constant([5], tf.int64)
        assert first.add(keys).numpy().tolist() == [[2, 3]]
        assert first.add(keys).numpy().tolist() == [[3, 4]]
        assert second.add(keys).numpy().tolist() == [[2, 3]], "two loads are two tables"
        print("good")
        """,
        tmp_path / "model",
    )
    assert said == "good"
