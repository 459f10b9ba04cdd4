"""Sums, means and maxima of features over the pairs of a kernel map, by out row.

Plain functions of torch over one gathered copy of the rows. A pass per offset needs less memory,
but took ten times as long for the maximum (decision 40).
"""

from __future__ import annotations

import torch

from tensorhash.coords import KernelMap
from tensorhash.torch._checks import wide
from tensorhash.torch.functional import map_tensors


def pooled(features: torch.Tensor, kernel_map: KernelMap, reduce: str) -> torch.Tensor:
    """The features of all in rows of each out row, reduced; zero where there is none."""
    ways = {"max": _pooled_max, "mean": _pooled_mean, "sum": pooled_sum}
    return ways[reduce](features, kernel_map)


def pooled_sum(features: torch.Tensor, kernel_map: KernelMap) -> torch.Tensor:
    """out[o] = the sum of features[i] over all pairs (i, o)."""
    ins, outs, _ = map_tensors(kernel_map, features.device)
    rows = wide(features)
    out = rows.new_zeros(kernel_map.num_out, features.shape[1])
    return out.index_add(0, outs, rows.index_select(0, ins)).to(features.dtype)


def _pooled_mean(features: torch.Tensor, kernel_map: KernelMap) -> torch.Tensor:
    rows = wide(features)
    counts = pooled_sum(torch.ones_like(rows[:, :1]), kernel_map).clamp(min=1)
    return (pooled_sum(rows, kernel_map) / counts).to(features.dtype)


def _pooled_max(features: torch.Tensor, kernel_map: KernelMap) -> torch.Tensor:
    ins, outs, _ = map_tensors(kernel_map, features.device)
    found = features.index_select(0, ins)
    out = features.new_zeros(kernel_map.num_out, features.shape[1])
    places = outs.long()[:, None].expand_as(found)
    return out.scatter_reduce(0, places, found, "amax", include_self=False)
