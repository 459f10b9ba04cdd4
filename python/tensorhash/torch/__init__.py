"""Sparse convolution for torch, over the kernel maps of `tensorhash.coords`."""

from tensorhash.torch.functional import sparse_conv, stride_features
from tensorhash.torch.modules import SparseConv3d

__all__ = ["SparseConv3d", "sparse_conv", "stride_features"]
