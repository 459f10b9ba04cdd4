"""Segments synthetic rooms with a MinkUNet, and with the same network without neighbours."""

import sys
import time

try:
    import torch
except ImportError:
    print("this example needs torch: pip install torch")
    sys.exit()

from tensorhash.cli.demo.rooms import CLASSES, room
from tensorhash.torch import MinkUNet, sparse_collate

STEPS, ROOMS, HELD_OUT = 150, 2, 16  # steps, rooms of a batch, rooms that are never trained on


def batch(seeds):
    """(SparseTensor of several rooms, labels)."""
    rooms = [room(seed) for seed in seeds]
    coords = [torch.from_numpy(one.coords) for one in rooms]
    features = [torch.from_numpy(one.features) for one in rooms]
    labels = torch.cat([torch.from_numpy(one.labels) for one in rooms])
    return sparse_collate(coords, features), labels


def mean_iou(network):
    """The mean over classes of intersection by union, on rooms that were held out."""
    network.eval()
    joint = torch.zeros(len(CLASSES), len(CLASSES))
    with torch.no_grad():
        for seed in range(HELD_OUT):
            x, labels = batch([seed])
            guesses = network(x).features.argmax(dim=1)
            pairs = labels * len(CLASSES) + guesses
            joint += torch.bincount(pairs, minlength=joint.numel()).view_as(joint)
    network.train()
    hits = joint.diag()
    return (hits / (joint.sum(0) + joint.sum(1) - hits)).mean().item()


def train(network, name):
    """Trains on rooms that it has not seen; returns the mean IoU."""
    start = time.perf_counter()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=STEPS)
    for step in range(STEPS):
        seeds = range(HELD_OUT + step * ROOMS, HELD_OUT + (step + 1) * ROOMS)
        x, labels = batch(seeds)
        loss = torch.nn.functional.cross_entropy(network(x).features, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 49:
            print(f"  {name}, step {step + 1}: loss {loss.item():.3f}, {len(x)} voxels")
    result = mean_iou(network)
    seconds = time.perf_counter() - start
    print(f"{name}: mean IoU {result:.2f} on {HELD_OUT} held-out rooms, {seconds:.0f} s")
    return result


def main():
    torch.manual_seed(0)
    with_neighbours = train(MinkUNet(2, len(CLASSES), (16, 32, 64)), "MinkUNet")
    alone = MinkUNet(2, len(CLASSES), (16, 32, 64), kernel_size=1, down_kernel_size=1)
    without = train(alone, "the same with 1^3 kernels")
    assert with_neighbours > 0.8, "the network did not learn"
    assert without < with_neighbours - 0.1, "neighbours did not help"


if __name__ == "__main__":
    main()
