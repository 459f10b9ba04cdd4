"""The rows of an Embedding train like those of Keras' own, under the same optimizer.

The oracle is keras.layers.Embedding with a dense gradient. With the sparse gradient that Keras makes,
some of its optimizers treat each occurrence of an id apart: Adagrad sums squares, not the square of
the sum.
"""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf

IDS, WIDTH = 12, 4

SETTINGS = [
    ("SGD", {"learning_rate": 0.1}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.5, "nesterov": True, "clipvalue": 0.02}),
    ("Adagrad", {"learning_rate": 0.1}),
    ("Adagrad", {"learning_rate": 0.1, "initial_accumulator_value": 0.5, "clipnorm": 0.1}),
    ("Adam", {"learning_rate": 0.01}),
    ("Adam", {"learning_rate": 0.01, "amsgrad": True, "global_clipnorm": 0.1}),
    ("Adam", {"learning_rate": 0.01, "gradient_accumulation_steps": 3, "clipnorm": 0.1}),
    ("AdamW", {"learning_rate": 0.01, "weight_decay": 0.1}),
    ("AdamW", {"learning_rate": 0.01, "weight_decay": 0.1, "loss_scale_factor": 64.0}),
]


class DenseGradients(keras.Model):
    """A model that turns sparse gradients into dense ones before the optimizer gets them."""

    def train_step(self, data):
        inputs, target = data[:2]
        with tf.GradientTape() as tape:
            loss = self.compute_loss(inputs, target, self(inputs, training=True))
            scaled = self.optimizer.scale_loss(loss)
        slopes = [
            tf.convert_to_tensor(one) for one in tape.gradient(scaled, self.trainable_weights)
        ]
        self.optimizer.apply_gradients(zip(slopes, self.trainable_weights, strict=True))
        return {"loss": loss}


def model_of(embedding, length, kind=keras.Model):
    inputs = keras.Input((length,), dtype="int64")
    kernel = keras.initializers.RandomNormal(seed=3)
    hidden = keras.layers.Flatten()(embedding(inputs))
    return kind(inputs, keras.layers.Dense(1, kernel_initializer=kernel, dtype="float32")(hidden))


def pair(rng, length=IDS, **kwargs):
    """(a model with Keras' embedding, one with ours, a function that reads both embeddings)."""
    start = rng.normal(size=(IDS, WIDTH)).astype(np.float32)
    theirs = keras.layers.Embedding(IDS, WIDTH, **kwargs)
    ours = thtf.Embedding(WIDTH, **kwargs)
    models = model_of(theirs, length, DenseGradients), model_of(ours, length)
    theirs.set_weights([start])
    ours.table.insert(np.arange(IDS), start)
    return *models, lambda: (theirs.get_weights()[0], ours.table[np.arange(IDS)].numpy())


def batch(rng, rows=8, length=IDS):
    """Every id is in every row."""
    ids = np.stack([rng.permutation(IDS)[:length] for _ in range(rows)])
    return ids, rng.normal(size=(rows, 1)).astype(np.float32)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_rows_train_like_those_of_a_dense_embedding(rng, name, settings, eager):
    theirs, ours, rows = pair(rng)
    before = rows()[0]
    theirs.compile(getattr(keras.optimizers, name)(**settings), "mse", run_eagerly=eager)
    ours.compile(getattr(thtf.optimizers, name)(**settings), "mse", run_eagerly=eager)
    for _ in range(6):
        ids, target = batch(rng)
        theirs.train_on_batch(ids, target)
        ours.train_on_batch(ids, target)
    want, got = rows()
    assert np.abs(want - before).max() > 1e-3
    np.testing.assert_allclose(got, want, atol=2e-5)
    for one, other in zip(theirs.get_weights()[1:], ours.layers[-1].get_weights(), strict=True):
        np.testing.assert_allclose(other, one, atol=2e-5)


def test_rows_without_a_gradient_rest():
    """A row steps as if the optimizer had only ever seen the batches with its id."""
    layer = thtf.Embedding(2, embeddings_initializer="ones")
    optimizer = thtf.optimizers.SGD(0.1, momentum=0.9, weight_decay=0.01)
    lone = keras.Variable(np.ones((1, 2), np.float32))
    oracle = keras.optimizers.SGD(0.1, momentum=0.9, weight_decay=0.01)
    for ids in ([1, 2], [2], [1], [2, 2], [1]):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(tf.constant(ids), training=True) ** 2)
        optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
        if 1 in ids:
            oracle.apply([2 * lone.value], [lone])
    np.testing.assert_allclose(layer.table[1], lone.numpy()[0], rtol=1e-6)


