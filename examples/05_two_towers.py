"""Trains two towers, users and items, and prints how well they rank held-out pairs.

usage: python 05_two_towers.py, or torchrun --nproc-per-node=2 05_two_towers.py
"""

import os
import sys

import numpy as np

try:
    import torch
except ImportError:
    print("this example needs torch: pip install torch")
    sys.exit()

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import tensorhash
from tensorhash.torch import DistributedHashEmbedding, TableOptimizer

USERS, ITEMS, TASTES = 600, 400, 8
PAIRS, HELD_OUT = 40_000, 5_000
WIDTH, BATCH, EPOCHS = 8, 512, 6


def interactions(rng):
    """(user, item) numbers: a user picks popular items, and more often those of their taste."""
    taste_of_user = rng.dirichlet(np.full(TASTES, 0.1), USERS)
    taste_of_item = rng.dirichlet(np.full(TASTES, 0.1), ITEMS)
    popularity = 1 / (10 + rng.permutation(ITEMS)) ** 0.7
    liking = popularity * (0.01 + taste_of_user @ taste_of_item.T)
    chances = np.cumsum(liking / liking.sum(axis=1, keepdims=True), axis=1)
    users = rng.integers(0, USERS, PAIRS + HELD_OUT)
    picks = rng.random(PAIRS + HELD_OUT)
    items = np.array(
        [np.searchsorted(chances[user], pick) for user, pick in zip(users, picks, strict=True)]
    )
    return users, np.minimum(items, ITEMS - 1)


class Tower(torch.nn.Module):
    """A row per id, then a linear layer."""

    def __init__(self, seed):
        super().__init__()
        self.rows = DistributedHashEmbedding(WIDTH, seed=seed, dtype=torch.float64)
        self.linear = torch.nn.Linear(WIDTH, WIDTH, dtype=torch.float64)
        torch.nn.init.eye_(self.linear.weight)

    def forward(self, ids):
        return self.linear(self.rows(ids))


class TwoTowers(torch.nn.Module):
    """The score of a pair is the product of the outputs of two towers."""

    def __init__(self):
        super().__init__()
        self.users, self.items = Tower(1), Tower(2)

    def forward(self, users, items):
        return (self.users(users) * self.items(items)).sum(-1)


def train(model, users, items, strangers):
    """Epochs of batches; each rank takes its part of every batch."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tables = TableOptimizer(model, tensorhash.optim.Adam(lr=0.02))
    parallel = DistributedDataParallel(model)
    dense = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        order = torch.randperm(PAIRS, generator=torch.Generator().manual_seed(epoch))
        for batch in order.split(BATCH):
            mine = batch.tensor_split(ranks)[rank]
            tables.zero_grad()
            dense.zero_grad()
            both = torch.cat([items[mine], strangers[epoch][mine]])
            labels = torch.cat([torch.ones(len(mine)), torch.zeros(len(mine))]).double()
            scores = parallel(users[mine].repeat(2), both)
            # The mean over all ranks, also if their parts differ in size by one.
            losses = torch.nn.functional.binary_cross_entropy_with_logits(
                scores, labels, reduction="sum"
            )
            (losses * ranks / (2 * len(batch))).backward()
            tables.step()
            dense.step()


def auc(liked, others):
    """The chance that the item that was picked has the higher score."""
    return float(np.mean((liked > others) + 0.5 * (liked == others)))


def main():
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    users, items = interactions(rng)
    strangers = rng.integers(0, ITEMS, (EPOCHS + 1, PAIRS))
    # Ids are arbitrary 64-bit numbers.
    id_of_user = rng.integers(-(2**63), 2**63, USERS)
    id_of_item = rng.integers(-(2**63), 2**63, ITEMS)
    user_ids, item_ids, stranger_ids = map(
        torch.from_numpy, (id_of_user[users], id_of_item[items], id_of_item[strangers])
    )
    model = TwoTowers()
    train(model, user_ids[:PAIRS], item_ids[:PAIRS], stranger_ids)

    model.eval()
    held, negatives = user_ids[PAIRS:], stranger_ids[EPOCHS][:HELD_OUT]
    with torch.no_grad():
        ours = auc(model(held, item_ids[PAIRS:]).numpy(), model(held, negatives).numpy())
    counts = np.bincount(items[:PAIRS], minlength=ITEMS)
    popular = auc(counts[items[PAIRS:]], counts[strangers[EPOCHS][:HELD_OUT]])
    if dist.get_rank() == 0:
        print(f"held-out AUC {ours:.6f}, by popularity {popular:.6f}")
    if ours < popular + 0.1:
        sys.exit("the towers do not rank clearly better than popularity")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
