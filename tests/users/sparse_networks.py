# Sparse networks in torch: a U-Net learns which voxels of a scan have many neighbours.
import torch

from tensorhash.torch import MinkUNet, SparseSumPool, voxelize

torch.manual_seed(0)
x = voxelize(torch.ones(20_000, 1), torch.randn(20_000, 3), 0.2, reduce="mean").tensor
dense = (SparseSumPool(3, 1, padding=1)(x).features[:, 0] > 9).long()
network = MinkUNet(1, 2, widths=(8, 16))
adam = torch.optim.Adam(network.parameters(), lr=0.02)
for _ in range(30):
    loss = torch.nn.functional.cross_entropy(network(x).features, dense)
    adam.zero_grad(), loss.backward(), adam.step()
print(f"{len(x)} voxels, {len(x.maps)} kernel maps, loss {loss.item():.2f}")