def test_the_learning_rate_may_change_and_may_be_a_schedule(rng):
    schedule = keras.optimizers.schedules.ExponentialDecay(0.2, 2, 0.5)
    theirs, ours, rows = pair(rng)
    theirs.compile(keras.optimizers.Adam(schedule), "mse")
    ours.compile(thtf.optimizers.Adam(schedule), "mse")
    for _ in range(4):
        data = batch(rng)
        theirs.train_on_batch(*data)
        ours.train_on_batch(*data)
    np.testing.assert_allclose(*rows(), atol=2e-5)
    theirs, ours, rows = pair(rng)
    theirs.compile(keras.optimizers.SGD(0.1), "mse")
    ours.compile(thtf.optimizers.SGD(0.1), "mse")
    for rate in (0.1, 0.5, 0.01):
        theirs.optimizer.learning_rate = rate
        ours.optimizer.learning_rate = rate
        data = batch(rng)
        theirs.train_on_batch(*data)
        ours.train_on_batch(*data)
    np.testing.assert_allclose(*rows(), atol=2e-5)


@pytest.mark.parametrize("eager", [False, True])
def test_mixed_precision_skips_the_steps_that_overflow(rng, eager):
    theirs, ours, rows = pair(rng, dtype="mixed_float16")
    settings = {"initial_scale": 2.0**12, "dynamic_growth_steps": 3}
    for model, kind in ((theirs, keras.optimizers), (ours, thtf.optimizers)):
        optimizer = keras.optimizers.LossScaleOptimizer(kind.Adam(0.01), **settings)
        model.compile(optimizer, "mse", run_eagerly=eager)
    start = rows()[1]
    scales = []
    for step in range(8):
        ids, target = batch(rng)
        target = target * (1e6 if step == 2 else 1)  # overflows float16
        before = rows()[1]
        for model in (theirs, ours):
            model.train_on_batch(ids, target)
        scales.append(float(ours.optimizer.dynamic_scale))
        assert scales[-1] == float(theirs.optimizer.dynamic_scale)
        if step == 2:
            assert np.array_equal(rows()[1], before)
            assert scales[2] < scales[1]
    assert scales[-1] > scales[2]
    assert not np.array_equal(rows()[1], start)
    np.testing.assert_allclose(*rows(), atol=2e-3)  # the products are float16


def test_compile_scales_the_loss_of_a_float16_model(rng):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        _, ours, rows = pair(rng)
    finally:
        keras.config.set_dtype_policy("float32")
    before = rows()[1]
    ours.compile(thtf.optimizers.SGD(0.1), "mse")
    assert isinstance(ours.optimizer, keras.optimizers.LossScaleOptimizer)
    ours.train_on_batch(*batch(rng))
    assert not np.array_equal(rows()[1], before)
    assert np.abs(rows()[1] - before).max() < 1  # unscaled


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("outside", [False, True])
def test_a_gradient_request_changes_no_row(graph, outside):
    layer = thtf.Embedding(3, embeddings_initializer="ones")
    layer.build(None)
    other = tf.Variable(2.0)
    ids = tf.constant([1, 2], tf.int64)
    call = tf.function(lambda: layer(ids, training=True)) if outside else None

    def slope():
        with tf.GradientTape() as tape:
            out = call() if call else layer(ids, training=True)
            loss = tf.reduce_sum(out) * other
        return tape.gradient(loss, [other])[0]

    assert float((tf.function(slope) if graph else slope)()) == 6
    assert layer.table[1].numpy().tolist() == [1, 1, 1]


def test_a_layer_that_is_called_twice_gets_both_gradients():
    layer = thtf.Embedding(2, embeddings_initializer="zeros")
    optimizer = thtf.optimizers.SGD(1.0)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            left = layer(tf.constant([1, 2]), training=True)
            right = layer(tf.constant([[2, 3]]), training=True)
            loss = tf.reduce_sum(left) + 10 * tf.reduce_sum(right)
        optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)

    step()
    assert layer.table[[1, 2, 3]].numpy()[:, 0].tolist() == [-1, -11, -10]
    step()
    assert layer.table[[1, 2, 3]].numpy()[:, 0].tolist() == [-2, -22, -20]


def test_a_forward_pass_without_an_update_moves_nothing():
    layer = thtf.Embedding(2, embeddings_initializer="ones")
    optimizer = thtf.optimizers.Adam(0.1, weight_decay=0.1)
    layer(tf.constant([5, 6]), training=True)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.constant([7]), training=True))
    optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
    assert layer.table[[5, 6]].numpy().tolist() == [[1, 1], [1, 1]]
    assert layer.table[7].numpy()[0] < 1


