# Sparse networks in torch: a U-Net learns which voxels of a scan have many neighbours.
import torch

from tensorhash.torch import MinkUNet, SparseSumPool, voxelize

x = voxelize(torch.ones(20_000, 1), torch.randn(20_000, 3), 0.2).tensor  # one feature per point
dense = (SparseSumPool(3, 1, padding=1)(x).features[:, 0] > 9).long()
network = MinkUNet(1, 2, widths=(8, 16))
adam = torch.optim.Adam(network.parameters(), lr=0.02)
for _ in range(30):
    loss = torch.nn.functional.cross_entropy(network(x).features, dense)
    loss.backward(), adam.step(), adam.zero_grad()
print(f"{len(x)} voxels, {len(x.maps)} kernel maps, loss {loss.item():.2f}")
