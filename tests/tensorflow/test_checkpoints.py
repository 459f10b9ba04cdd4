"""Checkpoints go both ways between TensorFlow's tables and ours, by object and by name."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf

v1 = tf.compat.v1
Theirs = tf.lookup.experimental.MutableHashTable
KINDS = [
    (tf.int64, tf.float32, 0.0),
    (tf.int64, tf.float32, [0.0, 0.0]),
    (tf.string, tf.int64, -1),
    (tf.int64, tf.int64, [0, 0, 0]),
]


def fill(table, key_dtype, value_dtype, default):
    keys = tf.range(50, dtype=tf.int64) * 7 - 100
    values = tf.cast(tf.range(50), value_dtype)
    if np.ndim(default):
        values = tf.stack([values] * len(default), 1)
    table.insert(tf.strings.as_string(keys) if key_dtype == tf.string else keys, values)


def contents(table):
    keys, values = table.export()
    return dict(zip(keys.numpy().tolist(), values.numpy().tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("into", ["ours", "theirs"])
@pytest.mark.parametrize("devices", [None, ["cpu:0", "cpu:1"]])
def test_checkpoints_of_objects_go_both_ways(kind, into, devices, tmp_path):
    if kind[0] == tf.string:
        devices = None
    ours, theirs = thtf.HashTable(*kind, devices=devices), Theirs(*kind)
    source, target = (theirs, ours) if into == "ours" else (ours, theirs)
    fill(source, *kind)
    file = tf.train.Checkpoint(model=source).write(str(tmp_path / "checkpoint"))
    names = {name for name, _ in tf.train.list_variables(file)}
    assert {"model/.ATTRIBUTES/table-keys", "model/.ATTRIBUTES/table-values"} <= names
    tf.train.Checkpoint(model=target).read(file).assert_consumed()
    assert contents(target) == contents(source)
    assert len(contents(target)) == 50


def run(*operations):
    """Results of the operations in one session of the default graph, after tables_initializer."""
    with v1.Session() as session:
        session.run(v1.tables_initializer())
        return [session.run(operation) for operation in operations]


def one_graph(make, kind, file=None, save=None):
    """Makes a table in its own graph, restores or fills it, and returns its contents."""
    with tf.Graph().as_default():
        table = make(*kind, name="the_table")
        keys = tf.constant([3, 4, 5], tf.int64)
        values = tf.reshape(tf.range(6.0), (3, 2))
        insert, exported = table.insert(keys, values), table.export()
        saver = v1.train.Saver()
        with v1.Session() as session:
            session.run(v1.tables_initializer())
            if file is None:
                session.run(insert)
                saver.save(session, save)
            else:
                saver.restore(session, file)
            found = session.run(exported)
            assert session.run(table.size()) == 3
    return dict(zip(found[0].tolist(), found[1].tolist(), strict=True))


KIND = (tf.int64, tf.float32, [0.0, 0.0])
Maker = {
    "ours": thtf.HashTable,
    "theirs": Theirs,
    "sharded": lambda *kind, name: thtf.HashTable(*kind, name, devices=["cpu:0", "cpu:1"]),
}


@pytest.mark.parametrize("source", Maker)
@pytest.mark.parametrize("target", Maker)
def test_a_saver_of_tensorflow_1_goes_both_ways(source, target, tmp_path):
    file = str(tmp_path / "saved")
    want = one_graph(Maker[source], KIND, save=file)
    assert {name for name, _ in tf.train.list_variables(file)} == {
        "the_table-keys",
        "the_table-values",
    }
    assert (
        one_graph(Maker[target], KIND, file=file)
        == want
        == {
            3: [0, 1],
            4: [2, 3],
            5: [4, 5],
        }
    )


@pytest.mark.parametrize("make", [thtf.HashTable, Theirs])
def test_checkpoint_false_hides_a_table_from_the_saver(make):
    with tf.Graph().as_default():
        make(tf.int64, tf.int64, -1, "a_name", False)
        assert not v1.get_collection(v1.GraphKeys.SAVEABLE_OBJECTS)
        make(tf.int64, tf.int64, -1, "a_name", True)
        [saved] = v1.get_collection(v1.GraphKeys.SAVEABLE_OBJECTS)
        assert [spec.name for spec in saved.specs] == ["a_name-keys", "a_name-values"]


def test_an_anonymous_table_cannot_have_a_name():
    with pytest.raises(tf.errors.InvalidArgumentError, match="shared_name: expected none"):
        thtf.HashTable(tf.int64, tf.int64, -1, experimental_is_anonymous=True, shared_name="x")
    assert int(thtf.HashTable(tf.int64, tf.int64, -1, "x", True, True)[3]) == -1


def test_tables_initializer_fills_static_tables(tmp_path):
    (tmp_path / "words").write_text("a\nb\n")
    with tf.Graph().as_default():
        file = tf.lookup.TextFileInitializer(
            str(tmp_path / "words"), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
        )  # fmt: skip
        pairs = thtf.StaticHashTable(([1, 2], [10, 20]), -1)
        initializer = tf.lookup.KeyValueTensorInitializer([1, 2], [30, 40])
        tensors = thtf.StaticHashTable(initializer, -1)
        lines = thtf.StaticHashTable(file, tf.constant(-1, tf.int64))
        assert pairs.initializer in v1.get_collection(v1.GraphKeys.TABLE_INITIALIZERS)
        got = run(pairs[[1, 2, 3]], tensors[[2]], lines[["b", "c"]])
    assert [part.tolist() for part in got] == [[10, 20, -1], [40], [1, -1]]


def test_a_table_keeps_its_contents_between_runs_of_a_session():
    with tf.Graph().as_default():
        table = thtf.HashTable(tf.int64, tf.int64, -1)
        key = v1.placeholder(tf.int64, [None])
        insert, found = table.insert(key, key * 2), table.lookup(key)
        with v1.Session() as session:
            session.run(insert, {key: [1, 2]})
            assert session.run(found, {key: [2, 3]}).tolist() == [4, -1]
            assert session.run(table.size()) == 2


SERVED_KEYS = tf.constant([1, 2], tf.int64)
SERVED = {
    "ours": lambda: thtf.HashTable(tf.int64, tf.int64, -1),
    "sharded": lambda: thtf.HashTable(tf.int64, tf.int64, -1, devices=["cpu:0", "cpu:1"]),
    "named": lambda: thtf.HashTable(tf.int64, tf.int64, -1, shared_name="served"),
    "theirs": lambda: Theirs(tf.int64, tf.int64, -1),
    "static": lambda: thtf.StaticHashTable((SERVED_KEYS, SERVED_KEYS * 10), -1),
}


@pytest.mark.parametrize("kind", SERVED)
def test_a_server_that_runs_the_graph_in_a_session_finds_the_contents(kind, tmp_path):
    """Like TensorFlow Serving: without Python, restoring in one run, looking up in another."""
    module = tf.Module()
    module.table = SERVED[kind]()
    if kind != "static":
        module.table.insert(SERVED_KEYS, SERVED_KEYS * 10)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="keys")])
    def look(keys):
        return {"found": module.table.lookup(keys)}

    tf.saved_model.save(module, tmp_path / "model", signatures=look)
    with tf.Graph().as_default(), v1.Session() as session:
        meta = v1.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        signature = meta.signature_def["serving_default"]
        found, keys = signature.outputs["found"].name, signature.inputs["keys"].name
        for _ in range(2):
            assert session.run(found, {keys: [2, 1, 3]}).tolist() == [20, 10, -1]
    loaded = [tf.saved_model.load(tmp_path / "model") for _ in range(2)]
    for one in loaded:
        answer = one.signatures["serving_default"](tf.constant([2, 3], tf.int64))["found"]
        assert answer.numpy().tolist() == [20, -1]
