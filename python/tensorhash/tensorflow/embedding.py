"""Embedding: a Keras layer whose rows appear when their ids are first seen in training."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tensorhash.tensorflow.table import HashTable

OPTIMIZERS = ("sgd", "adagrad")
EPSILON = 1e-7


@keras.saving.register_keras_serializable(package="tensorhash")
class Embedding(keras.layers.Layer):
    """Turns ids into trainable vectors, without a vocabulary: any id, of any integer dtype or string.

    In training, ids that were never seen get a row from `embeddings_initializer`; otherwise they read as zeros and
    leave no trace. The rows live in `self.table`, a HashTable, outside the model's optimizer: when a gradient reaches
    the layer, the layer itself steps the rows of that batch, with "sgd" or "adagrad" and its `learning_rate`. A tape
    that is asked twice steps twice.
    """

    def __init__(
        self,
        output_dim: int,
        key_dtype: Any = "int64",
        embeddings_initializer: Any = "uniform",
        optimizer: str = "adagrad",
        learning_rate: float = 0.1,
        capacity: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if optimizer not in OPTIMIZERS:
            raise ValueError(
                f"optimizer: expected one of {', '.join(OPTIMIZERS)}, got {optimizer!r}"
            )
        self.output_dim = int(output_dim)
        self.key_dtype = tf.as_dtype(key_dtype).name
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.optimizer = optimizer
        self.learning_rate = float(learning_rate)
        self.capacity = int(capacity)
        self.supports_jit = False  # XLA knows no tables
        zeros = np.zeros(self.output_dim, self.variable_dtype)
        self.table = HashTable(self.key_dtype, self.variable_dtype, zeros, capacity=self.capacity)
        if optimizer == "adagrad":
            self.squares = HashTable(
                self.key_dtype, self.variable_dtype, zeros, capacity=self.capacity
            )

    def build(self, input_shape: Any) -> None:
        # Ids have no gradient. This weight, which stays 0, is what ties the output to the tape.
        self.anchor = self.add_weight(shape=(), initializer="zeros", name="anchor")
        self.built = True

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        ids = self._exact(tf.convert_to_tensor(inputs))
        if not training:
            return tf.cast(self.table.lookup(ids), self.compute_dtype)
        self._admit(ids)

        @tf.custom_gradient
        def read(anchor: tf.Tensor) -> Any:
            def step(upstream: tf.Tensor) -> tf.Tensor:
                self._step(ids, upstream)
                return tf.zeros_like(anchor)

            return self._read(self.table, ids), step

        values = read(tf.convert_to_tensor(self.anchor))
        return tf.cast(values, self.compute_dtype)

    def _exact(self, ids: tf.Tensor) -> tf.Tensor:
        """Ids of any numbers, as Keras' layers take them, as long as the table's dtype holds each."""
        if ids.dtype == self.table.key_dtype or tf.string in (ids.dtype, self.table.key_dtype):
            return ids  # of strings and numbers the table tells them apart
        cast = tf.cast(ids, self.table.key_dtype)
        zero = tf.zeros((), ids.dtype)
        same = (tf.cast(cast, ids.dtype) == ids) & ((cast < 0) == (ids < zero))
        message = f"inputs: expected ids that {self.key_dtype} can hold, got {ids.dtype.name}"
        tf.debugging.Assert(tf.reduce_all(same), [message, ids])
        return cast

    def _read(self, table: HashTable, ids: tf.Tensor) -> tf.Tensor:
        # A SavedModel refuses gradient functions that capture a constant, such as the table's own default.
        return table.lookup(ids, tf.zeros(self.output_dim, self.variable_dtype))

    def _admit(self, ids: tf.Tensor) -> None:
        shape = tf.concat([tf.shape(ids), [self.output_dim]], 0)
        rows = self.embeddings_initializer(shape, dtype=self.variable_dtype)
        rows = tf.ensure_shape(rows, [*ids.shape, self.output_dim])
        self.table.accumulate(ids, rows, reduce="first")

    def _step(self, ids: tf.Tensor, gradient: tf.Tensor) -> None:
        flat = tf.reshape(ids, [-1])
        rows = tf.reshape(tf.cast(gradient, self.variable_dtype), [-1, self.output_dim])
        rate = tf.constant(self.learning_rate, rows.dtype)
        if self.optimizer == "adagrad":
            # An id that is in the batch twice has one gradient, the sum.
            flat, places = tf.unique(flat)
            rows = tf.math.unsorted_segment_sum(rows, places, tf.size(flat))
            self.squares.accumulate(flat, rows * rows)
            rows = rows / (tf.sqrt(self._read(self.squares, flat)) + EPSILON)
        self.table.accumulate(flat, -rate * rows)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        return (*input_shape, self.output_dim)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "output_dim": self.output_dim,
            "key_dtype": self.key_dtype,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "optimizer": self.optimizer,
            "learning_rate": self.learning_rate,
            "capacity": self.capacity,
        }

    def _tables(self) -> dict[str, HashTable]:
        squares = {"squares": self.squares} if self.optimizer == "adagrad" else {}
        return {"table": self.table, **squares}

    def save_own_variables(self, store: Any) -> None:
        """What a .keras or .weights.h5 file holds of this layer."""
        super().save_own_variables(store)
        for name, table in self._tables().items():
            keys, values = table.export()
            store[f"{name}_values"] = values.numpy()
            if keys.dtype == tf.string:
                store[f"{name}_lengths"] = tf.strings.length(keys).numpy()
                keys = tf.io.decode_raw(tf.strings.reduce_join(keys), tf.uint8)
            store[f"{name}_keys"] = keys.numpy()

    def load_own_variables(self, store: Any) -> None:
        ours = ("table_", "squares_")
        super().load_own_variables(
            {name: store[name] for name in store.keys() if not name.startswith(ours)}  # noqa: SIM118
        )
        for name, table in self._tables().items():
            keys = np.asarray(store[f"{name}_keys"])
            if table.key_dtype == tf.string:
                ends = np.cumsum(np.asarray(store[f"{name}_lengths"]))
                keys = [part.tobytes() for part in np.split(keys, ends[:-1])] if len(ends) else []
            keys = tf.convert_to_tensor(keys, table.key_dtype)
            table._import(keys, tf.convert_to_tensor(np.asarray(store[f"{name}_values"])))
