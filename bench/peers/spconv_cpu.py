"""spconv on the CPU as a contender: kernel maps and layers, with torch tensors. Their conversion is not timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from spconv import pytorch as layers
from spconv.core import ConvAlgo
from spconv.pytorch import ops

NAME = "spconv"
# The layers of networks are taken from here, because of the next line.
__all__ = ["NAME", "batch", "counts", "kernel_map", "layers"]
# Every backward pass asks CUDA for a stream, also on the CPU, where nothing uses it and torch has
# no CUDA.
if not torch.cuda.is_available():
    ops.get_current_stream = lambda: 0


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
