# Recommenders in torch: rows for any ids, and a dense layer, trained as usual.
import torch

import tensorhash as th
from tensorhash.torch import HashEmbeddingBag, TableOptimizer

rows, dense = HashEmbeddingBag(8, "sum", seed=0), torch.nn.Linear(8, 1)
tables, weights = TableOptimizer(rows, th.optim.Adam(lr=0.1)), torch.optim.Adam(dense.parameters())
for _ in range(150):
    ids = torch.randint(-(2**62), 2**62, (64, 3)) // 2**56  # three of 128 ids per sample
    loss = (dense(rows(ids)).squeeze(1) - (ids > 0).sum(1)).square().mean()
    loss.backward(), tables.step(), weights.step(), tables.zero_grad(), weights.zero_grad()
print(f"{len(rows)} ids learned, loss {loss.item():.3f}")
