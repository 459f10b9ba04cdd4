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
    # Ids from the whole range of int64: no dense table could hold them.
    ids = rng.integers(-(2**62), 2**62, 50)
    worth = dict(zip(ids.tolist(), rng.normal(size=50), strict=True))
    pairs = rng.choice(ids, (400, 2))
    target = np.array([[worth[a] - worth[b]] for a, b in pairs.tolist()], np.float32)
    model, layer = make_model(optimizer=optimizer, learning_rate=rate)
    model.compile(keras.optimizers.SGD(0.05), "mse")
    losses = model.fit(pairs, target, batch_size=20, epochs=25, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 20
    assert int(layer.table.size()) == 50
    # Later ids are learned too, and earlier ones are not forgotten.
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


def test_a_saved_training_step_continues_training(tmp_path):
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


def filled_model(key_dtype="int64", **kwargs):
    model, layer = make_model(key_dtype, **kwargs)
    ids = tf.constant([[1, 2], [3, 4]])
    ids = tf.strings.as_string(ids) if key_dtype == "string" else tf.cast(ids, key_dtype)
    model(ids, training=True)
    return model, layer, ids


@pytest.mark.parametrize("key_dtype", ["int64", "string"])
def test_get_weights_and_set_weights_carry_the_rows(key_dtype):
    model, layer, ids = filled_model(key_dtype)
    before, weights = model(ids).numpy(), model.get_weights()
    rows = layer.get_weights()[-1]
    assert rows.shape == (4,)
    assert dict(zip(rows["key"].tolist(), rows["row"].tolist(), strict=True)) == {
        key: layer.table[key].numpy().tolist() for key in rows["key"].tolist()
    }
    # Another model, with other ids and a different number of them.
    other, other_layer = make_model(key_dtype)
    more = tf.constant([[5, 6], [7, 8], [9, 10]])
    other(
        tf.strings.as_string(more) if key_dtype == "string" else tf.cast(more, key_dtype),
        training=True,
    )
    other.set_weights(weights)
    assert np.array_equal(other(ids), before)
    assert int(other_layer.table.size()) == 4
    other.set_weights(make_model(key_dtype)[0].get_weights())
    assert int(other_layer.table.size()) == 0


def test_the_weight_counts_and_converts_as_an_array_of_rows():
    _, layer, _ = filled_model()
    rows = layer.weights[-1]
    assert layer.count_params() == 1 + 4 * 4
    assert np.array_equal(np.asarray(rows), layer.table.export()[1])
    assert np.array_equal(tf.convert_to_tensor(rows), layer.table.export()[1])
    assert [weight.trainable for weight in layer.weights] == [True, False]


def test_set_weights_refuses_other_rows():
    model, layer, ids = filled_model()
    before = model(ids).numpy()
    weights = layer.get_weights()
    narrow = np.zeros(2, [("key", np.int64), ("row", np.float32, (3,))])
    for wrong in (narrow, np.zeros(4), narrow["row"], narrow[:, None], np.float32(1)):
        with pytest.raises(ValueError, match="rows: expected a 1-D record array"):
            layer.set_weights([*weights[:-1], wrong])
    with pytest.raises(ValueError, match=r"got float32 of shape \(4, 4\); a row needs its key"):
        layer.set_weights([*weights[:-1], weights[-1]["row"]])
    with pytest.raises(ValueError, match=r"got float32 of shape \(4, 4\); a row needs its key"):
        model.set_weights([*weights[:-1], weights[-1]["row"], model.get_weights()[-1]])
    assert np.array_equal(model(ids), before)


def test_early_stopping_restores_the_best_rows():
    keras.utils.set_random_seed(3)
    model, layer = make_model(optimizer="sgd", learning_rate=0.1)
    model.compile(keras.optimizers.SGD(0.05), "mse")
    ids = np.arange(40).reshape(20, 2)
    target = np.ones((20, 1), np.float32)
    best = {}

    class Worse(keras.callbacks.Callback):
        """Remembers the rows of the first epoch, spoils those of later ones."""

        def on_epoch_end(self, epoch, logs=None):
            keys, rows = layer.table.export()
            if epoch == 0:
                best.update(zip(keys.numpy().tolist(), rows.numpy().tolist(), strict=True))
            layer.table.insert(keys, rows * 100)
            layer.table.insert([1000 + epoch], [[1.0] * 4])

    stop = keras.callbacks.EarlyStopping(
        "watched", mode="min", patience=2, restore_best_weights=True
    )
    # EarlyStopping comes first: it keeps the weights before they are spoiled.
    order = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: logs.update(watched=float(epoch))
    )
    model.fit(ids, target, epochs=6, verbose=0, callbacks=[order, stop, Worse()])
    keys, rows = layer.table.export()
    assert dict(zip(keys.numpy().tolist(), rows.numpy().tolist(), strict=True)) == best


