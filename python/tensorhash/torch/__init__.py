"""Sparse convolution and hash embeddings for torch."""

from tensorhash._extras import missing

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise missing(error, "torch", __name__) from error

from tensorhash.coords import STRIDED_CONV_MODE
from tensorhash.torch._layers import SparseLayer
from tensorhash.torch._map_cache import MapCache
from tensorhash.torch.combining import (
    SparseToDense,
    cat,
    from_dense,
    sparse_collate,
    to_dense,
    union_add,
)
from tensorhash.torch.embedding import (
    DistributedHashEmbedding,
    FrozenHashEmbedding,
    HashEmbedding,
    HashEmbeddingBag,
    HashEmbeddingBagCollection,
    TableOptimizer,
)
from tensorhash.torch.functional import sparse_conv, stride_features
from tensorhash.torch.minkunet import MinkUNet
from tensorhash.torch.modules import (
    SparseConv2d,
    SparseConv3d,
    SparseConv4d,
    SparseInverseConv3d,
    SubMConv3d,
)
from tensorhash.torch.planning import plan_maps
from tensorhash.torch.pooling import (
    SparseAvgPool,
    SparseGlobalPool,
    SparseMaxPool,
    SparseSumPool,
    SparseUnpool,
)
from tensorhash.torch.resolution import (
    SparseChannelToSpace,
    SparsePrune,
    SparseSpaceToChannel,
    SparseSubdivide,
)
from tensorhash.torch.rowwise import (
    RowWise,
    SparseBatchNorm,
    SparseDropout,
    SparseLayerNorm,
    SparseReLU,
)
from tensorhash.torch.sampling import (
    Voxelized,
    sample_nearest,
    sample_trilinear,
    splat_trilinear,
    voxelize,
)
from tensorhash.torch.sparse_tensor import SparseTensor

__all__ = [
    "STRIDED_CONV_MODE",
    "DistributedHashEmbedding",
    "FrozenHashEmbedding",
    "HashEmbedding",
    "HashEmbeddingBag",
    "HashEmbeddingBagCollection",
    "MapCache",
    "MinkUNet",
    "RowWise",
    "SparseAvgPool",
    "SparseBatchNorm",
    "SparseChannelToSpace",
    "SparseConv2d",
    "SparseConv3d",
    "SparseConv4d",
    "SparseDropout",
    "SparseGlobalPool",
    "SparseInverseConv3d",
    "SparseLayer",
    "SparseLayerNorm",
    "SparseMaxPool",
    "SparsePrune",
    "SparseReLU",
    "SparseSpaceToChannel",
    "SparseSubdivide",
    "SparseSumPool",
    "SparseTensor",
    "SparseToDense",
    "SparseUnpool",
    "SubMConv3d",
    "TableOptimizer",
    "Voxelized",
    "cat",
    "from_dense",
    "plan_maps",
    "sample_nearest",
    "sample_trilinear",
    "sparse_collate",
    "sparse_conv",
    "splat_trilinear",
    "stride_features",
    "to_dense",
    "union_add",
    "voxelize",
]
