"""Draws the first rows of new ids, whatever the batch they come in."""

from __future__ import annotations

import math
from typing import Any

import keras

# Keras cuts truncated normals at two standard deviations; division by this restores the variance.
TRUNCATED = 0.87962566103423978
RANDOM = (
    keras.initializers.RandomNormal,
    keras.initializers.RandomUniform,
    keras.initializers.TruncatedNormal,
    keras.initializers.VarianceScaling,
)
WHOLE = (keras.initializers.Orthogonal, keras.initializers.Identity)


def require_rows(initializer: Any) -> None:
    """ValueError for an initialiser that makes a whole matrix."""
    if isinstance(initializer, WHOLE):
        raise ValueError(
            "embeddings_initializer: expected one that draws each row independently, got "
            f"{type(initializer).__name__}, which makes a whole matrix"
        )


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
