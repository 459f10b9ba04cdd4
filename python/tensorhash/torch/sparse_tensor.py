"""SparseTensor: features of voxels, coordinates, and the kernel maps that layers share."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from tensorhash.coords.ops import axis_ints
from tensorhash.torch._checks import require_coords, require_rows
from tensorhash.torch._map_cache import MapCache, Steps


class SparseTensor:
    """Features [N, C] of voxels with integer coordinates [N, 1 + D], the batch in column 0.

    `stride` is the length of one step of the coordinates, in units of the finest grid. A layer
    with a stride divides the coordinates by it. All tensors that come from one tensor share
    `maps`, so each kernel map of a network is built once. `spatial_shape` is the shape
    of a dense grid that begins at 0; layers with `out_sites="reached"` leave out voxels beyond it.
    `batch_size` is needed if the last items of the batch have no voxels.

    Do not write to `coords`: the kernel maps would not notice.

    >>> x = SparseTensor(torch.ones(2, 4), torch.tensor([[0, 5, 5, 5], [1, 5, 5, 6]]))
    >>> x
    SparseTensor(2 voxels, 4 channels, stride=(1, 1, 1), torch.float32, cpu)
    >>> (x + x).features.sum().item(), x.batch_size
    (16.0, 2)
    """

    def __init__(
        self,
        features: torch.Tensor,
        coords: torch.Tensor,
        stride: int | Sequence[int] = 1,
        *,
        spatial_shape: int | Sequence[int] | None = None,
        batch_size: int = 0,
        maps: MapCache | None = None,
    ) -> None:
        require_coords(coords, "coords")
        require_rows(features, coords)
        axes = coords.shape[1] - 1
        steps = tuple(axis_ints(stride, axes, "stride"))
        shape = None
        if spatial_shape is not None:
            shape = tuple(axis_ints(spatial_shape, axes, "spatial_shape"))
        if not (maps is None or isinstance(maps, MapCache)):
            raise TypeError(f"maps: expected a MapCache or None, got {type(maps).__name__}")
        self._features = features
        self._maps = MapCache() if maps is None else maps
        self.site = self._maps.number_of(coords, steps, shape)
        self._batches = operator.index(batch_size)

    @classmethod
    def _at(
        cls, features: torch.Tensor, site: int, maps: MapCache, batches: int = 0
    ) -> SparseTensor:
        """Features of voxels that the cache knows."""
        made = cls.__new__(cls)
        made._features = features
        made._maps = maps
        made.site = site
        made._batches = batches
        return made

    def with_features(self, features: torch.Tensor) -> SparseTensor:
        """Other features at the same voxels.

        >>> x = SparseTensor(torch.ones(1, 4), torch.tensor([[0, 5, 5, 5]]))
        >>> x.with_features(x.features @ torch.ones(4, 2)).num_channels
        2
        """
        require_rows(features, self.coords)
        return SparseTensor._at(features, self.site, self.maps, self._batches)

    def moved(self, features: torch.Tensor, site: int) -> SparseTensor:
        """Features at the voxels `site` of the same cache; for new layers."""
        return SparseTensor._at(features, site, self.maps, self._batches)

    @property
    def features(self) -> torch.Tensor:
        """The features [N, C]; `with_features` makes a tensor with others."""
        return self._features

    @property
    def maps(self) -> MapCache:
        """The cache of voxels and kernel maps that all tensors of the network share."""
        return self._maps

    @property
    def coords(self) -> torch.Tensor:
        """Integers [N, 1 + D]: the batch and the voxel of each row."""
        return self.maps[self.site].coords

    @property
    def stride(self) -> Steps:
        """The length of one step per axis, in units of the finest grid."""
        return self.maps[self.site].stride

    @property
    def spatial_shape(self) -> tuple[int, ...] | None:
        """The shape of the dense grid, or None."""
        return self.maps[self.site].shape

    @property
    def axes(self) -> int:
        """The number of axes without the batch."""
        axes: int = self.coords.shape[1] - 1
        return axes

    @property
    def num_channels(self) -> int:
        """The number of columns of the features."""
        channels: int = self.features.shape[1]
        return channels

    @property
    def batch_size(self) -> int:
        """The number of items of the batch: the given one, or as many as the voxels need."""
        return self.maps.batch_size(self.site, self._batches)

    @property
    def device(self) -> torch.device:
        """The device of the features."""
        return self.features.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the features."""
        return self.features.dtype

    def __len__(self) -> int:
        rows: int = self.features.shape[0]
        return rows

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """The features with another dtype or device, as `torch.Tensor.to`; same voxels and maps."""
        return self.with_features(self.features.to(*args, **kwargs))

    def detach(self) -> SparseTensor:
        """The same features without their history."""
        return self.with_features(self.features.detach())

    def items(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """(features, coordinates without the batch) of each item of the batch.

        >>> x = SparseTensor(torch.ones(2, 4), torch.tensor([[0, 5, 5, 5], [2, 5, 5, 6]]))
        >>> [coords.tolist() for features, coords in x.items()]
        [[[5, 5, 5]], [], [[5, 5, 6]]]
        """
        batch = self.coords[:, 0]
        rows = [torch.nonzero(batch == item)[:, 0] for item in range(self.batch_size)]
        return [(self.features[row], self.coords[row, 1:]) for row in rows]

    if not TYPE_CHECKING:  # else type checkers would accept any name

        def __getattr__(self, name: str) -> Any:
            """AttributeError: says what to do if torch meets a SparseTensor in place of a tensor."""
            if hasattr(torch.Tensor, name) and not name.startswith("_"):
                raise AttributeError(_expected_a_tensor(name))
            raise AttributeError(f"'SparseTensor' object has no attribute {name!r}")

    @classmethod
    def __torch_function__(cls, func: Any, *_: Any) -> NoReturn:
        """TypeError: a function of torch met a SparseTensor."""
        raise TypeError(_expected_a_tensor(func.__name__))

    def __add__(self, other: SparseTensor) -> SparseTensor:
        """The sum; a voxel that only one of the two has keeps its features."""
        from tensorhash.torch.combining import union_add

        return union_add(self, other)

    def __repr__(self) -> str:
        stride = f"({', '.join(map(str, self.stride))})"
        return (
            f"SparseTensor({len(self)} voxels, {self.num_channels} channels, stride={stride}, "
            f"{self.dtype}, {self.device})"
        )


def _expected_a_tensor(name: str) -> str:
    return (
        f"{name}: expected a tensor of torch, got a SparseTensor; wrap a module of torch in "
        f"RowWise(module), and use x.features and x.with_features() elsewhere"
    )
