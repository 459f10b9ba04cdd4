"""radius_search and knn_search against brute force in NumPy."""

import time

import numpy as np
import pytest
from oracle import ON_CPU, cpu_only, once_on_a_device

import tensorhash
from tensorhash.coords import TorchHashTable, knn_search, radius_search, unique_coords


def squared_distances(points, queries):
    """[M, N], summed axis by axis in float64."""
    points, queries = np.asarray(points, np.float64), np.asarray(queries, np.float64)
    total = np.zeros((len(queries), len(points)))
    for axis in range(points.shape[1]):
        total += (queries[:, axis, None] - points[None, :, axis]) ** 2
    return total


def brute_force(points, queries, radius=np.inf, k=None, batch=None, query_batch=None):
    """(indices, distances, offsets), nearest first; of equal distances the lower row first."""
    squared = squared_distances(points, queries)
    rows, spans = [], [0]
    for q, line in enumerate(squared):
        near = np.sqrt(line) <= radius
        if batch is not None:
            near &= batch == query_batch[q]
        found = np.flatnonzero(near)
        found = found[np.lexsort((found, line[found]))][:k]
        rows.append(np.stack([found, np.sqrt(line[found])], axis=1))
        spans.append(spans[-1] + len(found))
    table = np.concatenate(rows) if rows else np.empty((0, 2))
    return table[:, 0].astype(np.int64), table[:, 1], np.array(spans)


def assert_same(found, expected):
    indices, distances, offsets = expected
    assert found.offsets.tolist() == offsets.tolist()
    assert found.indices.tolist() == indices.tolist()
    assert np.array_equal(np.asarray(found.distances), distances)
    assert found.indices.dtype == np.int64 and found.offsets.dtype == np.int64
    assert found.distances.dtype == np.float64


