"""Sparse convolution and pooling as functions, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from tensorhash.coords import KernelMap
from tensorhash.torch import _ops
from tensorhash.torch._checks import (
    require_groups,
    require_memory,
    require_reduction,
    require_rows,
    wide,
)
from tensorhash.torch._layers import like_rows
from tensorhash.torch._map_cache import strided_rows

_CPU = torch.device("cpu")
_REDUCTIONS = {"max": "amax", "mean": "mean", "sum": "sum"}


def sparse_conv(
    features: torch.Tensor, weight: torch.Tensor, kernel_map: KernelMap, groups: int = 1
) -> torch.Tensor:
    """Sparse convolution: out[o] = sum of features[i] @ weight[k] over all pairs (i, o) of all k.

    `features` is [num_in, C], `weight` [K, C / groups, D], the result [num_out, D]. `kernel_map`
    comes from `tensorhash.coords.generate_kernel_map`. With `groups`, channels of the first of
    equal parts see only the first part of the features, and so on, as in torch's convolutions.
    Differentiable in features and weight, any number of times. Every run gives the same bits, on
    any number of threads. Under `torch.autocast` both are cast as in torch's own convolutions.

    >>> from tensorhash.coords import generate_kernel_map
    >>> voxels = torch.tensor([[0, 1, 1, 1], [0, 1, 1, 2]])
    >>> pairs = generate_kernel_map(voxels, voxels, 1, (1, 1, 3))
    >>> sparse_conv(torch.tensor([[1.0], [10.0]]), torch.ones(3, 1, 1), pairs).tolist()
    [[11.0], [11.0]]
    """
    features, weight = _cast(features, "features"), _cast(weight, "weight")
    _require(features, weight, kernel_map, groups)
    maps = map_tensors(kernel_map, features.device)
    return _ops.call(_ops.sparse_conv, features, weight, *maps, kernel_map.num_out, groups)


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
    coarse, rows, _ = strided_rows(coords, stride)
    return joined_rows(features, rows, len(coarse), reduce), coarse


def joined_rows(
    features: torch.Tensor, rows: torch.Tensor, count: int, reduce: str
) -> torch.Tensor:
    """[count, C]: the features with the same row number, reduced; zero where there is none."""
    places = like_rows(rows, features)[:, None].expand_as(features)
    given = features if reduce == "max" else wide(features)
    out = given.new_zeros(count, features.shape[1])
    joined = out.scatter_reduce(0, places, given, _REDUCTIONS[reduce], include_self=False)
    return joined.to(features.dtype)


def map_tensors(kernel_map: Any, device: torch.device) -> tuple[torch.Tensor, ...]:
    """(in_maps, out_maps, offsets), the same tensors on every call: the pairs on the device.

    The core checks a map when it first meets these tensors, and again after a write by torch. The
    offsets are on the CPU: on another device torch would wait for them in every layer.
    """
    tensors = _torch_sides(kernel_map)
    places = device, device, _CPU
    if all(side.device == place for side, place in zip(tensors, places, strict=True)):
        return tensors
    if torch.compiler.is_compiling():
        return _moved(tensors, places)
    kept = kernel_map.__dict__.setdefault("_copies", {})
    of = tensors, _ops.versions(tensors)
    if device not in kept or not _are_same(kept[device][0], of):
        with unset_fake_temporarily(), torch.no_grad():
            kept[device] = of, _moved(tensors, places)
    copies: tuple[torch.Tensor, ...] = kept[device][1]
    return copies


def _moved(
    tensors: tuple[torch.Tensor, ...], places: tuple[torch.device, ...]
) -> tuple[torch.Tensor, ...]:
    return tuple(side.to(place) for side, place in zip(tensors, places, strict=True))


def _torch_sides(kernel_map: Any) -> tuple[torch.Tensor, ...]:
    """The three arrays of a map as tensors of torch, the same on every call."""
    sides = kernel_map.in_maps, kernel_map.out_maps, kernel_map.offsets
    if isinstance(sides[0], torch.Tensor):
        return sides
    of, tensors = getattr(kernel_map, "_torch_maps", (None, ()))
    if of is None or any(old is not new for old, new in zip(of, sides, strict=True)):
        tensors = tuple(torch.as_tensor(np.asarray(side)) for side in sides)
        kernel_map._torch_maps = sides, tensors
    return tensors


def _are_same(one: tuple[Any, list[int]], other: tuple[Any, list[int]]) -> bool:
    """Are these the same tensors, without a write in between?"""
    return all(a is b for a, b in zip(one[0], other[0], strict=True)) and one[1] == other[1]


def _cast(array: torch.Tensor, argument: str) -> torch.Tensor:
    """Casts under autocast as torch's own convolutions do: all floats except float64."""
    require_memory(array, argument)
    device = array.device.type
    if device == "meta" or not torch.is_autocast_enabled(device):
        return array
    casts = array.is_floating_point() and array.dtype != torch.float64
    return array.to(torch.get_autocast_dtype(device)) if casts else array


def _require(features: torch.Tensor, weight: torch.Tensor, kernel_map: Any, groups: Any) -> None:
    for array, name in ((features, "features"), (weight, "weight")):
        if not array.dtype.is_floating_point:
            raise TypeError(f"{name}: expected a float dtype, got {array.dtype}")
    if features.dtype != weight.dtype:
        raise TypeError(
            f"weight: expected {features.dtype} as features have, got {weight.dtype}; "
            f"cast with weight.to(features.dtype)"
        )
    if features.device != weight.device:
        raise RuntimeError(
            f"weight: expected a tensor on {features.device} as features are, got one on "
            f"{weight.device}"
        )
    offsets, rows = len(kernel_map.offsets) - 1, kernel_map.num_in
    if features.ndim != 2 or features.shape[0] != rows:
        raise ValueError(
            f"features: expected shape ({rows}, channels), one row per in row of the kernel map, "
            f"got {tuple(features.shape)}"
        )
    require_groups(groups, features.shape[1], "features")
    channels = features.shape[1] // groups
    if weight.ndim != 3 or weight.shape[0] != offsets or weight.shape[1] != channels:
        raise ValueError(
            f"weight: expected shape ({offsets}, {channels}, out channels): offsets of "
            f"the kernel map, channels of features{' by group' if groups > 1 else ''}; got "
            f"{tuple(weight.shape)}"
        )
    require_groups(groups, weight.shape[2], "weight")
