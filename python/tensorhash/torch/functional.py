"""Sparse convolution and pooling as functions, with gradients."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tensorhash._arguments import require_one_of
from tensorhash._frameworks import require_storage
from tensorhash.coords import CoordTable, KernelMap, stride_coords

Pairs = list[tuple[torch.Tensor, torch.Tensor]]
_REDUCTIONS = {"max": "amax", "mean": "mean", "sum": "sum"}


def sparse_conv(
    features: torch.Tensor, weight: torch.Tensor, kernel_map: KernelMap
) -> torch.Tensor:
    """Sparse convolution: out[o] = sum of features[i] @ weight[k] over all pairs (i, o) of all k.

    `features` is [num_in, C], `weight` [K, C, D], the result [num_out, D]. `kernel_map` comes from
    `tensorhash.coords.generate_kernel_map`. Differentiable in features and weight, any number of
    times. The sums are in the order of the offsets, so every run gives the same result. Under
    `torch.autocast` both are cast as in torch's own convolutions.

    >>> from tensorhash.coords import generate_kernel_map
    >>> voxels = torch.tensor([[0, 1, 1, 1], [0, 1, 1, 2]])
    >>> pairs = generate_kernel_map(voxels, voxels, 1, (1, 1, 3))
    >>> sparse_conv(torch.tensor([[1.0], [10.0]]), torch.ones(3, 1, 1), pairs).tolist()
    [[11.0], [11.0]]
    """
    features, weight = _cast(features, "features"), _cast(weight, "weight")
    _require(features, weight, kernel_map)
    pairs = _pairs(kernel_map)
    result: torch.Tensor = _SparseConv.apply(features, weight, pairs, kernel_map.num_out)
    return result


def stride_features(
    features: torch.Tensor, coords: torch.Tensor, stride: int | Sequence[int], reduce: str = "max"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pooling: returns (features, coordinates) of the voxels `stride_coords(coords, stride)`.

    `reduce`, "max", "mean" or "sum", combines the features [N, C] of voxels that fall into the same
    coarse voxel. Differentiable; voxels that share a maximum share its gradient.

    >>> voxels = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1], [0, 2, 2, 2]])
    >>> features, coords = stride_features(torch.tensor([[1.0], [5.0], [2.0]]), voxels, 2)
    >>> features.tolist(), coords.tolist()
    ([[5.0], [2.0]], [[0, 0, 0, 0], [0, 1, 1, 1]])
    """
    require_reduction(reduce, "reduce")
    require_rows(features, coords)
    coarse, _ = stride_coords(coords, stride)
    divisors = torch.ones(coords.shape[1], dtype=coords.dtype)
    divisors[1:] = torch.as_tensor(stride)
    cells = torch.div(coords, divisors, rounding_mode="floor")
    rows = torch.as_tensor(CoordTable.from_coords(coarse).search(cells), dtype=torch.int64)
    joined = features.new_zeros(len(coarse), features.shape[1]).scatter_reduce(
        0, rows[:, None].expand_as(features), features, _REDUCTIONS[reduce], include_self=False
    )
    return joined, coarse


def require_rows(features: torch.Tensor, coords: torch.Tensor) -> None:
    """ValueError unless `features` has one row per row of `coords`, and valid memory."""
    require_memory(features, "features")
    if features.ndim != 2 or len(features) != len(coords):
        raise ValueError(
            f"features: expected shape ({len(coords)}, channels), one row per row of coords, "
            f"got {tuple(features.shape)}"
        )


def require_memory(array: Any, argument: str) -> None:
    """TypeError unless `array` is a torch tensor; ValueError if its storage is freed or too small.

    torch's own functions read such a tensor without a check. Tensors without memory, which torch
    uses for tracing, pass.
    """
    if not isinstance(array, torch.Tensor):
        raise TypeError(f"{argument}: expected a torch tensor, got {type(array).__name__}")
    if torch.compiler.is_compiling():
        return
    try:
        traced = array.untyped_storage().device.type == "meta"
    except NotImplementedError:  # a wrapper of torch.func
        return
    if not traced:
        require_storage(array, argument)


def require_reduction(reduce: Any, argument: str) -> None:
    """ValueError unless `reduce` is "max", "mean" or "sum"."""
    require_one_of(reduce, argument, *_REDUCTIONS)


