"""Finds out which variables a gradient request names, from inside a gradient function."""

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
    """ValueError unless the gradient request names `variable`, a Keras variable.

    Returns whether the step is compiled. A tape calls the gradient function of everything between
    the loss and the variables that it watched, even if the request names others. TensorFlow does
    not pass the request on, so find it on the call stack.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if name := ASKING.get(frame.f_code):
            asked = tf.nest.flatten(frame.f_locals[name])
            if any(one is variable or one is variable.value for one in asked):
                return not tf.executing_eagerly()
            raise ValueError(
                f"{layer}: expected a gradient request that includes this layer's "
                "trainable_variables, got one without them, which would still step the rows. "
                "Request them too, or set trainable=False"
            )
        if frame.f_globals.get("__name__") == SAVING:
            return False  # saving a model only traces the gradient function: no step is made
        frame = frame.f_back
    raise ValueError(
        f"{layer}: expected the tape inside the tf.function that calls this layer, got a tape "
        "outside of it, so that its request is not known here. Put the tape inside, or call the "
        "layer eagerly"
    )
