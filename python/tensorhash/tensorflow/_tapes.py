"""Which tape runs a gradient function, and what it was asked for."""

from __future__ import annotations

import inspect
import sys
from types import CodeType
from typing import Any

import tensorflow as tf


def _code(function: Any) -> CodeType:
    return inspect.unwrap(function).__code__


# Where gradients are asked for, and the name of the argument that says of what.
ASKING = {
    _code(tf.GradientTape.gradient): "sources",
    _code(tf.gradients): "xs",
    _code(tf.compat.v1.gradients): "xs",
}
SAVING = "tensorflow.python.saved_model.save"


def require_asked_for(variable: Any, layer: str) -> bool:
    """Refuses a gradient of other things than `variable`, a Keras variable. Whether the step is being compiled.

    A tape calls the gradient function of everything between a loss and the variables that it watched, also when it
    was asked for others. TensorFlow does not tell the gradient function, but the callers on the stack know.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if name := ASKING.get(frame.f_code):
            asked = tf.nest.flatten(frame.f_locals[name])
            if any(one is variable or one is variable.value for one in asked):
                return not tf.executing_eagerly()
            raise ValueError(
                f"{layer}: expected the gradient of this layer's trainable_variables among others, got a request "
                "without them, which would step the rows all the same. Ask for them too, or set trainable=False"
            )
        if frame.f_globals.get("__name__") == SAVING:
            return False  # a SavedModel keeps the gradient function; nothing is stepped now
        frame = frame.f_back
    raise ValueError(
        f"{layer}: expected the tape inside the tf.function that calls this layer, got a tape outside of it, "
        "which does not say what it was asked for. Put the tape inside, or call the layer eagerly"
    )
