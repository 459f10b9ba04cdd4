"""Layers that change each row of the features, or all rows at once, and no voxels."""

from __future__ import annotations

from typing import Any

from torch import nn

from tensorhash.torch._layers import SparseLayer
from tensorhash.torch.sparse_tensor import SparseTensor


class RowWise(SparseLayer):
    """Applies a module of torch to the features [N, C]: a Linear, an activation, a norm.

    >>> import torch
    >>> x = SparseTensor(torch.ones(1, 4), torch.tensor([[0, 5, 5, 5]]))
    >>> RowWise(nn.Linear(4, 8))(x).num_channels
    8
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise TypeError(f"module: expected a torch.nn.Module, got {type(module).__name__}")
        self.module = module

    def run(self, x: SparseTensor) -> SparseTensor:
        """The module over the features of a SparseTensor."""
        return x.with_features(self.module(x.features))


class _Own(SparseLayer):
    """A layer that is a module of torch itself, so that its parameters have torch's names."""

    def run(self, x: SparseTensor) -> SparseTensor:
        """The module over the features of a SparseTensor."""
        rows: Any = super(SparseLayer, self)
        return x.with_features(rows.forward(x.features))


class SparseBatchNorm(_Own, nn.BatchNorm1d):
    """torch's BatchNorm1d over all voxels of the batch.

    >>> import torch
    >>> x = SparseTensor(torch.tensor([[1.0], [3.0]]), torch.tensor([[0, 0, 0], [0, 0, 1]]))
    >>> SparseBatchNorm(1)(x).features.round().tolist()
    [[-1.0], [1.0]]
    """


class SparseLayerNorm(_Own, nn.LayerNorm):
    """torch's LayerNorm over the channels of each voxel.

    >>> import torch
    >>> x = SparseTensor(torch.tensor([[1.0, 3.0]]), torch.tensor([[0, 0, 0]]))
    >>> SparseLayerNorm(2)(x).features.round().tolist()
    [[-1.0, 1.0]]
    """


class SparseReLU(_Own, nn.ReLU):
    """torch's ReLU.

    >>> import torch
    >>> x = SparseTensor(torch.tensor([[-1.0, 2.0]]), torch.tensor([[0, 0, 0]]))
    >>> SparseReLU()(x).features.tolist()
    [[0.0, 2.0]]
    """


class SparseDropout(_Own, nn.Dropout):
    """torch's Dropout over single features.

    >>> import torch
    >>> x = SparseTensor(torch.tensor([[-1.0, 2.0]]), torch.tensor([[0, 0, 0]]))
    >>> SparseDropout(0.5).eval()(x).features.tolist()
    [[-1.0, 2.0]]
    """
