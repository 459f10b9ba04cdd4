# Recommenders: vectors of ids that never stop coming, learned in the table and evicted by use.
import numpy as np

import tensorhash as th

rng, adam = np.random.default_rng(0), th.optim.Adam(lr=0.1)
table = th.BoundedHashMap(1000, "int64", (), **adam.columns("float32", (8,)))
for _ in range(200):
    ids = rng.zipf(1.5, 256)  # some ids are frequent, most are new
    table.activate(ids)
    table.update(ids, table.get(ids)[0] - 1, adam, duplicates="sum")
print(f"{len(table)} ids, the most frequent one learned {table.get([1])[0].mean():.2f} of 1.00")
