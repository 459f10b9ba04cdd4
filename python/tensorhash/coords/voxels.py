"""Voxelises points: finds the voxel of each point and combines the features of each voxel.

`voxelize` has over 50 lines; most are its arguments and its docstring.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from tensorhash import _core
from tensorhash._arguments import optional_integer
from tensorhash._dtypes import parse_dtype
from tensorhash._frameworks import as_numpy, copied_to_numpy
from tensorhash._places import Place
from tensorhash._types import Array, ArrayLike, DeviceLike, DtypeLike
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
    #: int64 [V]: the point that `reduce` kept for each voxel, or else the first one
    index: Array  # type: ignore[assignment]
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
    ignore_label: int | None = None,
    *,
    device: DeviceLike = None,
) -> Voxels:
    """The occupied voxels of a point cloud [N, D], with the combined features of their points.

    Voxel = floor((point - origin) / voxel_size), in float64 for points of any dtype. `voxel_size`
    and `origin` are in the unit of the points, one number or one per axis. `features` is an array
    of N rows or a list of such arrays (default: the points). `reduce` is "first", "last", "sum",
    "mean", "min" or "max": one for all, or one per array, or for a single [N, C] array one per
    column. Floats are added in float64 and keep their dtype; sums of integers are int64 or uint64,
    their means float64. Columns of different dtypes get a dtype that holds every number exactly, or
    are a ValueError.

    Three words keep the features of one point, and `index` is the row of that point:
    "nearest_center" the point nearest to the centre of the voxel, "nearest_centroid" the one
    nearest to the mean of the voxel's points (of equally near ones the first), and "mode" the first
    point with the most frequent label. Labels are integers, one per point; of equally frequent ones
    the first that came wins. `ignore_label` does not count, unless a voxel has no other label.

    `batch`, one integer per point, becomes the first column of the coordinates:
    points of different batches never share a voxel.

    NaN, infinity and voxels outside `dtype` (int32 or int64) are a ValueError that counts them.

    The call runs where its arrays are, unless `device` is given, and results are where the points
    are.

    >>> points = np.array([[0.1, 0.2], [0.3, 0.2], [-0.1, 0.0]])
    >>> voxels = voxelize(points, 0.5)
    >>> voxels.coords.tolist(), voxels.counts.tolist()
    ([[0, 0], [-1, 0]], [2, 1])
    >>> voxels.features.tolist()
    [[0.2, 0.2], [-0.1, 0.0]]
    >>> kept = voxelize(points, 0.5, reduce="mode", features=[7, 9, 7], ignore_label=7)
    >>> kept.features.tolist(), kept.index.tolist()
    ([9, 7], [1, 2])
    """
    cloud = _Cloud(points, voxel_size, origin, batch, dtype, device)
    columns = _Columns(cloud, features, reduce, ignore_label)
    cloud.find_voxels()
    joined = columns.join(cloud)
    give = cloud.place.give
    index = cloud.index if columns.kept is None else columns.kept
    return Voxels(give(cloud.coords), joined, give(index), give(cloud.inverse), give(cloud.counts))


def voxel_downsample(
    points: ArrayLike,
    voxel_size: float | Sequence[float],
    origin: float | Sequence[float] = 0.0,
    reduce: str | Sequence[str] = "mean",
    features: ArrayLike | Sequence[ArrayLike] | None = None,
    batch: ArrayLike | None = None,
    *,
    device: DeviceLike = None,
) -> Array | tuple[Array | list[Array], ...]:
    """One point per occupied voxel, the mean of its points, in order of first occurrence.

    With `features`, returns (points, features), with features combined by `reduce` as in
    `voxelize`; without, `reduce` applies to the points. "nearest_center" and "nearest_centroid"
    keep a point and its features instead. With `batch`, the batch of each point is the last result.

    >>> voxel_downsample([[0.0], [0.2], [5.0]], 1.0).tolist()
    [[0.1], [5.0]]
    """
    cloud = _Cloud(points, voxel_size, origin, batch, "int64", device)
    if reduce == "mean" and features is None and batch is None:
        return cloud.place.give(cloud.means())
    own = reduce if features is None or reduce in _NEAREST else "mean"
    wanted = [_Columns(cloud, None, own)]
    if features is not None:
        wanted.append(_Columns(cloud, features, reduce))
    cloud.find_voxels()
    results = [columns.join(cloud) for columns in wanted]
    if batch is not None:
        numbers = np.ascontiguousarray(copied_to_numpy(cloud.coords)[:, 0])
        results.append(cloud.place.give(_core.Tensor.wrap(numbers, "batch")))
    # Without features and batch, return only the points.
    return cast("Array", results[0]) if len(results) == 1 else tuple(results)


class _Cloud:
    """The points of a call and, after find_voxels(), their voxels as core tensors."""

    coords: _core.Tensor
    index: _core.Tensor
    inverse: _core.Tensor
    counts: _core.Tensor

    def __init__(
        self,
        points: ArrayLike,
        voxel_size: Any,
        origin: Any,
        batch: Any,
        dtype: DtypeLike,
        device: DeviceLike,
    ) -> None:
        rows, source = take_numbers(points, "points")
        self.rows, axes = rows_and_columns(rows, "points")
        self.place = Place(device, source, rows)
        self.points = self.place.take(rows, "points")
        self._voxel_size = per_axis(voxel_size, axes, "voxel_size")
        self._origin = per_axis(origin, axes, "origin")
        self._batch = self.place.take(take_optional(batch, "batch"), "batch")
        self._dtype = parse_dtype(dtype, "dtype")[0]

    def find_voxels(self) -> None:
        keys = _core.voxel_coords(
            self.points, self._voxel_size, self._origin, self._batch, self._dtype
        )
        self.coords, self.index, self.inverse, self.counts = _core.unique(keys, True, True, True)

    def means(self) -> _core.Tensor:
        """The mean of the points of each voxel; the voxels need not be found before."""
        return _core.voxel_means(self.points, self._voxel_size, self._origin)

    def nearest(self, word: str) -> _core.Tensor:
        """The row of the point that "nearest_center" or "nearest_centroid" keeps."""
        voxels = self.coords.shape[0]
        if word == "nearest_centroid":
            return _core.nearest_to_centroids(self.points, self.inverse, voxels)
        return _core.nearest_to_centers(
            self.points, self._voxel_size, self._origin, self.inverse, voxels
        )


_NEAREST = ("nearest_center", "nearest_centroid")


class _Columns:
    """The arrays to reduce and the reduction of each, checked before any work."""

    kept: _core.Tensor | None = None  # the rows of the points that were kept, after join()

    def __init__(
        self,
        cloud: _Cloud,
        features: Any,
        reduce: str | Sequence[str],
        ignore_label: int | None = None,
    ) -> None:
        self._many = isinstance(features, (list, tuple)) and not _is_matrix(features)
        self._arrays = [(cloud.points, cloud.place)]
        if features is not None:
            arrays = list(features) if self._many else [features]
            names = [f"features[{i}]" for i in range(len(arrays))] if self._many else ["features"]
            self._arrays = [
                _take_features(array, cloud, name)
                for array, name in zip(arrays, names, strict=True)
            ]
        self._words = self._check_words(reduce)
        self._ignore_label = optional_integer(ignore_label, "ignore_label", None)
        self._check_kept()

    def _check_kept(self) -> None:
        """Only one point per voxel can be the one that was kept."""
        flat = [one for word in self._words for one in ([word] if isinstance(word, str) else word)]
        words = [word for word in flat if word in _NEAREST or word == "mode"]
        if len(set(words)) > 1 or words.count("mode") > 1:
            raise ValueError(
                f"reduce: expected one word that keeps a point, because `index` shows its row, "
                f"got {' and '.join(words)}; call voxelize once for each"
            )
        if self._ignore_label is not None and "mode" not in words:
            raise ValueError('ignore_label: expected None without reduce="mode"')

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

    def join(self, cloud: _Cloud) -> Array | list[Array]:
        joined = [
            self._join(array, place, word, cloud)
            for (array, place), word in zip(self._arrays, self._words, strict=True)
        ]
        return joined if self._many else joined[0]

    def _join(self, array: Any, place: Place, word: str | list[str], cloud: _Cloud) -> Array:
        if isinstance(word, str):
            return place.give(self._reduce(array, word, cloud))
        values = _on_host(array)
        columns = [
            copied_to_numpy(self._reduce(place.take(values[:, i], "features"), one, cloud))
            for i, one in enumerate(word)
        ]
        voxels = cloud.coords.shape[0]
        joined = _stack(columns, word) if columns else np.empty((voxels, 0), values.dtype)
        return place.give(_core.Tensor.wrap(np.ascontiguousarray(joined), "features"))

    def _reduce(self, array: Any, word: str, cloud: _Cloud) -> _core.Tensor:
        voxels = cloud.coords.shape[0]
        if word in _NEAREST:
            self.kept = cloud.nearest(word)
        elif word == "mode":
            label = _label_in(_on_host(array).dtype, self._ignore_label)
            self.kept = _core.mode_rows(array, label, cloud.inverse, voxels)
        else:
            return _core.reduce_voxels(array, cloud.inverse, voxels, word)
        kept = _on_host(array)[copied_to_numpy(self.kept)]
        return _core.Tensor.wrap(np.ascontiguousarray(kept), "features")


def _take_features(array: Any, cloud: _Cloud, argument: str) -> tuple[Any, Place]:
    """The features on the device of the points, and where their results go."""
    taken, source = take_numbers(array, argument)
    shape = shape_of(taken)
    if len(shape) == 0 or shape[0] != cloud.rows:
        raise ValueError(
            f"{argument}: expected {cloud.rows} rows, one per point, got shape {shape}"
        )
    place = Place(cloud.place.device, source, taken)
    return place.take(taken, argument), place


def _on_host(array: Any) -> Any:
    return as_numpy(array.cpu() if isinstance(array, _core.Tensor) else array)


def _is_matrix(values: Any) -> bool:
    """Whether a list is one array (of numbers or lists), not a list of arrays."""
    return not any(hasattr(value, "shape") and len(value.shape) > 0 for value in values)


def _label_in(dtype: Any, label: int | None) -> int | None:
    """The label for the core, as int64; None if no label of this dtype is equal to it."""
    if label is None or dtype.kind not in "iub":
        return None
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not low <= label <= high:
        return None
    return label - 2**64 if label >= 2**63 else label  # the same bits


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
