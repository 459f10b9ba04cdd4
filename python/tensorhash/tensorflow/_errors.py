"""TensorFlow's error for a wrong argument."""

from __future__ import annotations

import tensorflow as tf


def refuse(message: str) -> tf.errors.InvalidArgumentError:
    """TensorFlow's error for a wrong argument."""
    return tf.errors.InvalidArgumentError(None, None, message)
