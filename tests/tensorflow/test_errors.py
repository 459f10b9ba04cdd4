"""Invalid calls raise InvalidArgument with expectation and value, eagerly and when traced."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf

Invalid = tf.errors.InvalidArgumentError
raw = tf.raw_ops


@pytest.fixture
def table():
    made = thtf.HashTable(tf.int64, tf.float32, tf.zeros(4))
    made.insert([1, 2], tf.ones((2, 4)))
    yield made
    assert int(made.size()) == 2  # a call that fails changes nothing


CALLS = {
    "values": (lambda t: t.insert([1, 2, 3], tf.ones((3, 5))), r"\[3,4\].*\[3,5\]"),
    "rows": (lambda t: t.insert([1, 2, 3], tf.ones((2, 4))), r"\[3,4\].*\[2,4\]"),
    "accumulate": (lambda t: t.accumulate([9], tf.ones(4)), r"\[1,4\].*\[4\]"),
    "default": (lambda t: t.lookup([1, 2, 3], tf.ones(3)), r"\[4\] or \[3,4\].*\[3\]"),
    "default rows": (lambda t: t.lookup([1, 2, 3], tf.ones((2, 4))), r"\[4\] or \[3,4\].*\[2,4\]"),
    "keys dtype": (lambda t: t.lookup(tf.constant([1])), "expected int64, got int32"),
    "values dtype": (
        lambda t: t.insert([1], tf.ones((1, 4), tf.float64)),
        "expected float32, got float64",
    ),
    "default dtype": (lambda t: t.lookup([1], tf.ones(4, tf.int32)), "expected float32, got int32"),
    "remove dtype": (lambda t: t.remove(tf.constant([1.5])), "expected int64, got float32"),
    "reserve": (lambda t: t.reserve(-1), "-1"),
    "reserve several": (lambda t: t.reserve([10, 20]), r"capacity|rank 0"),
    "export several": (lambda t: next(t.export_batches([1, 2])), r"batch_size.*\[1, 2\]"),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_eagerly(table, name):
    call, message = CALLS[name]
    with pytest.raises(Invalid, match=message):
        call(table)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "reserve"])
def test_wrong_arguments_when_traced(table, name):
    call, message = CALLS[name]
    with pytest.raises((Invalid, ValueError), match=message):
        tf.function(lambda: call(table)).get_concrete_function()


def test_batches_are_exported_eagerly_only(table):
    match = "export_batches: expected an eager call, got .*tf.function.*use export"
    with pytest.raises(RuntimeError, match=match):
        tf.function(lambda: next(table.export_batches(5)))()
    with pytest.raises(RuntimeError, match=match), tf.Graph().as_default():
        table.export_batches(5)


def test_shapes_unknown_to_a_trace_fail_when_run(table):
    @tf.function(input_signature=[tf.TensorSpec(None, tf.int64), tf.TensorSpec(None, tf.float32)])
    def insert(keys, values):
        table.insert(keys, values)

    with pytest.raises(Invalid, match=r"\[3,4\].*\[3,5\]"):
        insert(tf.constant([1, 2, 3], tf.int64), tf.ones((3, 5)))


def calls_with_one_wrong_input(table):
    """Every op with inputs beyond keys and values, and a tensor of the wrong shape for each."""
    handle = table.resource_handle
    several = tf.stack([handle, handle])
    two = tf.constant([1, 2], tf.int64)
    types = {"Tin": tf.int64, "Tout": tf.float32, "value_shape": [4]}
    ops = thtf.ops
    return {
        "reserve": (lambda n: ops.tensorhash_reserve(handle, n), two, "capacity"),
        "reserve none": (lambda n: ops.tensorhash_reserve(handle, n), two[:0], "capacity"),
        "begin": (lambda n: ops.tensorhash_export(handle, n, 9, 9, **types), two, "begin"),
        "end": (lambda n: ops.tensorhash_export(handle, 0, n, 9, **types), two, "end"),
        "limit": (lambda n: ops.tensorhash_export(handle, 0, 9, n, **types), two, "limit"),
        "limit of rank 1": (lambda n: ops.tensorhash_export(handle, 0, 9, n, **types), two[:1], "limit"),
        "table": (ops.tensorhash_clear, several, "table"),
        "tables": (lambda h: ops.tensorhash_find(h, two, tf.zeros(4), value_shape=[4]), several, "table"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["reserve", "reserve none", "begin", "limit", "limit of rank 1", "table", "tables"]
)
def test_the_ops_check_scalars(table, name):
    call, given, argument = calls_with_one_wrong_input(table)[name]
    match = rf"{argument}: expected .*scalar.* got .*\[{given.shape[0]}\]"
    with pytest.raises(Invalid, match=match):
        call(given)

    @tf.function(input_signature=[tf.TensorSpec(None, given.dtype)])
    def later(unknown):
        call(unknown)

    with pytest.raises(Invalid, match=match):
        later(given)


def test_ranks_unknown_to_a_trace_fail_when_run():
    table = thtf.HashTable(tf.int32, tf.float32, tf.zeros(2), key_shape=(3,))
    handle, unknown = table.resource_handle, tf.TensorSpec(None, tf.int32)
    numbers = tf.TensorSpec(None, tf.float32)
    shapes = {"key_shape": [3], "value_shape": [2]}
    calls = {
        "find": lambda k, v: thtf.ops.tensorhash_find(handle, k, v, **shapes),
        "raw find": lambda k, v: raw.LookupTableFindV2(
            table_handle=handle, keys=k, default_value=v
        ),
        "accumulate": lambda k, v: thtf.ops.tensorhash_accumulate(handle, k, v, **shapes),
        "raw insert": lambda k, v: raw.LookupTableInsertV2(table_handle=handle, keys=k, values=v),
        "import": lambda k, v: thtf.ops.tensorhash_import(handle, k, v, **shapes),
        "remove": lambda k, v: thtf.ops.tensorhash_remove(handle, k, Tout=tf.float32, **shapes),
        "initialize": lambda k, v: thtf.ops.tensorhash_initialize(handle, k, v, **shapes),
    }
    for name, call in calls.items():

        @tf.function(input_signature=[unknown, numbers], autograph=False)
        def traced(keys, values, name=name, call=call):
            result = call(keys, values)
            return result if "find" in name else tf.constant(0)

        for keys in (tf.constant(1), tf.zeros(4, tf.int32), tf.zeros((2, 4), tf.int32)):
            with pytest.raises(Invalid, match=r"\[3\]"):
                traced(keys, tf.zeros((2, 2)))
        if name != "remove":
            for values in (tf.constant(1.0), tf.zeros((3, 2)), tf.zeros((2, 3))):
                with pytest.raises(Invalid, match=r"\[2,2\]|\[2\]"):
                    traced(tf.zeros((2, 3), tf.int32), values)
    assert int(table.size()) == 0


def test_an_export_of_other_dtypes_is_refused(table):
    handle = table.resource_handle
    match = "expected a table of int32 to float, got .*int64"
    with pytest.raises(Invalid, match=match):
        thtf.ops.tensorhash_export(handle, 0, 9, 9, Tin=tf.int32, Tout=tf.float32, value_shape=[4])
    with pytest.raises(Invalid, match=match):
        raw.LookupTableExportV2(table_handle=handle, Tkeys=tf.int32, Tvalues=tf.float32)
    strings = thtf.HashTable(tf.string, tf.float32, 0.0)
    with pytest.raises(Invalid, match="expected a table of int32 to float, got .*string"):
        raw.LookupTableExportV2(
            table_handle=strings.resource_handle, Tkeys=tf.int32, Tvalues=tf.float32
        )


def test_vector_keys_of_the_wrong_width():
    table = thtf.HashTable(tf.int32, tf.int32, -1, key_shape=(3,))
    for call in (
        lambda: table.insert(np.zeros((5, 4), np.int32), np.zeros(5, np.int32)),
        lambda: table.lookup(np.zeros((5, 4), np.int32)),
        lambda: table.remove(np.zeros((5, 4), np.int32)),
        lambda: table.lookup(np.int32(1)),
    ):
        with pytest.raises(Invalid, match=r"\[3\]"):
            call()
        with pytest.raises((Invalid, ValueError), match=r"keys: expected.*\[3\], got"):
            tf.function(call).get_concrete_function()


def test_imports_are_lists_of_keys(table):
    with pytest.raises(Invalid):
        table._import(tf.zeros((2, 2), tf.int64), tf.zeros((2, 2, 4)))
    with pytest.raises(Invalid):
        table._import(tf.zeros((2,), tf.int64), tf.zeros((3, 4)))


def foreign_handles():
    mutable = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, tf.zeros(4))
    return {"MutableHashTable": mutable, "variable": tf.Variable(1.0)}


@pytest.mark.parametrize("kind", ["MutableHashTable", "variable"])
def test_foreign_handles_are_refused(kind):
    foreign = foreign_handles()[kind]
    handle = foreign.handle if kind == "variable" else foreign.resource_handle
    keys = tf.constant([1], tf.int64)
    match = "expected a tensorhash table" if kind == "MutableHashTable" else "LookupInterface"
    for call in (
        lambda: thtf.ops.tensorhash_clear(handle),
        lambda: thtf.ops.tensorhash_find(handle, keys, tf.zeros(4), value_shape=[4]),
        lambda: thtf.ops.tensorhash_accumulate(handle, keys, tf.zeros((1, 4)), value_shape=[4]),
    ):
        with pytest.raises(Invalid, match=match):
            call()


def test_the_raw_ops_check_dtypes(table):
    handle = table.resource_handle
    with pytest.raises(Invalid):
        raw.LookupTableFindV2(table_handle=handle, keys=tf.constant([1]), default_value=tf.zeros(4))
    with pytest.raises(Invalid):
        thtf.ops.tensorhash_accumulate(handle, tf.constant([1]), tf.zeros((1, 4)), value_shape=[4])


def test_impossible_tables_are_refused():
    with pytest.raises((Invalid, TypeError), match="complex64|value_dtype"):
        thtf.HashTable(tf.int64, tf.complex64, 0)
    with pytest.raises((Invalid, TypeError), match="key_dtype"):
        thtf.HashTable(tf.float16, tf.int64, 0)
    with pytest.raises(Invalid, match="at least one element"):
        thtf.HashTable(tf.int64, tf.float32, tf.zeros((0,)))
    with pytest.raises(Invalid, match=r"\[\] for string keys, got \[2\]"):
        thtf.HashTable(tf.string, tf.float32, 0.0, key_shape=(2,))
    with pytest.raises((Invalid, ValueError, TypeError)):
        thtf.HashTable(tf.int64, tf.float32, 0.0, capacity=-1)
    with pytest.raises((Invalid, ValueError, TypeError)):
        thtf.HashTable(tf.int64, tf.float32, 0.0, key_shape=(None,))
