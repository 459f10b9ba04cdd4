"""Trains a MinkUNet on synthetic rooms and segments a room that it has not seen. Needs torch."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import torch

from tensorhash._types import NumPyArray
from tensorhash.cli.demo.rooms import CLASSES, Room, room
from tensorhash.cli.demo.stages import Timing
from tensorhash.torch import MinkUNet, SparseTensor, sparse_collate

STEPS, ROOMS = 60, 2
WIDTHS = (16, 32, 64)
HELD_OUT = 0  # the seed of the room in the picture


class Segmented(NamedTuple):
    """A held-out room and the classes that the network gives its voxels."""

    room: Room
    guesses: NumPyArray

    def right(self) -> float:
        """The share of voxels with the right class."""
        return float((self.guesses == self.room.labels).mean())


def segment() -> tuple[Segmented, Timing]:
    """Trains, then segments the held-out room. The time is that of the training steps."""
    torch.manual_seed(0)
    network = MinkUNet(2, len(CLASSES), WIDTHS)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=STEPS)
    seconds, voxels = 0.0, 0
    for step in range(STEPS):
        x, labels = _batch([1 + step * ROOMS + number for number in range(ROOMS)])
        start = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(network(x).features, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        seconds, voxels = seconds + time.perf_counter() - start, voxels + len(x)
    network.eval()
    held_out = room(HELD_OUT)
    with torch.no_grad():
        x, _ = _batch([HELD_OUT])
        guesses = network(x).features.argmax(dim=1).numpy()
    result = Segmented(held_out, np.asarray(guesses))
    if result.right() < 0.6:
        raise RuntimeError(f"the demo failed: {result.right():.0%} of the voxels are right")
    return result, Timing(f"MinkUNet: {STEPS} steps on rooms", voxels, seconds, None)


def _batch(seeds: list[int]) -> tuple[SparseTensor, torch.Tensor]:
    rooms = [room(seed) for seed in seeds]
    coords = [torch.from_numpy(one.coords) for one in rooms]
    x = sparse_collate(coords, [torch.from_numpy(one.features) for one in rooms])
    return x, torch.cat([torch.from_numpy(one.labels) for one in rooms])
