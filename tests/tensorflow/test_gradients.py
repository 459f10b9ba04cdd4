"""A table is a constant for a tape: no gradient reaches keys or defaults; others are unaffected."""

from __future__ import annotations

import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf


def make(kind: str, key_dtype: tf.DType):
    keys, values = tf.constant([1, 2], key_dtype), tf.constant([10.0, 20.0])
    if kind == "static":
        return thtf.StaticHashTable((keys, values), 0.0)
    table = thtf.HashTable(key_dtype, tf.float32, 0.0)
    table.insert(keys, values)
    return table


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
@pytest.mark.parametrize("kind", ["mutable", "static"])
def test_variables_as_keys_and_defaults(kind, wrap):
    by_number, by_float = make(kind, tf.int64), make(kind, tf.float32)
    variable = tf.Variable([1.0, 5.0])

    @wrap
    def gradient(use):
        with tf.GradientTape() as tape:
            found = use()
            loss = tf.reduce_sum(found) + tf.reduce_sum(variable * variable)
        return found, tape.gradient(loss, variable)

    cases = {
        "default": (lambda: by_number.lookup([1, 3], dynamic_default_values=variable), [10, 5]),
        "computed default": (
            lambda: by_number.lookup([1, 3], dynamic_default_values=variable * 2),
            [10, 10],
        ),
        "keys": (lambda: by_float.lookup(variable), [10, 0]),
        "export": (lambda: by_number.export()[1], [10, 20]),
    }
    for name, (use, want) in cases.items():
        found, flow = gradient(use)
        assert sorted(found.numpy().tolist()) == sorted(want), name
        assert flow.numpy().tolist() == [2, 10], name


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_results_of_a_table_are_constants(wrap):
    table = make("mutable", tf.int64)
    variable = tf.Variable(3.0)

    @wrap
    def gradient():
        with tf.GradientTape() as tape:
            values = table.lookup([1, 7], dynamic_default_values=tf.fill([2], variable))
        return tape.gradient(values, variable, unconnected_gradients="zero")

    assert float(gradient()) == 0


def test_changes_do_not_disturb_a_tape():
    table = make("mutable", tf.float32)
    variable = tf.Variable([1.0, 5.0])

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            table.insert(variable, variable * 2)
            table.accumulate(variable, variable)
            table.remove(variable[1:])
            loss = tf.reduce_sum(variable * table.lookup(variable))
        return tape.gradient(loss, variable)

    assert gradient().numpy().tolist() == [3, 0]