def cloud(rng, rows, axes, kind):
    if kind == "uniform":
        return rng.random((rows, axes))
    if kind == "lattice":  # many exact ties, many points exactly at the radius
        return rng.integers(-3, 4, (rows, axes)) * 0.25
    if kind == "coincident":
        return np.repeat(rng.random((3, axes)), -(-rows // 3), axis=0)[:rows]
    if kind == "stray":
        points = rng.random((rows, axes))
        points[rows // 2] = 1e18
        return points
    return rng.normal(size=(rows, axes)) * 10.0 ** rng.integers(-6, 7, (rows, 1))


no_device_has_it = pytest.mark.skipif(not ON_CPU, reason="knn_search is on the CPU (docs/cuda.md)")

KINDS = ["uniform", "lattice", "coincident", "stray", "scales"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axes", [1, 2, 3, 5])
def test_radius_search_is_brute_force(kind, axes):
    rng = np.random.default_rng(axes)
    points = cloud(rng, 300, axes, kind)
    queries = np.concatenate([points[::7], cloud(rng, 60, axes, kind)])
    for radius in (0.0, 1e-9, 0.1, 0.25, 0.5, 3.0, 1e300):
        assert_same(radius_search(points, queries, radius), brute_force(points, queries, radius))


@no_device_has_it
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axes", [1, 2, 3, 5])
def test_knn_search_is_brute_force(kind, axes):
    rng = np.random.default_rng(axes)
    points = cloud(rng, 300, axes, kind)
    queries = np.concatenate([points[::7], cloud(rng, 60, axes, kind)])
    for k in (0, 1, 2, 17, 299, 300, 301, 2049, 2**40):
        assert_same(knn_search(points, queries, k), brute_force(points, queries, k=k))


@pytest.mark.parametrize("kind", ["uniform", "lattice", "stray"])
def test_batches_never_mix_whatever_their_order(kind):
    rng = np.random.default_rng(5)
    points, queries = cloud(rng, 400, 3, kind), cloud(rng, 90, 3, kind)
    batch = rng.choice([-7, 0, 3, 2**40], 400)
    query_batch = rng.choice([-7, 0, 3, 2**40, 99], 90)  # 99 has no points
    found = radius_search(points, queries, 0.5, batch, query_batch)
    assert_same(found, brute_force(points, queries, 0.5, None, batch, query_batch))
    found = knn_search(points, queries, 9, batch, query_batch)
    assert_same(found, brute_force(points, queries, np.inf, 9, batch, query_batch))


def test_cells_of_batches_crafted_to_share_a_key_are_told_apart():
    # If keys were sums of these public multiples, cell 0 of this batch would have the key of cell 1
    # of batch 0.
    step, batch_step = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
    other = np.uint64(step * pow(batch_step, -1, 2**64) % 2**64).astype(np.int64)
    found = radius_search([[1.5], [0.75]], [[0.75]], 1.0, np.array([0, other]), np.array([other]))
    assert found.indices.tolist() == [1]


def test_cells_in_a_table_of_vector_keys_give_the_same_neighbours():
    rng = np.random.default_rng(10)
    points, queries, radius = rng.random((2000, 3)), rng.random((300, 3)), 0.1
    cells, inverse = unique_coords(np.floor(points / radius).astype(np.int32), return_inverse=True)
    table = TorchHashTable.from_keys(cells)
    around = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3), axis=-1).reshape(-1, 3)
    found = radius_search(points, queries, radius)
    squared = squared_distances(points, queries)
    for q, cell in enumerate(np.floor(queries / radius).astype(np.int32)):
        near = np.flatnonzero(np.isin(inverse, table.search((cell + around).astype(np.int32))))
        near = near[np.sqrt(squared[q, near]) <= radius]
        near = near[np.lexsort((near, squared[q, near]))]
        assert found.indices[found.offsets[q] : found.offsets[q + 1]].tolist() == near.tolist()


def test_max_neighbors_keeps_the_nearest():
    rng = np.random.default_rng(0)
    points = cloud(rng, 500, 3, "lattice")
    for most in (0, 1, 5, 500, 10**12):
        found = radius_search(points, points[:50], 0.5, max_neighbors=most)
        assert_same(found, brute_force(points, points[:50], 0.5, most))


def test_radius_graph_of_a_cloud_with_itself_is_symmetric():
    points = np.random.default_rng(1).random((34, 3)).astype(np.float32)
    found = radius_search(points, points, 0.4)
    sources = np.repeat(np.arange(34), np.diff(found.offsets))
    pairs = set(zip(sources.tolist(), found.indices.tolist(), strict=True))
    assert {(b, a) for a, b in pairs} == pairs
    assert {(i, i) for i in range(34)} <= pairs


@pytest.mark.parametrize("radius", [0.1, 0.3, 1 / 3, 0.7, 1e-5, 12345.678])
def test_a_point_exactly_at_the_radius_counts(radius):
    beyond = np.nextafter(radius, np.inf)
    found = radius_search([[radius], [beyond], [-radius], [-beyond]], [[0.0]], radius)
    assert found.indices.tolist() == [0, 2]


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-30, 1e30, 1e140])
def test_tiny_and_huge_coordinates_keep_their_distances(scale):
    # A power of two keeps the oracle exact; otherwise the oracle would under- or overflow.
    factor = 2.0 ** round(np.log2(scale))
    rng = np.random.default_rng(2)
    points, queries = rng.random((200, 3)), rng.random((40, 3))
    expected = brute_force(points, queries, 0.25)
    found = radius_search(points * factor, queries * factor, 0.25 * factor)
    assert found.indices.tolist() == expected[0].tolist()
    if scale > 1e-290:  # below, distances are subnormal and lose bits
        assert np.array_equal(found.distances, expected[1] * factor)
    found = knn_search(points * factor, queries * factor, 8)
    assert found.indices.tolist() == brute_force(points, queries, k=8)[0].tolist()


def test_cells_beyond_two_to_the_53_are_still_told_apart():
    near = 1e18 + np.arange(0, 4096, 128.0)  # neighbours in float64, up to 2^60 radii from zero
    points = np.concatenate([near, -near, np.arange(10.0)])[:, None]
    for radius in (1e-6, 1.0, 127.0, 128.0, 300.0):
        assert_same(radius_search(points, points, radius), brute_force(points, points, radius))


def cpu_seconds(search, points):
    """CPU time, which other programs on the machine hardly affect."""
    began = time.process_time()
    search(points, points)
    return time.process_time() - began


def assert_not_slower(search, points, ordinary):
    """At most five times as slow as an ordinary cloud; quadratic would be a hundred times."""
    assert cpu_seconds(search, points) < 5 * cpu_seconds(search, ordinary) + 0.5


@pytest.mark.skipif(not ON_CPU, reason="a device searches far points slowly (docs/cuda.md)")
@pytest.mark.parametrize("stray", [1e6, 1e12, 1e30, 1e149])
def test_one_stray_point_does_not_make_the_search_quadratic(stray):
    ordinary = np.random.default_rng(3).random((40_000, 3))
    points = ordinary.copy()
    points[123] = stray
    assert_not_slower(lambda p, q: radius_search(p, q, 0.01), points, ordinary)
    assert_not_slower(lambda p, q: knn_search(p, q, 2), points, ordinary)
    found = radius_search(points, points, 0.01)
    assert found.indices[found.offsets[123] : found.offsets[124]].tolist() == [123]
    assert knn_search(points, points, 2).indices[2 * 123] == 123


