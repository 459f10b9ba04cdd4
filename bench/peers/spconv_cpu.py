"""spconv's CPU get_indice_pairs as a contender, with torch tensors. Their conversion is not timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from spconv.core import ConvAlgo
from spconv.pytorch import ops

NAME = "spconv"


def batch(coords: np.ndarray) -> tuple[torch.Tensor, int, list[int]]:
    """(indices, batch size, spatial shape). spconv needs coordinates that start at zero."""
    moved = coords.copy()
    moved[:, 1:] -= coords[:, 1:].min(axis=0)
    return (
        torch.from_numpy(moved),
        int(moved[:, 0].max()) + 1,
        (moved[:, 1:].max(axis=0) + 1).tolist(),
    )


def kernel_map(coords: tuple[torch.Tensor, int, list[int]], size: int) -> Any:
    indices, batches, shape = coords
    ones = [1] * 3
    return ops.get_indice_pairs(
        indices,
        batches,
        shape,
        ConvAlgo.Native,
        [size] * 3,
        ones,
        [size // 2] * 3,
        ones,
        [0] * 3,
        True,
    )


def counts(made: Any, size: int) -> np.ndarray:
    """Pairs per offset for the first half of the offsets. spconv counts no others."""
    return made[2].numpy()[: size**3 // 2]
