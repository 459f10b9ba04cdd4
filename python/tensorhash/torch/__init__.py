"""Sparse convolution and hash embeddings for torch."""

from tensorhash._extras import missing

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise missing(error, "torch", __name__) from error

from tensorhash.coords import STRIDED_CONV_MODE
from tensorhash.torch.embedding import (
    DistributedHashEmbedding,
    FrozenHashEmbedding,
    HashEmbedding,
    HashEmbeddingBag,
    HashEmbeddingBagCollection,
    TableOptimizer,
)
from tensorhash.torch.functional import sparse_conv, stride_features
from tensorhash.torch.modules import SparseConv3d

__all__ = [
    "STRIDED_CONV_MODE",
    "DistributedHashEmbedding",
    "FrozenHashEmbedding",
    "HashEmbedding",
    "HashEmbeddingBag",
    "HashEmbeddingBagCollection",
    "SparseConv3d",
    "TableOptimizer",
    "sparse_conv",
    "stride_features",
]
