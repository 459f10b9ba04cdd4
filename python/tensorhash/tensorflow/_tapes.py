"""The tape that runs a gradient function, and the variables in its request."""

from __future__ import annotations

import inspect
import sys
from types import CodeType, FrameType
from typing import Any

import tensorflow as tf


def _code(function: Any) -> CodeType:
    code: CodeType = inspect.unwrap(function).__code__
    return code


# The functions that request gradients, and the argument that holds the variables.
ASKING = {
    _code(tf.GradientTape.gradient): "sources",
    _code(tf.gradients): "xs",
    _code(tf.compat.v1.gradients): "xs",
}
SAVING = "tensorflow.python.saved_model.save"


def require_asked_for(variable: Any, layer: str) -> bool:
    """ValueError unless the request includes `variable`, a Keras variable. Returns whether the step is compiled.

    A tape calls the gradient function of everything between a loss and the variables that it watched, also if the
    request names others. TensorFlow does not pass the request on, but it is on the call stack.
    """
    frame: FrameType | None = sys._getframe(1)
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