@pytest.mark.parametrize("largest", [1.0, 1.999 * 2.0**80, 1e150])
def test_distances_are_exact_down_to_2_to_the_minus_1011_of_the_largest_coordinate(largest):
    unit = largest * 2.0**-1011
    points = unit * np.array([[1.3], [1.2], [1.1], [1.0]])
    points = np.concatenate([points, [[largest]]])
    for found in (knn_search(points, [[0.0]], 4), radius_search(points, [[0.0]], 1.3 * unit)):
        assert found.indices.tolist() == [3, 2, 1, 0]
        assert np.allclose(found.distances, points[found.indices, 0], rtol=1e-15, atol=0)
    # Below that, squares underflow: such near points count as equally near.
    found = knn_search(points[:4] * 2.0**-28, [[0.0], [largest]], 4)
    assert found.indices[:4].tolist() == [0, 1, 2, 3] and not found.distances[:4].any()


def test_stray_points_do_not_determine_the_axes_of_the_grid():
    ordinary = np.zeros((40_000, 6))
    ordinary[:, [1, 3, 4]] = np.random.default_rng(9).random((40_000, 3))
    points = ordinary.copy()
    points[7, [0, 2, 5]] = 1e9
    if ON_CPU:  # the time of an emulated device means nothing
        assert_not_slower(lambda p, q: radius_search(p, q, 0.02), points, ordinary[:, [1, 3, 4]])
    assert_same(radius_search(points, points[:50], 0.02), brute_force(points, points[:50], 0.02))


@cpu_only
def test_many_coincident_points_are_not_quadratic_for_the_nearest():
    points = np.zeros((40_000, 3))
    ordinary = np.random.default_rng(3).random((40_000, 3))
    assert_not_slower(lambda p, q: knn_search(p, q, 3), points, ordinary)
    assert (knn_search(points, points, 3).indices.reshape(-1, 3) == [0, 1, 2]).all()


@once_on_a_device("threads", [1, 2, 8])
def test_the_result_does_not_depend_on_the_number_of_threads(threads):
    rng = np.random.default_rng(4)
    points, queries = rng.random((20_000, 3)), rng.random((9_000, 3))
    batch, query_batch = rng.integers(0, 3, 20_000), rng.integers(0, 3, 9_000)
    tensorhash.set_num_threads(3)
    expected = [
        *radius_search(points, queries, 0.05, batch, query_batch),
        *knn_search(points, queries, 5, batch, query_batch),
    ]
    tensorhash.set_num_threads(threads)
    found = [
        *radius_search(points, queries, 0.05, batch, query_batch),
        *knn_search(points, queries, 5, batch, query_batch),
    ]
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()


