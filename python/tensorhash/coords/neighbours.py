"""Neighbours of points: all within a radius, or the k nearest."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorhash import _core
from tensorhash._arguments import integer, number, optional_integer
from tensorhash._frameworks import Framework
from tensorhash._places import Place
from tensorhash._types import Array, ArrayLike, DeviceLike
from tensorhash.coords._points import take_numbers, take_optional

_MOST = 2**63 - 1  # no limit


class Neighbors(NamedTuple):
    """The neighbours of query q: `indices[offsets[q]:offsets[q + 1]]`; `distances` likewise.

    >>> found = radius_search([[0.0], [1.0], [3.0]], [[0.9], [9.0]], 1.0)
    >>> found.indices, found.offsets
    (array([1, 0]), array([0, 2, 2]))
    """

    indices: Array  #: int64 [P]: rows of the points, nearest first; equal distances by row
    distances: Array  #: float64 [P]: Euclidean, in the unit of the points
    offsets: Array  #: int64 [M + 1]: bounds of each query


def radius_search(
    points: ArrayLike,
    queries: ArrayLike,
    radius: float,
    batch: ArrayLike | None = None,
    query_batch: ArrayLike | None = None,
    max_neighbors: int | None = None,
    *,
    device: DeviceLike = None,
) -> Neighbors:
    """Finds all points at a distance of at most `radius` from each query, nearest first.

    `points` is [N, D], `queries` [M, D]. Exact: a point is a neighbour if its float64 distance, the
    one returned, is <= `radius`; a point equal to the query counts. (Distances below 5e-305 of the
    largest coordinate underflow: see docs/neighbours.md.) `max_neighbors` keeps only that many of
    the nearest. With `batch` and `query_batch`, one integer per row in any order, only rows of the
    same batch are neighbours. Results use the framework of the queries, or of the points if the
    queries are a list. They are bit-identical on any number of threads and on every device. The
    search runs where its arrays are, unless `device` is given; results are where the queries are.

    >>> radius_search([[0.0], [1.0], [3.0]], [[0.9]], 1.0).indices
    array([1, 0])
    """
    most = optional_integer(max_neighbors, "max_neighbors", _MOST)
    rows, query_rows, source = _take_clouds(points, queries)
    place = Place(device, source, query_rows, rows)
    return _give(
        place,
        _core.radius_search(
            place.take(rows, "points"),
            place.take(query_rows, "queries"),
            number(radius, "radius"),
            place.take(take_optional(batch, "batch"), "batch"),
            place.take(take_optional(query_batch, "query_batch"), "query_batch"),
            most,
        ),
    )


def knn_search(
    points: ArrayLike,
    queries: ArrayLike,
    k: int,
    batch: ArrayLike | None = None,
    query_batch: ArrayLike | None = None,
) -> Neighbors:
    """Finds the k nearest points of each query, nearest first; all points if there are fewer.

    `points` is [N, D], `queries` [M, D]. Exact, for any k and any D; the rest is as in
    `radius_search`. If every query finds k points, `indices.reshape(-1, k)` has one row per query.

    >>> knn_search([[0.0], [1.0], [3.0]], [[0.9], [9.0]], 2).indices.reshape(-1, 2)
    array([[1, 0],
           [2, 1]])
    """
    count = integer(k, "k", _MOST)
    rows, query_rows, source = _take_clouds(points, queries)
    return _give(
        Place(None, source, query_rows),
        _core.knn_search(
            rows,
            query_rows,
            count,
            take_optional(batch, "batch"),
            take_optional(query_batch, "query_batch"),
        ),
    )


def _take_clouds(points: ArrayLike, queries: ArrayLike) -> tuple[Any, Any, Framework]:
    rows, home = take_numbers(points, "points")
    query_rows, source = take_numbers(queries, "queries", home)
    return rows, query_rows, source


def _give(place: Place, found: tuple[_core.Tensor, _core.Tensor, _core.Tensor]) -> Neighbors:
    indices, distances, offsets = found
    return Neighbors(place.give(indices), place.give(distances), place.give(offsets))
