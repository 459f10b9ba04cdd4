"""A dataset that looks up keys can save its position; one that changes a table cannot."""

from __future__ import annotations

import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf


def tables() -> dict:
    keys = tf.range(10, dtype=tf.int64)
    mutable = thtf.HashTable(tf.int64, tf.int64, -1)
    named = thtf.HashTable(tf.int64, tf.int64, -1, shared_name="iterated")
    for table in (mutable, named):
        table.insert(keys, keys * 10)
    return {
        "mutable": mutable,
        "named": named,
        "static": thtf.StaticHashTable((keys, keys * 10), -1),
    }


def read_all(table) -> tf.Tensor:
    """A function with both ops that read."""
    return tf.reduce_sum(table.export()[1])


@pytest.mark.parametrize("kind", ["mutable", "named", "static"])
def test_an_iterator_continues_where_it_was_saved(kind, tmp_path):
    table = tables()[kind]
    data = tf.data.Dataset.range(12).map(lambda key: table.lookup(key) + 0 * read_all(table))
    iterator = iter(data)
    assert [int(next(iterator)) for _ in range(3)] == [0, 10, 20]
    saved = tf.train.Checkpoint(iterator=iterator).save(tmp_path / "iterator")
    assert [int(next(iterator)) for _ in range(4)] == [30, 40, 50, 60]
    another = iter(data)
    for restored in (iterator, another):
        tf.train.Checkpoint(iterator=restored).restore(saved).assert_consumed()
        assert [int(value) for value in restored] == [30, 40, 50, 60, 70, 80, 90, -1, -1]


@pytest.mark.parametrize("change", ["insert", "remove"])
def test_an_iterator_that_changes_a_table_is_not_saved(change, tmp_path):
    # Restoring it would not undo its changes to the table.
    table = tables()["mutable"]

    def step(key):
        if change == "insert":
            table.insert([key], [key])
        else:
            table.remove([key])
        return key

    iterator = iter(tf.data.Dataset.range(5).map(step))
    next(iterator)
    with pytest.raises(tf.errors.FailedPreconditionError, match="stateful"):
        tf.train.Checkpoint(iterator=iterator).save(tmp_path / "iterator")