@pytest.mark.parametrize("graph", [False, True])
def test_a_layer_that_is_not_trainable_adds_and_updates_nothing(graph):
    layer = thtf.Embedding(3, embeddings_initializer="ones", trainable=False)
    layer.table.insert(tf.constant([1], tf.int64), [[1.0, 2.0, 3.0]])
    ids = tf.constant([1, 2], tf.int64)
    scale = tf.Variable(2.0)

    def step():
        with tf.GradientTape() as tape:
            out = layer(ids, training=True)
            loss = tf.reduce_sum(out) * scale
        return out, tape.gradient(loss, [scale])[0]

    out, slope = (tf.function(step) if graph else step)()
    assert out.numpy().tolist() == [[1, 2, 3], [0, 0, 0]]
    assert float(slope) == 6
    assert int(layer.table.size()) == 1
    assert layer.table[1].numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "name", ["glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_normal"]
)
def test_variance_scaling_does_not_depend_on_the_batch(name):
    spreads = []
    for batch in ((1, 4), (40, 100)):
        drawn = []
        for seed in range(4000 // np.prod(batch)):
            initializer = keras.initializers.get(name).clone()
            initializer.seed = seed
            layer = thtf.Embedding(8, embeddings_initializer=initializer)
            layer(tf.reshape(tf.range(np.prod(batch), dtype=tf.int64), batch), training=True)
            drawn.append(layer.table.export()[1].numpy())
        spreads.append(np.concatenate(drawn).std())
    assert spreads[0] == pytest.approx(spreads[1], rel=0.05)
    # One input, eight outputs.
    fan = {"glorot": 4.5, "he": 1, "lecun": 1}[name.split("_")[0]]
    scale = 2 if name.startswith("he") else 1
    assert spreads[1] == pytest.approx((scale / fan) ** 0.5, rel=0.05)


@pytest.mark.parametrize("name", ["random_normal", "he_normal"])
def test_the_rows_of_different_batches_differ(name):
    tables = []
    for _ in range(2):
        initializer = keras.initializers.get(name).clone()
        initializer.seed = 7
        layer = thtf.Embedding(4, embeddings_initializer=initializer)
        for batch in ([1, 2], [3, 4], [5]):
            layer(tf.constant(batch), training=True)
        tables.append(layer.table[[1, 2, 3, 4, 5]].numpy())
    assert len(np.unique(tables[0])) == 20
    assert np.array_equal(*tables)  # the seed determines them


def test_initializers_of_whole_matrices_are_refused():
    with pytest.raises(
        ValueError, match="embeddings_initializer: expected one that draws each row"
    ):
        thtf.Embedding(3, embeddings_initializer="orthogonal")


def one_step(model, **kwargs):
    model.compile(keras.optimizers.SGD(0.1), "mse", **kwargs)
    model.train_on_batch(np.array([[1, 2]]), np.array([[1.0]], np.float32))


@pytest.mark.parametrize("eager", [False, True])
def test_loss_scaling_is_refused(eager):
    model, layer = make_model(dtype="mixed_float16")
    # A float32 layer under the same optimizer is refused too, so the message must not suggest it.
    with pytest.raises(ValueError, match="got mixed_float16; use mixed_bfloat16") as refusal:
        one_step(model, run_eagerly=eager)
    assert 'dtype="float32"' not in str(refusal.value)
    assert int(layer.table.size()) == 0
    # A float32 layer under an optimizer that scales the loss anyway.
    model, layer = make_model(dtype="float32")
    scaling = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    for optimizer in (scaling, keras.optimizers.SGD(0.1, loss_scale_factor=8.0)):
        model.compile(optimizer, "mse", run_eagerly=eager)
        with pytest.raises(ValueError, match="expected an optimizer without loss scaling"):
            model.train_on_batch(np.array([[1, 2]]), np.array([[1.0]], np.float32))
    assert int(layer.table.size()) == 0
    model, layer = make_model(dtype="mixed_bfloat16")
    one_step(model, run_eagerly=eager)
    assert np.isfinite(layer.table.export()[1]).all()


@pytest.mark.parametrize("graph", [False, True])
def test_a_tape_for_other_weights_only_is_refused(graph):
    layer = thtf.Embedding(3, optimizer="sgd", embeddings_initializer="ones")
    other = tf.Variable(2.0)
    ids = tf.constant([1, 2], tf.int64)

    def slopes(sources):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(ids, training=True)) * other
        return tape.gradient(loss, sources)

    run = tf.function(slopes) if graph else slopes
    layer(ids, training=True)
    with pytest.raises(ValueError, match="expected a gradient request that includes this layer's"):
        slopes([other]) if not graph else tf.function(lambda: slopes([other]))()
    assert layer.table[1].numpy().tolist() == [1, 1, 1]
    both = tf.function(lambda: slopes([other, *layer.trainable_variables]))
    both() if graph else run([other, layer.trainable_variables])
    assert layer.table[1].numpy().tolist() != [1, 1, 1]


def test_a_tape_outside_of_a_compiled_layer_is_refused():
    layer = thtf.Embedding(3, optimizer="sgd", embeddings_initializer="ones")
    layer.build(None)
    call = tf.function(lambda ids: layer(ids, training=True))
    with (
        pytest.raises(ValueError, match="expected the tape inside the tf.function"),
        tf.GradientTape(),
    ):
        call(tf.constant([1], tf.int64))


def test_the_learning_rate_is_fixed_by_the_first_compiled_step():
    layer = thtf.Embedding(2, optimizer="sgd", learning_rate=0.5, embeddings_initializer="zeros")
    ids = tf.constant([1], tf.int64)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(ids, training=True))
        tape.gradient(loss, layer.trainable_variables)

    step()
    layer.learning_rate = 0.25  # eager steps see it
    step()
    assert layer.table[1].numpy().tolist() == [-0.75, -0.75]
    tf.function(step)()
    with pytest.raises(
        RuntimeError, match="learning_rate: expected no change after the first compiled"
    ):
        layer.learning_rate = 0.125
    assert layer.learning_rate == 0.25


def test_schedules_are_refused():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    with pytest.raises(TypeError, match="learning_rate: expected a number, got ExponentialDecay"):
        thtf.Embedding(2, learning_rate=schedule)
