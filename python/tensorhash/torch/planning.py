"""plan_maps: builds all kernel maps of a network before it runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

from tensorhash.torch._map_cache import MapCache
from tensorhash.torch.combining import require_sparse
from tensorhash.torch.sparse_tensor import SparseTensor


def plan_maps(network: nn.Module, x: SparseTensor, *more: Any) -> MapCache:
    """Builds all kernel maps that `network(x, *more)` needs; returns the cache of `x`.

    The network runs on features without memory, so nothing is multiplied and no parameter or
    statistic changes. Afterwards the network builds no map for tensors that share the cache, and
    `torch.compile(fullgraph=True)` takes it. A network that chooses voxels by features (as
    SparsePrune does) is a ValueError.

    >>> from tensorhash.torch import SparseConv3d
    >>> layers = nn.Sequential(SparseConv3d(4, 8, 3), SparseConv3d(8, 8, 3, stride=2))
    >>> x = SparseTensor(torch.ones(2, 4), torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]))
    >>> plan_maps(layers, x)
    MapCache(2 kernel maps, 2 sets of voxels)
    """
    require_sparse(x, "x")
    buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with torch.no_grad(), mode:
            fake = x.moved(mode.from_tensor(x.features.detach()), x.site)
            # torch counts the batches of a norm in place, also without memory.
            torch.func.functional_call(network, buffers, (fake, *more))
    except DynamicOutputShapeException as error:
        raise ValueError(
            "network: expected voxels that do not depend on features, "
            f"but {error.func} needs them; run the network once instead"
        ) from None
    return x.maps
