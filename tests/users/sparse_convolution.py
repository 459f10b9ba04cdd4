# Sparse convolution: voxels of a scan, their kernel map, one 3^3 convolution in NumPy.
import numpy as np

from tensorhash import coords

points = np.random.default_rng(0).normal(size=(20_000, 3))
voxels = coords.voxelize(points, 0.1, batch=np.zeros(len(points), np.int64)).coords
features, weight = np.ones((len(voxels), 4)), np.ones((27, 4, 8)) / 4
out = np.zeros((len(voxels), 8))
for k, (in_rows, out_rows) in enumerate(coords.generate_kernel_map(voxels, voxels, 1, (3, 3, 3))):
    out[out_rows] += features[in_rows] @ weight[k]
print(f"{len(voxels)} voxels have 1 to 27 neighbours, here {out.min():.0f} to {out.max():.0f}")