class _SparseConv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: torch.Tensor, weight: torch.Tensor, pairs: Pairs, out_rows: int
    ) -> torch.Tensor:
        ctx.save_for_backward(features, weight)
        ctx.pairs = pairs
        return _gather_multiply_add(features, weight, pairs, out_rows)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        features, weight = ctx.saved_tensors
        wants_features, wants_weight, *_ = ctx.needs_input_grad
        grad_features = grad_weight = None
        if wants_features:
            # The same sum with pairs swapped and matrices transposed. It uses only differentiable
            # functions, so that gradients have gradients.
            swapped = [(outs, ins) for ins, outs in ctx.pairs]
            matrices = weight.transpose(1, 2)
            grad_features = _SparseConv.apply(grad, matrices, swapped, len(features))
        if wants_weight:
            products = [
                features.index_select(0, ins).T @ grad.index_select(0, outs)
                for ins, outs in ctx.pairs
            ]
            grad_weight = torch.stack(products) if products else torch.zeros_like(weight)
        return grad_features, grad_weight, None, None


def _gather_multiply_add(
    rows: torch.Tensor, matrices: torch.Tensor, pairs: Pairs, out_rows: int
) -> torch.Tensor:
    out = rows.new_zeros(out_rows, matrices.shape[2])
    for matrix, (sources, targets) in zip(matrices, pairs, strict=True):
        if len(sources):
            # On the CPU index_add_ adds in row order, so every run gives the same bits.
            out.index_add_(0, targets, rows.index_select(0, sources) @ matrix)
    return out


def _pairs(kernel_map: Any) -> Pairs:
    """(in rows, out rows) of each offset, as int64 tensors that torch can index with."""
    ins, outs = np.asarray(kernel_map.in_maps), np.asarray(kernel_map.out_maps)
    bounds = np.asarray(kernel_map.offsets).tolist()
    _require_unwritten(ins, outs, bounds, kernel_map)
    sides = [torch.as_tensor(side, dtype=torch.int64) for side in (ins, outs)]
    return [(sides[0][start:end], sides[1][start:end]) for start, end in itertools.pairwise(bounds)]


def _require_unwritten(ins: Any, outs: Any, bounds: list[int], kernel_map: Any) -> None:
    """ValueError if the user changed the arrays so that they are no longer a valid map."""
    written = "this map was written to after it was made"
    ends = bounds[0], bounds[-1]
    if len(ins) != len(outs) or bounds != sorted(bounds) or ends != (0, len(ins)):
        raise ValueError(
            f"kernel_map: offsets: expected ascending numbers from 0 to {len(ins)}, the number of "
            f"pairs; {written}"
        )
    for rows, count, name in (
        (ins, kernel_map.num_in, "in_maps"),
        (outs, kernel_map.num_out, "out_maps"),
    ):
        if len(rows) and not (rows.min() >= 0 and rows.max() < count):
            raise ValueError(
                f"kernel_map: {name}: expected rows from 0 on, below {count}; {written}"
            )


def _cast(array: torch.Tensor, argument: str) -> torch.Tensor:
    """Casts under autocast as torch's own convolutions do: all floats except float64."""
    require_memory(array, argument)
    if not torch.is_autocast_enabled("cpu"):
        return array
    casts = array.is_floating_point() and array.dtype != torch.float64
    return array.to(torch.get_autocast_dtype("cpu")) if casts else array


def _require(features: torch.Tensor, weight: torch.Tensor, kernel_map: Any) -> None:
    for array, name in ((features, "features"), (weight, "weight")):
        if not array.dtype.is_floating_point:
            raise TypeError(f"{name}: expected a float dtype, got {array.dtype}")
        if array.device.type != "cpu":
            raise RuntimeError(f"{name}: expected a tensor on the CPU, got one on {array.device}")
    if features.dtype != weight.dtype:
        raise TypeError(
            f"weight: expected {features.dtype} as features have, got {weight.dtype}; "
            f"cast with weight.to(features.dtype)"
        )
    offsets, rows = len(kernel_map.offsets) - 1, kernel_map.num_in
    if features.ndim != 2 or len(features) != rows:
        raise ValueError(
            f"features: expected shape ({rows}, channels), one row per in row of the kernel map, "
            f"got {tuple(features.shape)}"
        )
    if weight.ndim != 3 or weight.shape[:2] != (offsets, features.shape[1]):
        raise ValueError(
            f"weight: expected shape ({offsets}, {features.shape[1]}, out channels): offsets of "
            f"the kernel map, channels of features; got {tuple(weight.shape)}"
        )
