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


@pytest.mark.parametrize(
    "optimizer", [thtf.optimizers.SGD(0.1, momentum=0.9), thtf.optimizers.Adagrad(0.2)]
)
def test_it_converges_on_new_ids(optimizer):
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(2)
    # Ids from the whole range of int64: no dense table could hold them.
    ids = rng.integers(-(2**62), 2**62, 50)
    worth = dict(zip(ids.tolist(), rng.normal(size=50), strict=True))
    pairs = rng.choice(ids, (400, 2))
    target = np.array([[worth[a] - worth[b]] for a, b in pairs.tolist()], np.float32)
    model, layer = make_model()
    model.compile(optimizer, "mse")
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
    layer = thtf.Embedding(3, embeddings_initializer="zeros")
    optimizer = thtf.optimizers.SGD(0.5)
    ids = tf.constant([[7, 7], [8, 7]], tf.int64)
    weight = tf.reshape(tf.range(12.0), (2, 2, 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids, training=True) * weight)
    slopes = tape.gradient(loss, layer.trainable_variables)
    assert layer.table[7].numpy().tolist() == [0, 0, 0]  # a gradient changes nothing
    optimizer.apply(slopes, layer.trainable_variables)
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
            self.layer = thtf.Embedding(2, embeddings_initializer="zeros")
            self.layer.build(None)
            self.optimizer = thtf.optimizers.Adagrad(0.5)
            self.optimizer.build(self.layer.trainable_variables)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def step(self, ids):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((self.layer(ids, training=True) - 1) ** 2)
            slopes = tape.gradient(loss, self.layer.trainable_variables)
            self.optimizer.apply(slopes, self.layer.trainable_variables)
            return loss

    trainer = Trainer()
    ids = tf.constant([5, 6], tf.int64)
    first = float(trainer.step(ids))
    tf.saved_model.save(trainer, tmp_path / "trainer")
    loaded = tf.saved_model.load(tmp_path / "trainer")
    losses = [first] + [float(loaded.step(ids)) for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < first / 10


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
    assert layer.count_params() == 4 * 4
    assert np.array_equal(np.asarray(rows), layer.table.export()[1])
    assert np.array_equal(tf.convert_to_tensor(rows), layer.table.export()[1])
    assert [weight.trainable for weight in layer.weights] == [True, True, False]


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
    model, layer = make_model()
    model.compile(thtf.optimizers.SGD(0.05), "mse")
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
