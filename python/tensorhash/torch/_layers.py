"""What all layers of sparse tensors share: they take a SparseTensor or (features, coordinates)."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import nn

from tensorhash.torch._checks import require_coords
from tensorhash.torch.sparse_tensor import SparseTensor


class SparseLayer(nn.Module):
    """A layer that takes and returns a SparseTensor, or features and coordinates.

    A subclass writes `run`, which takes and returns a SparseTensor.

    >>> class Double(SparseLayer):
    ...     def run(self, x):
    ...         return x.with_features(2 * x.features)
    >>> Double()(torch.ones(1, 1), torch.tensor([[0, 5, 5]]))[0].tolist()
    [[2.0]]
    """

    def forward(
        self, features: Any, coords: Any = None, *more: Any, **named: Any
    ) -> SparseTensor | torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Takes a SparseTensor and returns one, or takes features and coordinates, or their pair.

        A pair (features, coordinates) comes back if features and coordinates came.
        """
        if isinstance(features, SparseTensor):
            more = more if coords is None and not more else (coords, *more)
            return self.run(features, *more, **named)
        out = self.run(take(features, coords, self.axes()), *more, **named)
        return (out.features, out.coords) if isinstance(out, SparseTensor) else out

    def axes(self) -> int | None:
        """The number of axes that coordinates must have; None for any."""
        return None

    def run(self, x: SparseTensor, *more: Any, **named: Any) -> SparseTensor | torch.Tensor:
        """The work of the layer."""
        raise NotImplementedError(f"{type(self).__name__} does not define run")


def take(features: Any, coords: Any, axes: int | None = None) -> SparseTensor:
    """A SparseTensor of what a layer was called with."""
    if isinstance(features, SparseTensor):
        return features
    if coords is None and isinstance(features, (tuple, list)) and len(features) == 2:
        features, coords = features
    if coords is None:
        raise TypeError(
            f"features: expected a SparseTensor, or features and coords, "
            f"got {type(features).__name__} alone"
        )
    require_coords(coords, "coords", axes)
    return SparseTensor(features, coords)


def require_axes(x: SparseTensor, axes: int) -> None:
    """ValueError unless the voxels have that many axes."""
    if x.axes != axes:
        raise ValueError(f"features: expected a SparseTensor with {axes} axes, got {x.axes}")


def per_axis(value: Any, axes: int, argument: str, least: int = 1) -> tuple[int, ...]:
    """One int per axis, from one for all axes or one per axis."""
    names = {2: "two", 3: "three", 4: "four"}
    expected = f"expected an int or {names.get(axes, axes)}"
    try:
        given = value if hasattr(value, "__len__") else [value] * axes
        numbers = tuple(operator.index(number) for number in given)
    except TypeError:
        raise TypeError(f"{argument}: {expected}, got {value!r}") from None
    if len(numbers) != axes or min(numbers) < least:
        raise ValueError(f"{argument}: {expected}, each {least} or more, got {value!r}")
    return numbers


def like_rows(rows: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    """Row numbers as torch can index with, on the device of the features."""
    return rows.to(features.device, torch.int64)
