"""Embedding: a Keras layer that adds a row for each new id in training."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tensorhash.tensorflow._admission import Admission
from tensorhash.tensorflow._combine import COMBINERS, combine, segments_of
from tensorhash.tensorflow._composite import flat, rebuild
from tensorhash.tensorflow._files import load_table, save_table
from tensorhash.tensorflow._initial_rows import RANDOM, require_rows, row_initializer
from tensorhash.tensorflow._rows_weight import RowsWeight
from tensorhash.tensorflow._stage import RowsAnchor, Stage, StepAnchor


@keras.saving.register_keras_serializable(package="tensorhash")
class Embedding(keras.layers.Layer):
    """Maps ids to trainable vectors without a vocabulary. Ids are integers or strings.

    In training, new ids get a row from `embeddings_initializer`. Outside of training, or with
    trainable=False, new ids read as zeros and are not added. The rows are in `self.table`, a
    HashTable. Train with an optimizer of tensorhash.tensorflow.optimizers: it steps the rows of a
    batch like any other weight, after unscaling and clipping.

    Ids are a dense, a ragged or a sparse tensor. `combiner`, "sum", "mean" or "sqrtn", joins the
    rows of the last axis, with `weights` of the shape of the ids if they are given. With
    `mask_zero`, id 0 is padding: it has no row and no part in a combination, and the layer makes a
    mask. `embeddings_regularizer` and `activity_regularizer` see the rows of the batch.

    An id gets its row when it was seen `admit_after` times in training. A layer of `max_capacity`
    rows drops those that training did not use for longest ("lru") or that it saw least ("lfu").

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
        embeddings_regularizer: Any = None,
        mask_zero: bool = False,
        combiner: str | None = None,
        capacity: int = 0,
        max_capacity: int | None = None,
        eviction: str = "lru",
        admit_after: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if combiner is not None and combiner not in COMBINERS:
            raise ValueError(f"combiner: expected one of {', '.join(COMBINERS)}, got {combiner!r}")
        if isinstance(key_dtype, int):  # TensorFlow has numbers for dtypes
            raise TypeError(
                f"key_dtype: expected a dtype, got {key_dtype}; this layer has no input_dim: "
                f"output_dim comes first"
            )
        self.output_dim = int(output_dim)
        self.key_dtype = tf.as_dtype(key_dtype).name
        if mask_zero and self.key_dtype == "string":
            raise ValueError("mask_zero: expected False for string ids, got True")
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        require_rows(self.embeddings_initializer)
        self._draw_rows = self.embeddings_initializer
        if isinstance(self.embeddings_initializer, RANDOM):
            # A Keras initialiser draws the same numbers at every call. Rows of different batches
            # must differ, so use a seed generator.
            self.seed_generator = keras.random.SeedGenerator(self.embeddings_initializer.seed)
            self._draw_rows = row_initializer(
                self.embeddings_initializer, self.output_dim, self.seed_generator
            )
        self.embeddings_regularizer = keras.regularizers.get(embeddings_regularizer)
        self.mask_zero = self.supports_masking = bool(mask_zero)
        self.combiner = combiner
        self.capacity = int(capacity)
        self.supports_jit = False  # XLA does not support tables
        self._admission = Admission(
            self.key_dtype, self.variable_dtype, self.output_dim,
            capacity=self.capacity, max_capacity=max_capacity, eviction=eviction,
            admit_after=admit_after,
        )  # fmt: skip
        self.table = self._admission.table
        self._rows = RowsWeight(self.table, f"{self.name}/rows")

    @property
    def weights(self) -> list[keras.Variable | RowsWeight]:
        """Keras' weights, then the rows, for get_weights, set_weights and EarlyStopping."""
        return [*super().weights, self._rows] if self.built else super().weights

    def build(self, input_shape: Any) -> None:
        self._stage = Stage(self.key_dtype)
        self.anchor = RowsAnchor(self.table, self._stage, self._admission.dropped, "rows_anchor")
        self.step_anchor = StepAnchor(self._stage, "step_anchor", self.variable_dtype)
        self.built = True

    def call(self, inputs: Any, weights: Any = None, training: bool = False) -> tf.Tensor:
        if not isinstance(inputs, tf.RaggedTensor | tf.SparseTensor):
            inputs = tf.convert_to_tensor(inputs)
        ids = self._exact(flat(inputs))
        learning = bool(training) and bool(self.trainable)
        self._stage.was_trained |= learning
        self._stage.was_read |= bool(self.trainable) and not learning
        values = self._learn(ids) if learning else self.table.lookup(ids)
        if self.combiner is None:
            if weights is not None:
                raise ValueError("weights: expected none without a combiner")
            values = tf.cast(values, self.compute_dtype)
            return rebuild(inputs, tf.TensorShape([self.output_dim]))(values)
        return self._combine(inputs, ids, values, weights)

    def _learn(self, ids: tf.Tensor) -> tf.Tensor:
        """The rows of the ids, [*ids.shape, output_dim]. Their gradient goes to the anchors."""
        one_axis = tf.reshape(ids, [-1])
        self._admission.see(self._without_padding(one_axis), self._draw_rows)
        numbers = self._stage.number(one_axis)

        @tf.custom_gradient
        def read(anchor: tf.Tensor, step_anchor: tf.Tensor) -> Any:
            def backward(upstream: Any) -> Any:
                rows = self._stage.sum_rows(tf.convert_to_tensor(upstream), numbers)
                return rows, self._stage.tag(rows.dtype)

            return self._read(one_axis), backward

        rows = read(tf.convert_to_tensor(self.anchor), tf.convert_to_tensor(self.step_anchor))
        if self.embeddings_regularizer is not None:
            self.add_loss(self.embeddings_regularizer(_distinct(rows, numbers)))
        return tf.reshape(rows, tf.concat([tf.shape(ids), [self.output_dim]], 0))

    def _combine(self, inputs: Any, ids: tf.Tensor, values: tf.Tensor, weights: Any) -> tf.Tensor:
        one_axis = tf.reshape(ids, [-1])
        factors = tf.ones(tf.shape(one_axis), values.dtype)
        if weights is not None:
            factors = tf.cast(tf.reshape(flat(weights), [-1]), values.dtype)
        if self.mask_zero:
            factors *= tf.cast(tf.not_equal(one_axis, 0), values.dtype)
        segments, count = segments_of(inputs)
        rows = tf.reshape(values, [-1, self.output_dim])
        joined = combine(rows, factors, segments, count, self.combiner or "sum")
        if not isinstance(inputs, tf.RaggedTensor | tf.SparseTensor):
            joined = tf.reshape(joined, tf.concat([tf.shape(ids)[:-1], [self.output_dim]], 0))
        joined = tf.ensure_shape(joined, [*inputs.shape[:-1], self.output_dim])
        return tf.cast(joined, self.compute_dtype)

    def _without_padding(self, ids: tf.Tensor) -> tf.Tensor:
        return tf.boolean_mask(ids, tf.not_equal(ids, 0)) if self.mask_zero else ids

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

    def _read(self, ids: tf.Tensor) -> tf.Tensor:
        # A SavedModel does not accept gradient functions that capture a constant, such as the
        # table's default. So pass zeros.
        return self.table.lookup(ids, tf.zeros(self.output_dim, self.variable_dtype))

    def compute_mask(self, inputs: Any, mask: Any = None) -> tf.Tensor | None:
        if not self.mask_zero or self.combiner is not None:
            return None
        if isinstance(inputs, tf.RaggedTensor):
            return tf.not_equal(inputs, 0)
        return keras.ops.not_equal(inputs, 0)  # also of symbolic inputs

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        kept = input_shape if self.combiner is None else input_shape[:-1]
        return (*kept, self.output_dim)

    def get_config(self) -> dict[str, object]:
        return {
            **super().get_config(),
            "output_dim": self.output_dim,
            "key_dtype": self.key_dtype,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "embeddings_regularizer": keras.regularizers.serialize(self.embeddings_regularizer),
            "mask_zero": self.mask_zero,
            "combiner": self.combiner,
            "capacity": self.capacity,
            **self._admission.config(),
        }

    def save_own_variables(self, store: Any) -> None:
        """Writes this layer's variables and tables to a .keras or .weights.h5 file."""
        super().save_own_variables(store)
        for name, table in self._admission.tables().items():
            save_table(store, name, table)

    def load_own_variables(self, store: Any) -> None:
        ours = tuple(f"{name}_" for name in self._admission.tables())
        super().load_own_variables(
            {name: store[name] for name in store.keys() if not name.startswith(ours)}  # noqa: SIM118
        )
        for name, table in self._admission.tables().items():
            load_table(store, name, table)


def _distinct(rows: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """One of the equal rows of each number."""
    distinct, places = tf.unique(numbers)
    first = tf.math.unsorted_segment_min(tf.range(tf.size(numbers)), places, tf.size(distinct))
    return tf.gather(rows, first)
