"""NeighborIndex gives what radius_search and knn_search give, to the last bit."""

import threading

import numpy as np
import pytest

import tensorhash
from tensorhash.coords import knn_search, radius_search
from tensorhash.geometry import NeighborIndex


def same(got, expected):
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def clouds(seed):
    rng = np.random.default_rng(seed)
    rows, axes = int(rng.integers(0, 400)), int(rng.integers(1, 6))
    scale = 10.0 ** rng.integers(-5, 6)
    points = np.round(rng.normal(size=(rows, axes)), 1) * scale
    queries = np.round(rng.normal(size=(150, axes)) * 3, 1) * scale
    return rng, points, queries, scale


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_every_search_equals_the_free_function(seed, threads):
    tensorhash.set_num_threads(threads)
    rng, points, queries, scale = clouds(seed)
    batches = rng.integers(-2, 3, len(points)), rng.integers(-3, 3, len(queries))
    for batch, query_batch in ((None, None), batches):
        index = NeighborIndex(points, batch)
        for radius in (0.4 * scale, 0.0, 1.3 * scale, 0.4 * scale):
            plain = radius_search(points, queries, radius, batch, query_batch)
            same(index.radius(radius, queries, query_batch), plain)
            few = radius_search(points, queries, radius, batch, query_batch, 3)
            same(index.hybrid(radius, 3, queries, query_batch), few)
            same(index.radius(radius), radius_search(points, points, radius, batch, batch))
        for k in (0, 1, 7, 1000):
            same(
                index.knn(k, queries, query_batch),
                knn_search(points, queries, k, batch, query_batch),
            )
            same(index.knn(k), knn_search(points, points, k, batch, batch))


@pytest.mark.parametrize("far", [3.0, 1e3, 1e140, 1e-140])
def test_queries_on_another_scale(far):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(200, 3))
    queries = rng.normal(size=(50, 3)) * far
    index = NeighborIndex(points)
    same(index.knn(5, queries), knn_search(points, queries, 5))
    same(index.radius(2 * far, queries), radius_search(points, queries, 2 * far))
    same(index.knn(5), knn_search(points, points, 5))
    zeros = NeighborIndex(np.zeros((4, 3)))
    same(zeros.knn(2, queries), knn_search(np.zeros((4, 3)), queries, 2))


def test_the_index_holds_a_copy():
    points = np.random.default_rng(1).normal(size=(100, 3))
    before = points.copy()
    index = NeighborIndex(points)
    points[:] = 0
    same(index.knn(3), knn_search(before, before, 3))
    assert len(index) == 100 and repr(index) == "NeighborIndex(100 points, 3 axes)"


def test_many_threads_search_at_once():
    rng = np.random.default_rng(2)
    points, queries = rng.normal(size=(2000, 3)), rng.normal(size=(300, 3))
    index = NeighborIndex(points)
    radii = [0.1, 0.2, 0.3]
    expected = {radius: radius_search(points, queries, radius) for radius in radii}
    nearest = knn_search(points, queries, 4)
    failures = []

    def work(at):
        try:
            for turn in range(6):
                radius = radii[(at + turn) % 3]
                same(index.radius(radius, queries), expected[radius])
                same(index.knn(4, queries), nearest)
        except AssertionError as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_bad_arguments_are_named():
    points = np.zeros((4, 3))
    index = NeighborIndex(points)
    with pytest.raises(ValueError, match="queries: expected 3 columns, as many as points, got 2"):
        index.knn(1, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="k: expected 0 or more, got -1"):
        index.knn(-1)
    with pytest.raises(ValueError, match="radius: expected a finite number, 0 or more, got -1"):
        index.radius(-1.0)
    with pytest.raises(ValueError, match="query_batch: expected none, because the points have no"):
        index.knn(1, points, [0, 0, 0, 0])
    with pytest.raises(ValueError, match="query_batch: expected one, because the points have a"):
        NeighborIndex(points, [0, 0, 1, 1]).knn(1, points)
    with pytest.raises(TypeError, match="query_batch: expected none without queries"):
        index.radius(1.0, None, [0])
    with pytest.raises(ValueError, match="points: "):
        NeighborIndex([[np.nan]])
