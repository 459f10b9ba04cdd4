"""Checks and casts of the arguments that layers and functions share."""

from __future__ import annotations

from typing import Any

import torch

from tensorhash._arguments import require_one_of
from tensorhash._frameworks import require_storage

REDUCTIONS = ("max", "mean", "sum")


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


def wide(features: torch.Tensor) -> torch.Tensor:
    """The features in a dtype to add in: floats for half types, which round after every row."""
    is_half = features.dtype in (torch.float16, torch.bfloat16)
    return features.float() if is_half else features


def require_rows(features: torch.Tensor, coords: torch.Tensor) -> None:
    """ValueError unless `features` has one row per row of `coords`, and valid memory."""
    require_memory(features, "features")
    if features.ndim != 2 or features.shape[0] != coords.shape[0]:
        raise ValueError(
            f"features: expected shape ({coords.shape[0]}, channels), one row per row of coords, "
            f"got {tuple(features.shape)}"
        )


def require_coords(coords: Any, argument: str, axes: int | None = None) -> None:
    """TypeError or ValueError unless `coords` is integers [N, 1 + axes] of torch."""
    if not isinstance(coords, torch.Tensor) or coords.dtype not in (torch.int32, torch.int64):
        kind = coords.dtype if isinstance(coords, torch.Tensor) else type(coords).__name__
        raise TypeError(f"{argument}: expected a torch tensor of int32 or int64, got {kind}")
    if axes is None and (coords.ndim != 2 or not 3 <= coords.shape[1] <= 7):
        raise ValueError(
            f"{argument}: expected shape (N, 1 + D), the batch and 2 to 6 axes; "
            f"got {tuple(coords.shape)}"
        )
    if axes is not None and (coords.ndim != 2 or coords.shape[1] != axes + 1):
        names = ", ".join(("batch", *"xyzt"[:axes]))
        raise ValueError(
            f"{argument}: expected shape (N, {axes + 1}): {names}; got {tuple(coords.shape)}"
        )


def require_reduction(reduce: Any, argument: str) -> None:
    """ValueError unless `reduce` is "max", "mean" or "sum"."""
    require_one_of(reduce, argument, *REDUCTIONS)


def require_bool(value: Any, argument: str) -> None:
    """TypeError unless `value` is True or False: a number would be another argument's."""
    if not isinstance(value, bool):
        raise TypeError(f"{argument}: expected True or False, got {value!r}")


def require_groups(groups: Any, channels: int, argument: str) -> None:
    """ValueError unless `groups` is an int that divides the channels of `argument`."""
    if not isinstance(groups, int) or groups < 1 or channels % groups != 0:
        raise ValueError(
            f"groups: expected an int from 1 on that divides the {channels} channels of "
            f"{argument}, got {groups!r}"
        )
