"""Trains a tiny sparse network to tell balls from boxes by the voxels of their surface."""

import sys
import time

import numpy as np

try:
    import torch
except ImportError:
    print("this example needs torch: pip install torch")
    sys.exit()

from tensorhash.coords import voxelize
from tensorhash.torch import SparseConv3d

POINTS, VOXEL = 500, 0.5


def surface(is_ball, rng):
    """Points on a ball or a box of random size and position."""
    directions = rng.normal(size=(POINTS, 3))
    norm = np.linalg.norm if is_ball else lambda d, **_: np.abs(d).max(axis=1, keepdims=True)
    radius = rng.uniform(1.2, 2.2)
    return directions / norm(directions, axis=1, keepdims=True) * radius + rng.uniform(-5, 5, 3)


def batch(count, rng):
    """(coords [N, 4], labels [count]): one shape per batch number."""
    labels = rng.integers(0, 2, count)
    rows = []
    for number, label in enumerate(labels):
        voxels = voxelize(surface(label == 1, rng), VOXEL).coords
        rows.append(np.insert(np.asarray(voxels, dtype=np.int32), 0, number, axis=1))
    return torch.from_numpy(np.concatenate(rows)), torch.from_numpy(labels)


class Network(torch.nn.Module):
    """Two convolutions, the first with stride 2, then a linear layer on each shape's mean."""

    def __init__(self):
        super().__init__()
        self.first = SparseConv3d(1, 16, 3, stride=2)
        self.second = SparseConv3d(16, 32, 3)
        self.last = torch.nn.Linear(32, 2)

    def forward(self, coords, count):
        features, coords = self.first(torch.ones(len(coords), 1), coords)
        features, coords = self.second(features.relu(), coords)
        which = coords[:, 0].long()
        total = torch.zeros(count, 32).index_add_(0, which, features.relu())
        voxels = torch.bincount(which, minlength=count).unsqueeze(1)
        return self.last(total / voxels)


def main():
    start = time.perf_counter()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the batches are small: threads would cost more than they save
    rng = np.random.default_rng(0)
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    test_coords, test_labels = batch(200, rng)

    def accuracy():
        with torch.no_grad():
            guesses = network(test_coords, len(test_labels)).argmax(dim=1)
        return (guesses == test_labels).float().mean().item()

    print(f"before: {accuracy():.0%} of 200 shapes right ({len(test_coords)} voxels)")
    for step in range(1, 61):
        coords, labels = batch(32, rng)
        loss = torch.nn.functional.cross_entropy(network(coords, len(labels)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}, {accuracy():.0%} right")
    final = accuracy()
    print(f"after: {final:.0%} right, {time.perf_counter() - start:.1f} s")
    assert final > 0.9, "the network did not learn"


if __name__ == "__main__":
    main()
