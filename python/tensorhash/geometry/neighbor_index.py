"""NeighborIndex: points that are built once and searched many times."""

from __future__ import annotations

from typing import Any

from tensorhash import _core
from tensorhash._arguments import integer, number, optional_integer
from tensorhash._frameworks import Framework
from tensorhash._types import ArrayLike
from tensorhash.coords._points import take_numbers, take_optional
from tensorhash.coords.neighbours import Neighbors

_MOST = 2**63 - 1  # no limit


class NeighborIndex:
    """An index over points [N, D], for many searches among the same points.

    It holds a copy of the points. The first search builds a tree, which all later ones use.
    Results are those of `radius_search` and `knn_search`, to the last bit. Queries are [M, D];
    without them, every point is a query, and finds itself, too.
    With `batch`, one integer per point, only points of the query's batch are neighbours. Many
    threads may search at once.

    >>> index = NeighborIndex([[0.0], [1.0], [3.0]])
    >>> index.knn(2).indices.reshape(-1, 2).tolist()
    [[0, 1], [1, 0], [2, 1]]
    >>> index.radius(1.0, [[0.9]]).indices.tolist()
    [1, 0]
    """

    def __init__(self, points: ArrayLike, batch: ArrayLike | None = None) -> None:
        rows, self._home = take_numbers(points, "points")
        self._index = _core.NeighborIndex(rows, take_optional(batch, "batch"))

    def __len__(self) -> int:
        return self._index.size

    def __repr__(self) -> str:
        return f"NeighborIndex({self._index.size} points, {self._index.axes} axes)"

    def radius(
        self,
        radius: float,
        queries: ArrayLike | None = None,
        query_batch: ArrayLike | None = None,
        max_neighbors: int | None = None,
    ) -> Neighbors:
        """All points at a distance of at most `radius` from each query, nearest first.

        >>> NeighborIndex([[0.0], [1.0], [3.0]]).radius(1.0).offsets.tolist()
        [0, 2, 4, 5]
        """
        most = optional_integer(max_neighbors, "max_neighbors", _MOST)
        rows, home = self._take(queries, query_batch)
        batch = take_optional(query_batch, "query_batch")
        return _give(home, self._index.radius(number(radius, "radius"), rows, batch, most))

    def knn(
        self, k: int, queries: ArrayLike | None = None, query_batch: ArrayLike | None = None
    ) -> Neighbors:
        """The k nearest points of each query, nearest first; all points if there are fewer.

        >>> NeighborIndex([[0.0], [1.0], [3.0]]).knn(1, [[2.5]]).distances.tolist()
        [0.5]
        """
        count = integer(k, "k", _MOST)
        rows, home = self._take(queries, query_batch)
        batch = take_optional(query_batch, "query_batch")
        return _give(home, self._index.knn(count, rows, batch))

    def hybrid(
        self,
        radius: float,
        k: int,
        queries: ArrayLike | None = None,
        query_batch: ArrayLike | None = None,
    ) -> Neighbors:
        """The k nearest points of each query among those at a distance of at most `radius`.

        >>> NeighborIndex([[0.0], [1.0], [3.0]]).hybrid(1.5, 2, [[0.9], [3.0]]).indices.tolist()
        [1, 0, 2]
        """
        return self.radius(radius, queries, query_batch, integer(k, "k", _MOST))

    def _take(self, queries: Any, query_batch: Any) -> tuple[Any, Framework]:
        if queries is None:
            if query_batch is not None:
                raise TypeError(
                    "query_batch: expected none without queries, because the points have their own"
                )
            return None, self._home
        return take_numbers(queries, "queries", self._home)


def _give(home: Framework, found: tuple[_core.Tensor, _core.Tensor, _core.Tensor]) -> Neighbors:
    indices, distances, offsets = found
    return Neighbors(home.give(indices), home.give(distances), home.give(offsets))
