# 3-D vision: fuses two scans into one map of voxels with their mean points.
import numpy as np

import tensorhash as th

table = th.HashMap(0, "int32", (3,), ("float64", "int64"), ((3,), ()))
for seed in (0, 1):
    points = np.random.default_rng(seed).normal(size=(100_000, 3))
    ones = np.ones(len(points), np.int64)
    table.accumulate(np.floor(points / 0.1).astype(np.int32), [points, ones], reduce="sum")
voxels, (sums, counts) = table.items()
centroids = sums / counts[:, None]
print(f"{counts.sum()} points in {len(voxels)} voxels, centroids {centroids.shape}")
