"""Sparse convolution for torch, with the kernel maps of `tensorhash.coords`."""

from tensorhash._extras import missing

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise missing(error, "torch", __name__) from error

from tensorhash.coords import STRIDED_CONV_MODE
from tensorhash.torch.functional import sparse_conv, stride_features
from tensorhash.torch.modules import SparseConv3d

__all__ = ["STRIDED_CONV_MODE", "SparseConv3d", "sparse_conv", "stride_features"]