def test_nothing_in_nothing_out():
    for points, queries in [((0, 3), (0, 3)), ((0, 3), (4, 3)), ((4, 3), (0, 3))]:
        for found in (
            radius_search(np.zeros(points), np.zeros(queries), 1.0),
            knn_search(np.zeros(points), np.zeros(queries), 2),
        ):
            assert found.indices.shape == found.distances.shape == (0,)
            assert found.offsets.tolist() == [0] * (queries[0] + 1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint16", "int64", ">f4", ">i8"])
def test_every_real_dtype_is_read_exactly(dtype):
    points = (np.random.default_rng(6).random((60, 3)) * 20).astype(dtype)
    assert_same(radius_search(points, points, 7.5), brute_force(points, points, 7.5))
    assert_same(knn_search(points, points, 4), brute_force(points, points, k=4))


def test_strides_are_honoured():
    base = np.random.default_rng(7).random((40, 9))
    points = base[::-2, ::3]
    assert_same(knn_search(points, base[:, 2::-1], 3), brute_force(points, base[:, 2::-1], k=3))
    assert_same(radius_search(base.T[:3].T, points, 0.3), brute_force(base[:, :3], points, 0.3))


def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    points = torch.rand(50, 3, generator=torch.Generator().manual_seed(0))
    found = knn_search(points, points[:9], 2, torch.zeros(50).int(), torch.zeros(9).int())
    assert all(isinstance(part, torch.Tensor) for part in found)
    assert_same(
        type(found)(*(part.numpy() for part in found)), brute_force(points, points[:9], k=2)
    )
    with pytest.raises(ValueError, match="points: this tensor requires grad"):
        knn_search(points.requires_grad_(), points[:9], 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("argument", ["points", "queries"])
def test_non_finite_coordinates_are_refused_and_counted(bad, argument):
    given = {"points": np.zeros((5, 3)), "queries": np.zeros((5, 3))}
    given[argument][3, 1] = given[argument][4, 0] = bad
    counted = "2 NaN and 0 infinite" if np.isnan(bad) else "0 NaN and 2 infinite"
    message = f"{argument}: expected finite.*{counted}.*row 3, column 1"
    with pytest.raises(ValueError, match=message):
        radius_search(**given, radius=1.0)
    with pytest.raises(ValueError, match=message):
        knn_search(**given, k=1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"radius": -1.0}, ValueError, "radius: expected a finite number"),
        ({"radius": np.nan}, ValueError, "radius: expected a finite number"),
        ({"radius": np.inf}, ValueError, "radius: expected a finite number"),
        ({"radius": "1"}, TypeError, "radius: expected a number"),
        ({"max_neighbors": -1}, ValueError, "max_neighbors: expected 0 or more, got -1"),
        ({"max_neighbors": 1.5}, TypeError, "max_neighbors: expected an int"),
        ({"queries": np.zeros((2, 2))}, ValueError, "queries: expected 3 columns.*got 2"),
        ({"points": np.zeros(3)}, ValueError, r"points: expected shape \(N, D\).*\(3,\)"),
        ({"points": np.zeros((3, 0))}, ValueError, r"points: expected shape \(N, D\)"),
        ({"points": np.zeros((3, 3), bool)}, TypeError, "points: expected floats or integers"),
        ({"points": np.zeros((3, 3), complex)}, TypeError, "points"),
        ({"points": np.full((1, 3), 1e151)}, ValueError, "points: expected numbers within 1e150"),
        (
            {"points": np.full((1, 3), 2**60)},
            ValueError,
            r"points: expected integers within 2\^53",
        ),
        ({"batch": np.zeros(3, int)}, ValueError, "query_batch: expected together with batch"),
        (
            {"query_batch": np.zeros(2, int)},
            ValueError,
            "batch: expected together with query_batch",
        ),
        (
            {"batch": np.zeros(2, int), "query_batch": np.zeros(2, int)},
            ValueError,
            r"batch: expected shape \(3,\)",
        ),
        (
            {"batch": np.zeros(3), "query_batch": np.zeros(2, int)},
            TypeError,
            "batch: expected integers, got float64",
        ),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    usual = {"points": np.zeros((3, 3)), "queries": np.zeros((2, 3)), "radius": 1.0}
    with pytest.raises(error, match=message):
        radius_search(**{**usual, **arguments})


@no_device_has_it
@pytest.mark.parametrize(("k", "error"), [(-1, ValueError), (1.0, TypeError), ("2", TypeError)])
def test_a_bad_k_is_named(k, error):
    with pytest.raises(error, match="k: expected"):
        knn_search(np.zeros((3, 3)), np.zeros((3, 3)), k)


def test_k_may_be_any_64_bit_number():
    cloud = np.zeros((3, 3))
    for most in (2**31, 2**63 - 1):
        assert len(knn_search(cloud, cloud, most).indices) == 9
        assert len(radius_search(cloud, cloud, 1.0, max_neighbors=most).indices) == 9
    with pytest.raises(ValueError, match=f"^k: expected at most {2**63 - 1}, got {2**63}"):
        knn_search(cloud, cloud, 2**63)
    with pytest.raises(ValueError, match=f"^max_neighbors: expected at most {2**63 - 1}, got"):
        radius_search(cloud, cloud, 1.0, max_neighbors=2**63)


def test_scipy_agrees_on_a_large_cloud():
    spatial = pytest.importorskip("scipy.spatial")
    rng = np.random.default_rng(8)
    points, queries = rng.normal(size=(50_000, 3)), rng.normal(size=(5_000, 3))
    tree = spatial.cKDTree(points)
    distances, indices = tree.query(queries, 10)
    found = knn_search(points, queries, 10)
    assert np.array_equal(found.indices.reshape(-1, 10), indices)
    assert np.allclose(found.distances.reshape(-1, 10), distances, rtol=1e-14)
    within = radius_search(points, queries, 0.2)
    assert (
        np.diff(within.offsets).sum()
        == tree.query_ball_point(queries, 0.2, return_length=True).sum()
    )
