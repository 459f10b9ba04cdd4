"""Keras' optimizers that also step the rows of tensorhash.tensorflow.Embedding.

>>> import keras, numpy as np, tensorhash.tensorflow as thtf
>>> model = keras.Sequential([thtf.Embedding(2, combiner="mean"), keras.layers.Dense(1)])
>>> model.compile(thtf.optimizers.Adam(0.01, clipnorm=1.0), "mse")
>>> _ = model.fit(np.array([[10**12, 7]]), np.ones((1, 1)), verbose=0)
>>> int(model.layers[0].table.size())
2
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tensorhash.tensorflow._row_slots import Pending, Rows, RowSlots
from tensorhash.tensorflow._stage import RowsAnchor, StepAnchor

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "RowOptimizer"]


class RowOptimizer:
    """A mixin that teaches a Keras optimizer to step the rows of tables.

    It goes in front of the optimizer's class: `class Lion(RowOptimizer, keras.optimizers.Lion)`.
    A row steps when its gradient is not zero: the optimizer's own update_step runs on the rows of
    the batch and on their state, after unscaling, accumulation and clipping. Rows without a
    gradient rest: neither momentum nor weight decay changes them. The optimizer counts its steps,
    not those of a row. use_ema is refused.
    """

    def build(self: Any, variables: Any) -> None:
        if self.built:
            return
        anchors = [one for one in variables if isinstance(one, RowsAnchor)]
        if anchors and self.use_ema:
            raise ValueError(
                "use_ema: expected False for a model with a tensorhash Embedding, got True; "
                "a table has no moving averages"
            )
        # Keras would track an ordinary attribute, and refuse what is in it.
        object.__setattr__(self, "_row_slots", [RowSlots(one) for one in anchors])
        super().build(variables)  # type: ignore[misc]
        for number, slots in enumerate(self._row_slots):
            slots.create()
            for part, table in slots.tables().items():
                setattr(self, f"rows_{number}_{part}", table)  # checkpoints find it here

    def _slots_of(self: Any, variable: Any) -> RowSlots | None:
        return next((one for one in self._row_slots if one.anchor is variable), None)

    def add_variable_from_reference(
        self: Any, reference_variable: Any, name: str | None = None, initializer: Any = "zeros"
    ) -> keras.Variable | Rows | Pending:
        slots = self._slots_of(reference_variable)
        if slots is None:
            return super().add_variable_from_reference(  # type: ignore[misc]
                reference_variable, name=name, initializer=initializer
            )
        if name == "gradient_accumulator":
            return slots.accumulator()
        return slots.add(initializer)

    def _get_variable_index(self: Any, variable: Any) -> int:
        if isinstance(variable, Rows):
            variable = variable.anchor
        index: int = super()._get_variable_index(variable)  # type: ignore[misc]
        return index

    def _filter_empty_gradients(self: Any, grads: Any, vars: Any) -> tuple[list[Any], list[Any]]:
        """As Keras, which only warns of variables without a gradient."""
        for gradient, variable in zip(grads, vars, strict=True):
            if gradient is None and isinstance(variable, RowsAnchor):
                variable.stage.require_training(variable.path)
        return super()._filter_empty_gradients(grads, vars)  # type: ignore[misc,no-any-return]

    def _overwrite_variables_directly_with_gradients(
        self: Any, grads: Any, variables: Any
    ) -> tuple[list[Any], list[Any]]:
        """Takes out the gradients of StepAnchors, and checks that they are of this step."""
        steps = {id(v.stage): g for g, v in zip(grads, variables, strict=True)
                 if isinstance(v, StepAnchor)}  # fmt: skip
        kept, left = [], []
        for gradient, variable in zip(grads, variables, strict=True):
            if isinstance(variable, StepAnchor):
                continue
            if isinstance(variable, RowsAnchor):
                gradient = _of_this_step(variable, gradient, steps.get(id(variable.stage)))
            kept.append(gradient)
            left.append(variable)
        return super()._overwrite_variables_directly_with_gradients(  # type: ignore[misc,no-any-return]
            kept, left
        )

    def _backend_apply_gradients(self: Any, grads: Any, variables: Any) -> None:
        grads, opened = list(grads), []
        for at, variable in enumerate(variables):
            if (slots := self._slots_of(variable)) is not None:
                grads[at] = slots.open(grads[at], self._is_update_step())
                opened.append(slots)
        super()._backend_apply_gradients(grads, variables)  # type: ignore[misc]
        for slots in opened:
            slots.close()

    def _is_update_step(self: Any) -> tf.Tensor | None:
        steps = self.gradient_accumulation_steps
        return None if not steps else tf.equal((self._iterations + 1) % steps, 0)

    def _backend_increment_gradient_accumulators(self: Any, grads: Any, acc_grads: Any) -> None:
        dense = [
            (g, acc)
            for g, acc in zip(grads, acc_grads, strict=True)
            if not isinstance(acc, Pending)
        ]
        super()._backend_increment_gradient_accumulators(  # type: ignore[misc]
            [g for g, _ in dense], [acc for _, acc in dense]
        )

    def _apply_weight_decay(self: Any, variables: Any) -> None:
        dense = [one for one in variables if not isinstance(one, RowsAnchor)]
        super()._apply_weight_decay(dense)  # type: ignore[misc]

    def _backend_update_step(self: Any, grads: Any, variables: Any, learning_rate: Any) -> None:
        pairs = list(zip(grads, variables, strict=True))
        dense = [pair for pair in pairs if not isinstance(pair[1], RowsAnchor)]
        super()._backend_update_step(  # type: ignore[misc]
            [g for g, _ in dense], [v for _, v in dense], learning_rate
        )
        for gradient, variable in pairs:
            slots = self._slots_of(variable)
            if slots is not None:
                self._step_rows(slots, gradient, learning_rate)

    def _step_rows(self: Any, slots: RowSlots, gradient: tf.Tensor, learning_rate: Any) -> None:
        rows = slots.read()
        if self.weight_decay is not None and self._use_weight_decay(slots.anchor):
            rate = tf.cast(self.learning_rate, rows.dtype)
            rows.assign_sub(rows.now * tf.cast(self.weight_decay, rows.dtype) * rate)
        self.update_step(gradient, rows, learning_rate)
        slots.write(rows)

    def save_own_variables(self: Any, store: Any) -> None:
        super().save_own_variables(store)  # type: ignore[misc]
        for number, slots in enumerate(self._row_slots if self.built else []):
            slots.save(store, f"rows_{number}")

    def load_own_variables(self: Any, store: Any) -> None:
        super().load_own_variables(  # type: ignore[misc]
            {name: store[name] for name in store.keys() if not name.startswith("rows_")}  # noqa: SIM118
        )
        for number, slots in enumerate(self._row_slots if self.built else []):
            slots.load(store, f"rows_{number}")


def _of_this_step(variable: RowsAnchor, gradient: tf.Tensor, tag: Any) -> tf.Tensor:
    if tag is None:
        raise ValueError(
            f"gradients: expected those of all trainable_variables of an Embedding, got that of "
            f"{variable.path} alone"
        )
    check = variable.stage.require_current(tag)
    with tf.control_dependencies([] if check is None else [check]):
        return tf.identity(gradient)


@keras.saving.register_keras_serializable(package="tensorhash")
class SGD(RowOptimizer, keras.optimizers.SGD):
    """keras.optimizers.SGD, also for the rows of tables.

    >>> SGD(0.1, momentum=0.9).momentum
    0.9
    """


@keras.saving.register_keras_serializable(package="tensorhash")
class Adagrad(RowOptimizer, keras.optimizers.Adagrad):
    """keras.optimizers.Adagrad, also for the rows of tables.

    >>> Adagrad(0.1).initial_accumulator_value
    0.1
    """


@keras.saving.register_keras_serializable(package="tensorhash")
class Adam(RowOptimizer, keras.optimizers.Adam):
    """keras.optimizers.Adam, also for the rows of tables.

    >>> Adam(0.001, clipnorm=1.0).clipnorm
    1.0
    """


@keras.saving.register_keras_serializable(package="tensorhash")
class AdamW(RowOptimizer, keras.optimizers.AdamW):
    """keras.optimizers.AdamW, also for the rows of tables.

    >>> AdamW(0.001, weight_decay=0.01).weight_decay
    0.01
    """
