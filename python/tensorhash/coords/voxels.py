"""Voxelises points: finds the voxel of each point and combines the features of each voxel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from tensorhash import _core
from tensorhash._dtypes import parse_dtype
from tensorhash._frameworks import Framework, as_numpy, to_numpy
from tensorhash._types import Array, ArrayLike, DtypeLike
from tensorhash.coords._points import (
    per_axis,
    rows_and_columns,
    shape_of,
    take_numbers,
    take_optional,
)


class Voxels(NamedTuple):
    """The voxels of a point cloud in order of first occurrence, and the voxel of each point.

    >>> voxels = voxelize([[0.1], [0.2], [0.9]], 0.5)
    >>> voxels.coords.tolist(), voxels.inverse.tolist(), voxels.counts.tolist()
    ([[0], [1]], [0, 0, 1], [2, 1])
    """

    coords: Array  #: [V, D] integers, or [V, 1 + D] with the batch first
    #: [V, ...]: the combined features of each voxel; a list if a list of arrays was given
    features: Array | list[Array]
    index: Array  # type: ignore[assignment]  #: int64 [V]: the first point of each voxel
    inverse: Array  #: int64 [N]: the voxel of each point
    counts: Array  #: int64 [V]: the number of points in each voxel


def voxelize(
    points: ArrayLike,
    voxel_size: float | Sequence[float],
    origin: float | Sequence[float] = 0.0,
    reduce: str | Sequence[str] = "mean",
    features: ArrayLike | Sequence[ArrayLike] | None = None,
    batch: ArrayLike | None = None,
    dtype: DtypeLike = "int32",
) -> Voxels:
    """The occupied voxels of a point cloud [N, D], with the combined features of their points.

    Voxel = floor((point - origin) / voxel_size), in float64 for points of any dtype. `voxel_size`
    and `origin` are in the unit of the points, one number or one per axis. `features` is an array
    of N rows or a list of such arrays (default: the points). `reduce` is "first", "last", "sum",
    "mean", "min" or "max": one for all, or one per array, or for a single [N, C] array one per
    column. Floats are added in float64 and keep their dtype; sums of integers are int64 or uint64,
    their means float64. Columns of different dtypes get a dtype that holds every number exactly, or
    are a ValueError. `batch`, one integer per point, becomes the first column of the coordinates:
    points of different batches never share a voxel.

    NaN, infinity and voxels outside `dtype` (int32 or int64) are a ValueError that counts them.

    >>> points = np.array([[0.1, 0.2], [0.3, 0.2], [-0.1, 0.0]])
    >>> voxels = voxelize(points, 0.5)
    >>> voxels.coords.tolist(), voxels.counts.tolist()
    ([[0, 0], [-1, 0]], [2, 1])
    >>> voxels.features.tolist()
    [[0.2, 0.2], [-0.1, 0.0]]
    """
    cloud = _Cloud(points, voxel_size, origin, batch, dtype)
    columns = _Columns(cloud, features, reduce)
    cloud.find_voxels()
    joined = columns.join(cloud.inverse, cloud.coords.shape[0])
    give = cloud.source.give
    return Voxels(
        give(cloud.coords), joined, give(cloud.index), give(cloud.inverse), give(cloud.counts)
    )


def voxel_downsample(
    points: ArrayLike,
    voxel_size: float | Sequence[float],
    origin: float | Sequence[float] = 0.0,
    reduce: str | Sequence[str] = "mean",
    features: ArrayLike | Sequence[ArrayLike] | None = None,
    batch: ArrayLike | None = None,
) -> Array | tuple[Array | list[Array], ...]:
    """One point per occupied voxel, the mean of its points, in order of first occurrence.

    With `features`, returns (points, features), with features combined by `reduce` as in
    `voxelize`; without, `reduce` applies to the points. With `batch`, the batch of each point is
    the last result.

    >>> voxel_downsample([[0.0], [0.2], [5.0]], 1.0).tolist()
    [[0.1], [5.0]]
    """
    cloud = _Cloud(points, voxel_size, origin, batch, "int64")
    wanted = [_Columns(cloud, None, reduce if features is None else "mean")]
    if features is not None:
        wanted.append(_Columns(cloud, features, reduce))
    cloud.find_voxels()
    results = [columns.join(cloud.inverse, cloud.coords.shape[0]) for columns in wanted]
    if batch is not None:
        numbers = np.ascontiguousarray(to_numpy(cloud.coords)[:, 0])
        results.append(cloud.source.give(_core.Tensor.wrap(numbers, "batch")))
    # Without features and batch, return only the points.
    return cast("Array", results[0]) if len(results) == 1 else tuple(results)


class _Cloud:
    """The points of a call and, after find_voxels(), their voxels as core tensors."""

    coords: _core.Tensor
    index: _core.Tensor
    inverse: _core.Tensor
    counts: _core.Tensor

    def __init__(
        self, points: ArrayLike, voxel_size: Any, origin: Any, batch: Any, dtype: DtypeLike
    ) -> None:
        self.points, self.source = take_numbers(points, "points")
        self.rows, axes = rows_and_columns(self.points, "points")
        self._voxel_size = per_axis(voxel_size, axes, "voxel_size")
        self._origin = per_axis(origin, axes, "origin")
        self._batch = take_optional(batch, "batch")
        self._dtype = parse_dtype(dtype, "dtype")[0]

    def find_voxels(self) -> None:
        keys = _core.voxel_coords(
            self.points, self._voxel_size, self._origin, self._batch, self._dtype
        )
        self.coords, self.index, self.inverse, self.counts = _core.unique(keys, True, True, True)


class _Columns:
    """The arrays to reduce and the reduction of each, checked before any work."""

    def __init__(self, cloud: _Cloud, features: Any, reduce: str | Sequence[str]) -> None:
        self._many = isinstance(features, (list, tuple)) and not _is_matrix(features)
        self._arrays = [(cloud.points, cloud.source)]
        if features is not None:
            arrays = list(features) if self._many else [features]
            names = [f"features[{i}]" for i in range(len(arrays))] if self._many else ["features"]
            self._arrays = [
                _take_features(array, cloud.rows, name)
                for array, name in zip(arrays, names, strict=True)
            ]
        self._words = self._check_words(reduce)

    def _check_words(self, reduce: str | Sequence[str]) -> list[str | list[str]]:
        if isinstance(reduce, str):
            return [reduce] * len(self._arrays)
        words = list(reduce) if isinstance(reduce, (list, tuple)) else []
        if not isinstance(reduce, (list, tuple)) or not all(isinstance(w, str) for w in words):
            raise TypeError(f"reduce: expected a name or a list of names, got {reduce!r}")
        if self._many:
            expected = len(self._arrays)
            what = "array"
        else:
            shape = shape_of(self._arrays[0][0])
            if len(shape) != 2:
                raise ValueError(f"reduce: expected one name for features of shape {shape}")
            expected = shape[1]
            what = "column"
        if len(words) != expected:
            raise ValueError(
                f"reduce: expected one name or {expected}, one per {what}, got {len(words)}"
            )
        return list(words) if self._many else [words]

    def join(self, inverse: _core.Tensor, voxels: int) -> Array | list[Array]:
        joined = [
            _join(array, source, word, inverse, voxels)
            for (array, source), word in zip(self._arrays, self._words, strict=True)
        ]
        return joined if self._many else joined[0]


def _take_features(array: Any, rows: int, argument: str) -> tuple[Any, Framework]:
    taken, source = take_numbers(array, argument)
    shape = shape_of(taken)
    if len(shape) == 0 or shape[0] != rows:
        raise ValueError(f"{argument}: expected {rows} rows, one per point, got shape {shape}")
    return taken, source


def _is_matrix(values: Any) -> bool:
    """Whether a list is one array (of numbers or lists), not a list of arrays."""
    return not any(hasattr(value, "shape") and len(value.shape) > 0 for value in values)


def _join(
    array: Any, source: Framework, word: str | list[str], inverse: _core.Tensor, voxels: int
) -> Array:
    if isinstance(word, str):
        return source.give(_core.reduce_voxels(array, inverse, voxels, word))
    values = as_numpy(array)
    columns = [
        to_numpy(_core.reduce_voxels(values[:, i], inverse, voxels, one))
        for i, one in enumerate(word)
    ]
    joined = _stack(columns, word) if columns else np.empty((voxels, 0), values.dtype)
    return source.give(_core.Tensor.wrap(np.ascontiguousarray(joined), "features"))


def _stack(columns: list[Any], words: list[str]) -> Any:
    """Stacks the columns; ValueError if the common dtype is float64 and rounds an integer."""
    for i, (column, word) in enumerate(zip(columns, words, strict=True)):
        if column.dtype.kind not in "iu" or np.result_type(*columns).kind != "f":
            continue
        large = column[(column > 2**53) | (column < -(2**53))].tolist()
        lost = next((value for value in large if int(float(value)) != value), None)
        if lost is not None:
            raise ValueError(
                f"reduce: expected columns that one dtype holds exactly, got {lost} in column {i} "
                f'("{word}"), which float64 does not hold; '
                f"pass the columns as a list of arrays"
            )
    return np.stack(columns, axis=1)