@pytest.mark.parametrize("graph", [False, True])
def test_a_late_gradient_is_refused(graph):
    layer = thtf.Embedding(2, embeddings_initializer="zeros")
    layer.build(None)
    optimizer = thtf.optimizers.SGD(1.0)
    optimizer.build(layer.trainable_variables)

    def slopes(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(tf.constant(ids), training=True))
        return tape.gradient(loss, layer.trainable_variables)

    def apply(late):
        optimizer.apply(late, layer.trainable_variables)

    late = slopes([1, 2])
    apply(late)
    apply(slopes([3, 4]))
    before = layer.table.export()[1].numpy()
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected those of the last training"):
        (tf.function(apply) if graph else apply)(late)
    assert np.array_equal(layer.table.export()[1], before)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_an_optimizer_of_keras_is_refused(rng, name, eager, scaled):
    _, ours, rows = pair(rng)
    before = rows()[1]
    optimizer = getattr(keras.optimizers, name)(0.1)
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    ours.compile(optimizer, "mse", run_eagerly=eager)
    with pytest.raises(TypeError, match="optimizer: expected one of tensorhash.tensorflow.optim"):
        ours.train_on_batch(*batch(rng))
    assert np.array_equal(rows()[1], before)


class Towers(keras.Model):
    """A model that does not say that it trains."""

    def __init__(self, **options):
        super().__init__()
        self.rows = thtf.Embedding(WIDTH, combiner="sum", **options)
        self.out = keras.layers.Dense(1)

    def call(self, ids):
        return self.out(self.rows(ids))


class Trained(Towers):
    """Keras passes `training` on to the layers by itself."""

    def call(self, ids, training=False):
        return super().call(ids)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_rows_that_nothing_would_train_are_an_error(rng, eager, scaled):
    def fit(model):
        optimizer = thtf.optimizers.SGD(0.1)
        if scaled:
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        model.compile(optimizer, "mse", run_eagerly=eager)
        model.fit(*batch(rng), verbose=0)
        return int(model.rows.table.size())

    with pytest.raises(ValueError, match="rows_anchor, got None, because the layer has only run"):
        fit(Towers())
    assert fit(Towers(trainable=False)) == 0
    assert fit(Trained()) == IDS
    frozen = Trained(trainable=False)
    assert fit(frozen) == 0
    frozen.rows.trainable = True
    assert fit(frozen) == IDS
    before = frozen.rows.table.export()[1].numpy()
    fit(frozen)
    assert np.abs(frozen.rows.table.export()[1].numpy() - before).max() > 0


def test_moving_averages_are_refused(rng):
    _, ours, _ = pair(rng)
    ours.compile(thtf.optimizers.SGD(0.1, use_ema=True), "mse")
    with pytest.raises(ValueError, match="use_ema: expected False"):
        ours.train_on_batch(*batch(rng))


def test_any_optimizer_of_keras_can_be_extended(rng):
    class Lion(thtf.optimizers.RowOptimizer, keras.optimizers.Lion):
        pass

    theirs, ours, rows = pair(rng)
    theirs.compile(keras.optimizers.Lion(0.01), "mse")
    ours.compile(Lion(0.01), "mse")
    for _ in range(4):
        data = batch(rng)
        theirs.train_on_batch(*data)
        ours.train_on_batch(*data)
    np.testing.assert_allclose(*rows(), atol=2e-5)


@pytest.mark.parametrize("way", ["keras", "checkpoint"])
@pytest.mark.parametrize("accumulating", [None, 2])
def test_training_continues_from_a_file(rng, tmp_path, way, accumulating):
    _, ours, rows = pair(rng)
    settings = {"gradient_accumulation_steps": accumulating}
    ours.compile(thtf.optimizers.Adam(0.01, **settings), "mse")
    data = [batch(rng) for _ in range(6)]
    for one in data[:3]:
        ours.train_on_batch(*one)
    if way == "keras":
        ours.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
    else:
        path = tf.train.Checkpoint(model=ours, optimizer=ours.optimizer).save(tmp_path / "c")
        again = pair(rng)[1]
        again.compile(thtf.optimizers.Adam(0.01, **settings), "mse")
        again.optimizer.build(again.trainable_variables)
        tf.train.Checkpoint(model=again, optimizer=again.optimizer).restore(path)
    for one in data[3:]:
        ours.train_on_batch(*one)
        again.train_on_batch(*one)
    layer = next(one for one in again.layers if isinstance(one, thtf.Embedding))
    assert np.array_equal(layer.table[np.arange(IDS)], rows()[1])


def test_string_ids_train(rng):
    layer = thtf.Embedding(2, key_dtype="string", embeddings_initializer="zeros")
    optimizer = thtf.optimizers.Adagrad(1.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            out = layer(tf.constant(["a", "b", "a"]), training=True)
            loss = tf.reduce_sum(out * [[1.0], [2.0], [3.0]])
        optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
    moved = -layer.table[["a", "b"]].numpy()[:, 0]
    want = [sum(g / np.sqrt(0.1 + n * g * g) for n in (1, 2)) for g in (4.0, 2.0)]
    np.testing.assert_allclose(moved, want, rtol=1e-5)
