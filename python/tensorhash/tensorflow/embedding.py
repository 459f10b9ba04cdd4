"""Embedding: a Keras layer that adds a row for each new id in training."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tensorhash.tensorflow._rows_weight import RowsWeight
from tensorhash.tensorflow._tapes import require_asked_for
from tensorhash.tensorflow.table import HashTable

OPTIMIZERS = ("sgd", "adagrad")
EPSILON = 1e-7
# Keras cuts truncated normals at two standard deviations; division by this restores the variance.
TRUNCATED = 0.87962566103423978
RANDOM = (
    keras.initializers.RandomNormal,
    keras.initializers.RandomUniform,
    keras.initializers.TruncatedNormal,
    keras.initializers.VarianceScaling,
)
WHOLE = (keras.initializers.Orthogonal, keras.initializers.Identity)


@keras.saving.register_keras_serializable(package="tensorhash")
class Embedding(keras.layers.Layer):
    """Maps ids to trainable vectors without a vocabulary. Ids are integers or strings.

    In training, new ids get a row from `embeddings_initializer`. Outside of training, or with
    trainable=False, new ids read as zeros and are not added. The rows are in `self.table`, a
    HashTable, outside the model's optimizer: when a gradient reaches the layer, the layer itself
    steps the rows of that batch with "sgd" or "adagrad" and its `learning_rate`, a number. Each
    gradient request to a tape makes one step. It must include the layer's trainable_variables. Loss
    scaling is an error.

    The layer's last weight is a NumPy record array with the fields "key" and "row", so get_weights
    and set_weights include the rows.

    >>> layer = Embedding(4)
    >>> layer(tf.constant([[10**15, 7]], tf.int64)).shape.as_list()  # not trained: zeros
    [1, 2, 4]
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
        if isinstance(self.embeddings_initializer, WHOLE):
            raise ValueError(
                "embeddings_initializer: expected one that draws each row independently, got "
                f"{type(self.embeddings_initializer).__name__}, which makes a whole matrix"
            )
        if isinstance(self.embeddings_initializer, RANDOM):
            # A Keras initialiser draws the same numbers at every call. Rows of different batches
            # must differ, so use a seed generator.
            self.seed_generator = keras.random.SeedGenerator(self.embeddings_initializer.seed)
            self._draw_rows = row_initializer(
                self.embeddings_initializer, self.output_dim, self.seed_generator
            )
        else:
            self._draw_rows = self.embeddings_initializer
        self.optimizer = optimizer
        self._compiled_rate = False
        self.learning_rate = learning_rate
        self.capacity = int(capacity)
        self.supports_jit = False  # XLA does not support tables
        zeros = np.zeros(self.output_dim, self.variable_dtype)
        self.table = HashTable(self.key_dtype, self.variable_dtype, zeros, capacity=self.capacity)
        if optimizer == "adagrad":
            self.squares = HashTable(
                self.key_dtype, self.variable_dtype, zeros, capacity=self.capacity
            )
        self._rows = RowsWeight(self.table, f"{self.name}/rows")

    _learning_rate: float

    @property
    def learning_rate(self) -> float:
        """The learning rate. A compiled step keeps the number from its trace."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if callable(value):
            raise TypeError(
                f"learning_rate: expected a number, got {type(value).__name__}; "
                "schedules are not supported"
            )
        if self._compiled_rate:
            raise RuntimeError(
                f"learning_rate: expected no change after the first compiled step, got {value!r}; "
                f"compiled steps would keep {self._learning_rate}. Make a new layer with the new "
                "rate and set_weights(), or train eagerly (run_eagerly=True)"
            )
        self._learning_rate = float(value)

    @property
    def weights(self) -> list[keras.Variable | RowsWeight]:
        """Keras' weights, then the rows, for get_weights, set_weights and EarlyStopping."""
        return [*super().weights, self._rows] if self.built else super().weights

    def build(self, input_shape: Any) -> None:
        # Ids have no gradient. This weight, always 0, connects the output to the tape.
        self.anchor = self.add_weight(shape=(), initializer="zeros", name="anchor")
        self.built = True

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        ids = self._exact(tf.convert_to_tensor(inputs))
        if not training or not self.trainable:
            return tf.cast(self.table.lookup(ids), self.compute_dtype)
        self._refuse_loss_scaling()
        self._admit(ids)

        @tf.custom_gradient
        def read(anchor: tf.Tensor) -> Any:
            def step(upstream: tf.Tensor) -> tf.Tensor:
                traced = require_asked_for(self.anchor, self.name)
                self._compiled_rate |= traced
                self._step(ids, upstream)
                return tf.zeros_like(anchor)

            return self._read(self.table, ids), step

        values = read(tf.convert_to_tensor(self.anchor))
        return tf.cast(values, self.compute_dtype)

    def _refuse_loss_scaling(self) -> None:
        """ValueError for loss scaling: the layer would step its rows with the scaled gradient."""
        model = self._get_call_context().entry_layer
        optimizer = getattr(model, "optimizer", None)
        scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        if scaled or getattr(optimizer, "loss_scale_factor", None) is not None:
            raise ValueError(
                f"{self.name}: expected an optimizer without loss scaling, got "
                f"{type(optimizer).__name__}; this layer would step its rows by the scaled "
                "gradient. Use compile(..., auto_scale_loss=False), or the policy mixed_bfloat16"
            )
        if self.dtype_policy.name == "mixed_float16":
            raise ValueError(
                f"{self.name}: expected a dtype policy that needs no loss scaling, "
                "got mixed_float16; use mixed_bfloat16"
            )

    def _exact(self, ids: tf.Tensor) -> tf.Tensor:
        """Casts ids of any numeric dtype to the key dtype; an error if it cannot hold them all."""
        if ids.dtype == self.table.key_dtype or tf.string in (ids.dtype, self.table.key_dtype):
            return ids  # the table raises for strings in place of numbers, and vice versa
        cast = tf.cast(ids, self.table.key_dtype)
        zero = tf.zeros((), ids.dtype)
        same = (tf.cast(cast, ids.dtype) == ids) & ((cast < 0) == (ids < zero))
        message = f"inputs: expected ids that {self.key_dtype} can hold, got {ids.dtype.name}"
        tf.debugging.Assert(tf.reduce_all(same), [message, ids])
        return cast

    def _read(self, table: HashTable, ids: tf.Tensor) -> tf.Tensor:
        # A SavedModel does not accept gradient functions that capture a constant, such as the
        # table's default. So pass zeros.
        return table.lookup(ids, tf.zeros(self.output_dim, self.variable_dtype))

    def _admit(self, ids: tf.Tensor) -> None:
        flat = tf.reshape(ids, [-1])
        shape = tf.stack([tf.size(flat), self.output_dim])
        rows = self._draw_rows(shape, dtype=self.variable_dtype)
        rows = tf.ensure_shape(rows, [None, self.output_dim])
        self.table.accumulate(flat, rows, reduce="first")

    def _step(self, ids: tf.Tensor, gradient: tf.Tensor) -> None:
        flat = tf.reshape(ids, [-1])
        rows = tf.reshape(tf.cast(gradient, self.variable_dtype), [-1, self.output_dim])
        rate = tf.constant(self.learning_rate, rows.dtype)
        if self.optimizer == "adagrad":
            # An id that occurs several times has one gradient, the sum.
            flat, places = tf.unique(flat)
            rows = tf.math.unsorted_segment_sum(rows, places, tf.size(flat))
            self.squares.accumulate(flat, rows * rows)
            rows = rows / (tf.sqrt(self._read(self.squares, flat)) + EPSILON)
        self.table.accumulate(flat, -rate * rows)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        return (*input_shape, self.output_dim)

    def get_config(self) -> dict[str, object]:
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
        """Writes this layer's variables and tables to a .keras or .weights.h5 file."""
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
            keys: Any = np.asarray(store[f"{name}_keys"])
            if table.key_dtype == tf.string:
                ends = np.cumsum(np.asarray(store[f"{name}_lengths"]))
                keys = [part.tobytes() for part in np.split(keys, ends[:-1])] if len(ends) else []
            keys = tf.convert_to_tensor(keys, table.key_dtype)
            table._import(keys, tf.convert_to_tensor(np.asarray(store[f"{name}_values"])))


def row_initializer(initializer: Any, width: int, seed: Any) -> Any:
    """An initialiser for rows of `width` numbers, independent of the batch size, drawn from `seed`.

    Variance scaling depends on a matrix's inputs and outputs. A row counts as the matrix of one id:
    one input, `width` outputs.
    """
    if not isinstance(initializer, keras.initializers.VarianceScaling):
        drawing = initializer.clone()
        drawing.seed = seed
        return drawing
    fans = {"fan_in": 1.0, "fan_out": float(width), "fan_avg": (1.0 + width) / 2}
    deviation = math.sqrt(initializer.scale / max(1.0, fans[initializer.mode]))
    if initializer.distribution == "uniform":
        limit = math.sqrt(3.0) * deviation
        return keras.initializers.RandomUniform(-limit, limit, seed=seed)
    if initializer.distribution == "truncated_normal":
        return keras.initializers.TruncatedNormal(0.0, deviation / TRUNCATED, seed=seed)
    return keras.initializers.RandomNormal(0.0, deviation, seed=seed)
