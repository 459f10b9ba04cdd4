"""What an Embedding takes beside dense ids: ragged and sparse ids, weights, padding, limits."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf

LISTS = [[3, 1, 3], [], [2], [0, 1, 0, 2]]


def step(layer, optimizer, loss_of):
    with tf.GradientTape() as tape:
        loss = loss_of()
    slopes = tape.gradient(loss, layer.trainable_variables)
    optimizer.apply(slopes, layer.trainable_variables)


def filled(rng, **kwargs):
    """(a layer, the same rows as a variable)."""
    layer = thtf.Embedding(3, **kwargs)
    rows = rng.normal(size=(5, 3)).astype(np.float32)
    layer.table.insert(np.arange(5), rows)
    return layer, tf.Variable(rows)


def test_ragged_ids_give_ragged_rows(rng):
    layer, rows = filled(rng)
    ids = tf.ragged.constant(LISTS, dtype=tf.int64)
    optimizer = thtf.optimizers.SGD(0.5)
    got = layer(ids)
    assert isinstance(got, tf.RaggedTensor)
    assert np.array_equal(got.flat_values, tf.gather(rows, ids.flat_values))
    step(layer, optimizer, lambda: tf.reduce_sum(layer(ids, training=True).flat_values ** 2))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(rows, ids.flat_values) ** 2)
    rows.assign_sub(0.5 * tf.convert_to_tensor(tape.gradient(loss, rows)))
    np.testing.assert_allclose(layer.table[np.arange(4)], rows[:4], rtol=1e-5)


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("kind", ["ragged", "sparse", "dense"])
@pytest.mark.parametrize("weighted", [False, True])
def test_combiners_are_those_of_embedding_lookup_sparse(rng, combiner, kind, weighted):
    layer, rows = filled(rng, combiner=combiner)
    lists = [[1, 2, 2], [3, 0, 1]] if kind == "dense" else LISTS
    ragged = tf.ragged.constant(lists, dtype=tf.int64)
    weights = ragged.with_flat_values(rng.random(len(ragged.flat_values)).astype(np.float32) + 0.5)
    form = {
        "ragged": lambda one: one,
        "sparse": lambda one: one.to_sparse(),
        "dense": lambda one: one.to_tensor(),
    }[kind]
    ids, factors = form(ragged), form(weights) if weighted else None

    def wanted():
        given = weights.to_sparse() if weighted else None
        return tf.nn.safe_embedding_lookup_sparse(
            rows, ragged.to_sparse(), given, combiner=combiner
        )

    np.testing.assert_allclose(layer(ids, weights=factors), wanted(), rtol=1e-5)
    factor = tf.constant(rng.normal(size=(len(lists), 3)).astype(np.float32))
    optimizer = thtf.optimizers.SGD(1.0)
    step(
        layer, optimizer,
        lambda: tf.reduce_sum(layer(ids, weights=factors, training=True) * factor),
    )  # fmt: skip
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(wanted() * factor)
    rows.assign_sub(tf.convert_to_tensor(tape.gradient(loss, rows)))
    np.testing.assert_allclose(layer.table[np.arange(5)], rows, rtol=1e-4, atol=1e-6)


def test_a_combiner_works_in_a_model(rng):
    ids = keras.Input((4,), dtype="int64")
    weights = keras.Input((4,))
    out = thtf.Embedding(3, combiner="mean")(ids, weights=weights)
    assert out.shape == (None, 3)
    model = keras.Model([ids, weights], keras.layers.Dense(1)(out))
    model.compile(thtf.optimizers.Adagrad(0.1), "mse")
    data = [rng.integers(0, 50, (6, 4)), rng.random((6, 4)).astype(np.float32)]
    model.fit(data, np.ones((6, 1), np.float32), verbose=0)
    assert int(model.layers[2].table.size()) == len(np.unique(data[0]))


@pytest.mark.parametrize("combiner", [None, "mean"])
def test_padding_has_no_row_and_no_part(combiner):
    layer = thtf.Embedding(2, mask_zero=True, combiner=combiner, embeddings_initializer="ones")
    ids = tf.constant([[5, 0, 6], [0, 0, 0]], tf.int64)
    out = layer(ids, training=True).numpy()
    assert sorted(layer.table.export()[0].numpy().tolist()) == [5, 6]
    if combiner is None:
        assert out[..., 0].tolist() == [[1, 0, 1], [0, 0, 0]]
        want = keras.layers.Embedding(9, 2, mask_zero=True).compute_mask(ids)
        assert np.array_equal(layer.compute_mask(ids), want)
    else:
        assert out.tolist() == [[1, 1], [0, 0]]
        assert layer.compute_mask(ids) is None


def test_a_mask_reaches_the_next_layer(rng):
    lengths = keras.Sequential(
        [thtf.Embedding(2, mask_zero=True, embeddings_initializer="ones"),
         keras.layers.GlobalAveragePooling1D()]
    )  # fmt: skip
    got = lengths(tf.constant([[4, 7, 0, 0]], tf.int64), training=True)
    assert got.numpy().tolist() == [[1, 1]]


def test_regularizers_see_each_row_of_the_batch_once(rng):
    layer, rows = filled(rng, embeddings_regularizer=keras.regularizers.L2(0.1))
    optimizer = thtf.optimizers.SGD(1.0)
    ids = tf.constant([[0, 1], [1, 3]], tf.int64)
    step(layer, optimizer, lambda: (layer(ids, training=True), sum(layer.losses))[1])
    want = rows.numpy()
    want[[0, 1, 3]] *= 0.8
    np.testing.assert_allclose(layer.table[np.arange(5)], want, rtol=1e-6)


def test_an_id_is_admitted_after_some_sightings():
    layer = thtf.Embedding(2, admit_after=3, embeddings_initializer="ones")
    layer(tf.constant([7, 8, 7]), training=True)
    assert int(layer.table.size()) == 0
    layer(tf.constant([7, 7]))  # not training
    assert int(layer.table.size()) == 0
    assert layer(tf.constant([8, 7]), training=True).numpy()[:, 0].tolist() == [0, 1]
    assert layer.table.export()[0].numpy().tolist() == [7]


@pytest.mark.parametrize("eviction", ["lru", "lfu"])
@pytest.mark.parametrize("graph", [False, True])
def test_a_full_layer_drops_rows_and_their_state(eviction, graph):
    layer = thtf.Embedding(2, max_capacity=2, eviction=eviction, embeddings_initializer="ones")
    optimizer = thtf.optimizers.Adagrad(0.1)
    layer.build(None)

    def train(ids):
        step(layer, optimizer, lambda: tf.reduce_sum(layer(ids, training=True)))

    call = tf.function(train, reduce_retracing=True) if graph else train
    for ids in ([1, 1, 1], [2], [3], [1]):
        call(tf.constant(ids, tf.int64))
    state = optimizer._row_slots[0].table
    kept = {"lru": [1, 3], "lfu": [1, 3]}[eviction]
    if eviction == "lru":  # 1 was dropped by 3 and came back
        assert sorted(layer.table.export()[0].numpy().tolist()) == kept
        assert np.allclose(state[1], 0.1 + 1.0)
    else:
        assert sorted(layer.table.export()[0].numpy().tolist()) == kept
        assert np.allclose(state[1], 0.1 + 9.0 + 1.0)
    assert sorted(state.export()[0].numpy().tolist()) == kept


def test_wrong_arguments_are_refused():
    for argument, value, message in (
        ("combiner", "max", "combiner: expected one of sum, mean, sqrtn, got 'max'"),
        ("eviction", "fifo", "eviction: expected one of lru, lfu, got 'fifo'"),
        ("admit_after", 0, "admit_after: expected at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            thtf.Embedding(2, **{argument: value})
    with pytest.raises(TypeError, match="key_dtype: expected a dtype, got 16; .* no input_dim"):
        thtf.Embedding(10_000, 16)
    with pytest.raises(ValueError, match="mask_zero: expected False for string ids"):
        thtf.Embedding(2, key_dtype="string", mask_zero=True)
    with pytest.raises(ValueError, match="weights: expected none without a combiner"):
        thtf.Embedding(2)(tf.constant([[1]]), weights=tf.constant([[1.0]]))


@pytest.mark.parametrize("limits", [{}, {"max_capacity": 8, "eviction": "lfu"}])
def test_a_config_makes_the_same_layer(limits, tmp_path):
    layer = thtf.Embedding(
        2, combiner="mean", mask_zero=True, embeddings_regularizer="l2", admit_after=2, **limits
    )
    again = thtf.Embedding.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    model = keras.Sequential([layer, keras.layers.Dense(1)])
    ids = np.array([[3, 3, 0], [4, 5, 0]])
    model(ids, training=True)
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert np.array_equal(loaded(ids), model(ids))
    assert int(loaded.layers[0].table.size()) == 1
    loaded(np.array([[4, 5, 6]]), training=True)  # sightings were saved, too
    assert int(loaded.layers[0].table.size()) == 3


@pytest.mark.parametrize("eviction", ["lru", "lfu"])
def test_the_weights_of_a_bounded_layer_are_set(eviction):
    layer = thtf.Embedding(2, max_capacity=2, eviction=eviction, embeddings_initializer="ones")
    layer(tf.constant([1, 2]), training=True)
    weights = layer.get_weights()
    layer(tf.constant([3, 3, 4, 4]), training=True)
    layer.set_weights(weights)
    assert sorted(layer.table.export()[0].numpy().tolist()) == [1, 2]
    more = thtf.Embedding(2)
    more(tf.constant([1, 2, 3]), training=True)
    with pytest.raises(ValueError, match="rows: expected at most max_capacity, 2, got 3"):
        layer.set_weights(more.get_weights())
    assert sorted(layer.table.export()[0].numpy().tolist()) == [1, 2]
