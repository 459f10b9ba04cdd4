"""The embedding layer learns ids that it has never seen."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf


def make_model(key_dtype="int64", **kwargs):
    inputs = keras.Input((2,), dtype=key_dtype)
    layer = thtf.Embedding(4, key_dtype=key_dtype, **kwargs)
    out = keras.layers.Dense(1, use_bias=False)(keras.layers.Flatten()(layer(inputs)))
    return keras.Model(inputs, out), layer


@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 0.1), ("adagrad", 0.2)])
def test_it_converges_on_new_ids(optimizer, rate):
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(2)
    # Ids from all of int64: no dense table could hold them.
    ids = rng.integers(-(2**62), 2**62, 50)
    worth = dict(zip(ids.tolist(), rng.normal(size=50), strict=True))
    pairs = rng.choice(ids, (400, 2))
    target = np.array([[worth[a] - worth[b]] for a, b in pairs.tolist()], np.float32)
    model, layer = make_model(optimizer=optimizer, learning_rate=rate)
    model.compile(keras.optimizers.SGD(0.05), "mse")
    losses = model.fit(pairs, target, batch_size=20, epochs=25, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 20
    assert int(layer.table.size()) == 50
    # Ids that come later are learned too, and the others are not forgotten.
    later = rng.integers(-(2**62), 2**62, (40, 2))
    goal = rng.normal(size=(40, 1)).astype(np.float32)
    before = float(model.evaluate(later, goal, verbose=0))
    model.fit(
        np.concatenate([pairs, later]), np.concatenate([target, goal]),
        batch_size=20, epochs=25, verbose=0,
    )  # fmt: skip
    assert float(model.evaluate(later, goal, verbose=0)) < before / 10
    assert int(layer.table.size()) == 50 + 80


def test_one_step_of_sgd_is_the_gradient_summed_over_equal_ids():
    layer = thtf.Embedding(3, optimizer="sgd", learning_rate=0.5, embeddings_initializer="zeros")
    ids = tf.constant([[7, 7], [8, 7]], tf.int64)
    weight = tf.reshape(tf.range(12.0), (2, 2, 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids, training=True) * weight)
    assert float(tape.gradient(loss, layer.trainable_variables)[0]) == 0
    want = -0.5 * (weight[0, 0] + weight[0, 1] + weight[1, 1])
    assert layer.table[7].numpy().tolist() == want.numpy().tolist()
    assert layer.table[8].numpy().tolist() == (-0.5 * weight[1, 0]).numpy().tolist()


def test_inference_adds_no_ids():
    layer = thtf.Embedding(3)
    assert layer(tf.constant([1, 2])).numpy().tolist() == [[0] * 3] * 2
    assert int(layer.table.size()) == 0
    layer(tf.constant([1, 2, 1]), training=True)
    assert int(layer.table.size()) == 2


@pytest.mark.parametrize("key_dtype", ["int64", "string"])
def test_keras_files_hold_the_rows(key_dtype, tmp_path):
    model = make_model(key_dtype)[0]
    ids = np.array([[1, 2], [3, 4]])
    ids = tf.strings.as_string(ids) if key_dtype == "string" else tf.constant(ids)
    model(ids, training=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert np.array_equal(loaded(ids), model(ids))
    assert int(loaded.layers[1].table.size()) == 4
    model.export(tmp_path / "exported", verbose=False)
    served = tf.saved_model.load(tmp_path / "exported")
    assert np.array_equal(served.serve(ids), model(ids))


def test_a_saved_training_step_goes_on_training(tmp_path):
    class Trainer(tf.Module):
        def __init__(self):
            self.layer = thtf.Embedding(2, learning_rate=0.5, embeddings_initializer="zeros")
            self.layer.build(None)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def step(self, ids):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((self.layer(ids, training=True) - 1) ** 2)
            tape.gradient(loss, self.layer.trainable_variables)
            return loss

    trainer = Trainer()
    ids = tf.constant([5, 6], tf.int64)
    first = float(trainer.step(ids))
    tf.saved_model.save(trainer, tmp_path / "trainer")
    loaded = tf.saved_model.load(tmp_path / "trainer")
    losses = [first] + [float(loaded.step(ids)) for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < first / 10


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(ValueError, match="optimizer: expected one of sgd, adagrad, got 'adam'"):
        thtf.Embedding(3, optimizer="adam")


@pytest.mark.parametrize("ids", [[1.5], np.array([2**32 + 1]), np.array([2**31], np.uint32)])
@pytest.mark.parametrize("graph", [False, True])
def test_ids_that_the_table_cannot_hold_are_refused(ids, graph):
    layer = thtf.Embedding(3, key_dtype="int32")
    layer(tf.constant([1]))
    call = tf.function(layer) if graph else layer
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected ids that int32 can hold"):
        call(tf.convert_to_tensor(ids))


def test_ids_of_other_numbers_that_fit_are_taken():
    layer = thtf.Embedding(3, key_dtype="int64")
    layer.table.insert(tf.constant([7], tf.int64), [[1.0, 2.0, 3.0]])
    for dtype in (tf.int32, tf.uint8, tf.float32):
        assert layer(tf.constant([7], dtype)).numpy().tolist() == [[1, 2, 3]]
