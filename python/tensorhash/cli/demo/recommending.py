"""Learns the ratings of `embedding` in torch: with a HashEmbedding, and with the hashing trick.

The hashing trick is what people use without a hash table: a torch.nn.Embedding of a fixed number of
rows, and the row of an id is its remainder. Ids with the same remainder share a row.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

import tensorhash
from tensorhash._types import NumPyArray
from tensorhash.cli.demo.embedding import BATCH, BATCHES, WIDTH, stream
from tensorhash.cli.demo.stages import Timing
from tensorhash.torch import HashEmbedding, TableOptimizer

STEPS = BATCHES // 2
_RATE, _START = 0.3, 0.35


class Compared(NamedTuple):
    """The root mean square error before each step, of both ways with as many rows."""

    ours: NumPyArray
    shared: NumPyArray  #: with the hashing trick
    rows: int


class _Remainders:
    """The hashing trick."""

    def __init__(self, rows: int) -> None:
        start = torch.empty(rows, WIDTH).uniform_(-_START, _START)
        self.rows = torch.nn.Embedding.from_pretrained(start, freeze=False)

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.rows(ids.remainder(len(self.rows.weight)))
        return out


def compare() -> tuple[Compared, Timing]:
    """Trains both ways. The time is that of the HashEmbedding."""
    batches = [
        tuple(torch.from_numpy(np.ascontiguousarray(part)) for part in batch)
        for batch in itertools.islice(stream(), 0, 2 * STEPS, 2)
    ]
    torch.manual_seed(0)
    layers = [HashEmbedding(WIDTH, init_scale=_START, seed=seed) for seed in (1, 2)]
    tables = TableOptimizer(layers, tensorhash.optim.Adagrad(lr=_RATE))
    began = time.perf_counter()
    ours = _train(batches, layers, tables)
    seconds = time.perf_counter() - began
    peers = [_Remainders(len(layer)) for layer in layers]
    weights = [one.rows.weight for one in peers]
    shared = _train(batches, peers, torch.optim.Adagrad(weights, lr=_RATE))
    result = Compared(ours, shared, sum(len(layer) for layer in layers))
    if not ours[-10:].mean() < 0.9 * shared[-10:].mean():
        raise RuntimeError("the demo failed: a row for each id is no better than shared rows")
    return result, Timing(f"HashEmbedding: {STEPS} steps", BATCH * STEPS, seconds, None)


def _train(
    batches: list[tuple[torch.Tensor, ...]],
    layers: Sequence[Callable[[torch.Tensor], torch.Tensor]],
    optimizer: torch.optim.Optimizer,
) -> NumPyArray:
    errors = []
    for users, items, ratings in batches:
        optimizer.zero_grad()
        error = (layers[0](users) * layers[1](items)).sum(1) - ratings
        (error.square().sum() / 2).backward()
        optimizer.step()
        errors.append(float(error.detach().square().mean().sqrt()))
    return np.array(errors)
