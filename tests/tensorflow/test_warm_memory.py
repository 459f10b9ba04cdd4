"""Large outputs use the engine's memory: they outlive tables and are reused or released."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import tensorhash
import tensorhash.tensorflow as thtf

ROWS, DIM = 50_000, 16  # 3 MB of values


@pytest.fixture
def keys() -> tf.Tensor:
    return tf.range(ROWS, dtype=tf.int64)


@pytest.fixture
def values(keys: tf.Tensor) -> tf.Tensor:
    return tf.cast(keys, tf.float32)[:, None] + tf.range(DIM, dtype=tf.float32)


@pytest.fixture
def table(keys: tf.Tensor, values: tf.Tensor) -> thtf.HashTable:
    made = thtf.HashTable(tf.int64, tf.float32, tf.fill([DIM], -1.0))
    made.insert(keys, values)
    return made


def lookups(table: thtf.HashTable) -> dict:
    """Our lookup ops and TensorFlow's, called in every way."""

    def exists(keys):
        return table.lookup(keys, return_exists=True)[0]

    def theirs(keys):
        return tf.raw_ops.LookupTableFindV2(
            table_handle=table.resource_handle, keys=keys, default_value=tf.fill([DIM], -1.0)
        )

    plain = (table.lookup, exists, theirs)
    return {f"{i} {name}": how(f) for i, f in enumerate(plain) for name, how in WAYS.items()}


def address(tensor: tf.Tensor) -> int:
    """The address of the tensor itself; numpy() would copy it."""
    return np.asarray(memoryview(tensor)).__array_interface__["data"][0]


WAYS = {
    "eager": lambda f: f,
    "function": lambda f: tf.function(f),
    # x + 1 may overwrite x, the table's result, if nothing else refers to it.
    "forwarded": lambda f: tf.function(lambda keys: f(keys) + 1 - 1),
}


def test_results_are_right_each_time_and_do_not_change_afterwards(table, keys, values):
    for name, lookup in lookups(table).items():
        results = [lookup(keys) for _ in range(3)]
        results += [lookup(-1 - keys)]
        for result in results[:3]:
            assert (result.numpy() == values.numpy()).all(), name
        assert (results[3].numpy() == -1).all(), name


def test_the_memory_of_a_result_is_used_again(table, keys, values):
    tensorhash.release_memory()
    first = address(table.lookup(keys))
    again = table.lookup(keys)
    assert address(again) == first
    assert (again.numpy() == values.numpy()).all()
    other = table.lookup(keys)
    assert address(other) != first
    del again
    assert tensorhash.release_memory() >= ROWS * DIM * 4
    assert (other.numpy() == values.numpy()).all()


def test_results_and_exports_outlive_the_table(table, keys, values):
    found = table.lookup(keys)
    exported_keys, exported = table.export()
    view = np.asarray(memoryview(table.lookup(keys)))
    del table
    tensorhash.release_memory()
    # A new table may reuse the memory of the old one, but no memory in use.
    other = thtf.HashTable(tf.int64, tf.float32, tf.zeros(DIM))
    other.insert(keys, values * 0)
    assert (found.numpy() == values.numpy()).all()
    assert (view == values.numpy()).all()
    assert (exported_keys.numpy() == keys.numpy()).all()
    assert (exported.numpy() == values.numpy()).all()
    assert tf.io.serialize_tensor(found).shape == ()


def test_slices_and_arrays_keep_their_memory(table, keys, values):
    part = table.lookup(keys)[100:200]
    array = np.asarray(memoryview(table.lookup(keys)))[7]
    tensorhash.release_memory()
    table.lookup(-1 - keys)
    assert (part.numpy() == values.numpy()[100:200]).all()
    assert (array == values.numpy()[7]).all()


def test_a_forked_child_frees_a_result(table, keys):
    result = table.lookup(keys)
    child = os.fork()
    if child == 0:
        del result
        os._exit(0 if tensorhash.release_memory() >= ROWS * DIM * 4 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert result.shape == (ROWS, DIM)


def test_results_may_be_alive_at_exit():
    # The interpreter destroys globals in its own order.
    program = (
        "import tensorflow as tf, tensorhash.tensorflow as thtf\n"
        "table = thtf.HashTable(tf.int64, tf.float32, tf.zeros(16))\n"
        "keys = tf.range(50_000, dtype=tf.int64)\n"
        "table.insert(keys, tf.ones((50_000, 16)))\n"
        "tf.kept = [table.lookup(keys), memoryview(table.lookup(keys)), table.export()]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
