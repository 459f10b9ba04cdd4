"""voxelize and voxel_downsample against a dictionary, row by row."""

import math

import numpy as np
import pytest

import tensorhash
from tensorhash.coords import voxel_downsample, voxelize


def voxels_of(points, size, origin=0.0, batch=None):
    """{voxel: rows}, in order of first occurrence; floor of Python floats."""
    points = np.asarray(points)
    sizes = np.broadcast_to(np.float64(size), points.shape[1])
    origins = np.broadcast_to(np.float64(origin), points.shape[1])
    found = {}
    for row, point in enumerate(points.astype(np.float64).tolist()):
        voxel = [math.floor((x - o) / s) for x, o, s in zip(point, origins, sizes, strict=True)]
        if batch is not None:
            voxel.insert(0, int(batch[row]))
        found.setdefault(tuple(voxel), []).append(row)
    return found


REDUCE = {
    "first": lambda rows: rows[0],
    "last": lambda rows: rows[-1],
    "sum": lambda rows: rows.sum(0),
    "mean": lambda rows: rows.mean(0),
    "min": lambda rows: rows.min(0),
    "max": lambda rows: rows.max(0),
}


@pytest.mark.parametrize("axes", [1, 2, 3, 6])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", ">f8"])
def test_voxels_are_those_of_a_dictionary(axes, dtype):
    rng = np.random.default_rng(axes)
    points = (rng.normal(size=(500, axes)) * 3).astype(dtype)
    batch = rng.integers(-2, 3, 500)
    sizes = rng.uniform(0.3, 2.0, axes)
    for size, origin, which in [(0.7, 0.0, None), (sizes, sizes / 3, None), (0.013, 0.37, batch)]:
        expected = voxels_of(points, size, origin, which)
        found = voxelize(points, size, origin, batch=which)
        assert [tuple(row) for row in found.coords.tolist()] == list(expected)
        assert found.coords.dtype == np.int32
        assert found.index.tolist() == [rows[0] for rows in expected.values()]
        assert found.counts.tolist() == [len(rows) for rows in expected.values()]
        assert found.coords[found.inverse].tolist() == [
            list(voxel) for row in range(500) for voxel, rows in expected.items() if row in rows
        ]


@pytest.mark.parametrize("reduce", list(REDUCE))
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8", "uint64", "bool"])
def test_features_are_reduced_as_numpy_reduces_them(reduce, dtype):
    rng = np.random.default_rng(1)
    points = rng.random((400, 3))
    for shape in [(400,), (400, 5), (400, 2, 3), (400, 0)]:
        features = (rng.random(shape) * 200).astype(dtype)
        found = voxelize(points, 0.3, reduce=reduce, features=features).features
        groups = voxels_of(points, 0.3).values()
        wide = features if features.dtype.kind != "f" else features.astype(np.float64)
        expected = np.array([REDUCE[reduce](wide[rows]) for rows in groups])
        assert found.shape == expected.shape
        if features.dtype.kind == "f":
            assert found.dtype == features.dtype
            assert np.allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-14)
        elif reduce == "mean":
            assert found.dtype == np.float64 and np.allclose(found, expected, rtol=1e-15)
        else:
            wide_kind = np.uint64 if dtype.startswith("u") else np.int64
            assert found.dtype == (wide_kind if reduce == "sum" else features.dtype)
            assert found.tolist() == expected.tolist()


def test_floor_not_truncation():
    voxels = voxelize([[-0.4], [0.4], [-0.6], [-1.0]], 1.0)
    assert voxels.coords.tolist() == [[-1], [0]]
    assert voxels.inverse.tolist() == [0, 1, 0, 0]
    assert voxelize([[-0.48]], 0.03 * 16).coords.tolist() == [[-1]]


def test_voxels_are_half_open():
    assert voxelize([[0.0, 0.1]], 0.1).coords.tolist() == [[0, 1]]
    assert voxelize([[1.0], [np.nextafter(1.0, 0)]], 1.0).coords.tolist() == [[1], [0]]


def test_mean_of_two_rows():
    found = voxelize([[0, 1], [0, 1]], 1, features=[[2, 3], [4, 5]])
    assert found.features.tolist() == [[3, 4]]


def test_a_list_of_rows_is_one_cloud():
    rows = [np.array([0.5, 1.5]), np.array([0.25, 1.25])]
    assert voxelize(rows, 1.0).features.tolist() == [[0.375, 1.375]]
    assert voxel_downsample(rows, 1.0).tolist() == [[0.375, 1.375]]


def test_large_coordinates_are_quantised_in_float64():
    rng = np.random.default_rng(2)
    points = rng.uniform(0, 1, (3000, 2)) * [1177, 563] + [636001.76, 848935.20]
    found = voxelize(points, 1.0)
    assert [tuple(row) for row in found.coords.tolist()] == list(voxels_of(points, 1.0))


def test_points_on_a_plane_stay_on_the_plane_and_means_stay_in_range():
    rng = np.random.default_rng(3)
    points = rng.random((200_000, 3))
    points[:, 2] = 0.1
    found = voxelize(points, 0.25)
    assert set(found.features[:, 2]) == {0.1}
    narrow = 1 + rng.integers(0, 2, (200_000, 4)) * 2.0**-52
    low, high, mean = (
        voxelize(points, 0.25, reduce=word, features=narrow).features
        for word in ("min", "max", "mean")
    )
    assert (low <= mean).all() and (mean <= high).all()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_small_floats_are_added_in_float64(dtype):
    features = np.full((5000, 1), 0.1, dtype)
    mean = voxelize(np.zeros((5000, 3)), 1.0, features=features).features
    assert mean.tolist() == features[:1].tolist()
    total = voxelize(np.zeros((5000, 3)), 1.0, features=features, reduce="sum").features
    assert total == np.array(float(features[0, 0]) * 5000, dtype)


def test_infinite_and_nan_features_are_features():
    features = np.array([[np.inf, np.nan, 1e308], [np.inf, 1.0, -1e308], [1.0, 2.0, 1e308]])
    for word, expected in [
        ("mean", [np.inf, np.nan, 1e308 / 3]),
        ("max", [np.inf, np.nan, 1e308]),
        ("min", [1.0, np.nan, -1e308]),
    ]:
        found = voxelize(np.zeros((3, 2)), 1.0, reduce=word, features=features).features
        assert np.array_equal(found[0], expected, equal_nan=True)


def test_integer_sums_and_means_do_not_wrap():
    points = np.zeros((300, 1))
    small = np.full(300, 200, np.uint8)
    assert voxelize(points, 1, reduce="sum", features=small).features.tolist() == [60000]
    assert voxelize(points, 1, reduce="mean", features=small).features.tolist() == [200.0]
    big = np.full(300, 2**62, np.int64)
    assert voxelize(points, 1, reduce="mean", features=big).features.tolist() == [2.0**62]
    with pytest.raises(ValueError, match="features: expected sums that fit int64, got 1 outside"):
        voxelize(points, 1, reduce="sum", features=big)
    signs = np.where(np.arange(300) % 2 == 0, 2**62, -(2**62))
    assert voxelize(points, 1, reduce="sum", features=signs).features.tolist() == [0]


def test_reduce_per_array_and_per_column():
    points = np.array([[0.1], [0.2], [1.5]])
    xyz, labels = np.array([[1.0, 5.0], [3.0, 2.0], [7.0, 7.0]]), np.array([4, 9, 1], np.int32)
    found = voxelize(points, 1.0, reduce=["max", "first"], features=[xyz, labels])
    assert found.features[0].tolist() == [[3.0, 5.0], [7.0, 7.0]]
    assert found.features[1].tolist() == [4, 1] and found.features[1].dtype == np.int32
    found = voxelize(points, 1.0, reduce=["max", "min"], features=xyz)
    assert found.features.tolist() == [[3.0, 2.0], [7.0, 7.0]]
    mixed = voxelize(points, 1.0, reduce=["mean"], features=labels[:, None])
    assert mixed.features.tolist() == [[6.5], [1.0]]


def test_columns_of_different_dtypes_keep_every_number_or_are_refused():
    def join(first, dtype, *words):
        features = np.array([[first, 10], [5, 20]], dtype)
        return voxelize(np.zeros((2, 3)), 1.0, features=features, reduce=words).features

    for exact in (2**53, -(2**53), 2**62, -(2**63)):
        found = join(exact, np.int64, "first", "mean")
        assert found.dtype == np.float64 and found.astype(object).tolist() == [[exact, 15]]
    assert join(7, np.uint8, "first", "sum").tolist() == [[7, 30]]
    assert join(2**53 + 1, np.int64, "first", "sum").tolist() == [[2**53 + 1, 30]]
    for lost, dtype in ((2**53 + 1, np.int64), (-(2**63) + 1, np.int64), (2**64 - 1, np.uint64)):
        with pytest.raises(ValueError, match=f"reduce: .*got {lost} in column 0"):
            join(lost, dtype, "first", "mean")


def test_downsample_gives_one_mean_point_per_voxel():
    rng = np.random.default_rng(4)
    points = rng.random((3000, 3)).astype(np.float32)
    colors, batch = rng.integers(0, 256, (3000, 3), np.uint8), rng.integers(0, 2, 3000)
    expected = voxels_of(points, 0.2)
    found = voxel_downsample(points, 0.2)
    means = [points[rows].astype(np.float64).mean(0) for rows in expected.values()]
    assert found.dtype == np.float32 and np.allclose(found, means, atol=1e-6)
    found, shades = voxel_downsample(points, 0.2, features=colors, reduce="max")
    assert np.allclose(found, means, atol=1e-6)
    assert shades.tolist() == [colors[rows].max(0).tolist() for rows in expected.values()]
    found, which = voxel_downsample(points, 0.2, batch=batch, reduce="first")
    expected = voxels_of(points, 0.2, batch=batch)
    assert which.tolist() == [voxel[0] for voxel in expected]
    assert found.tolist() == [points[rows[0]].tolist() for rows in expected.values()]


def test_empty_clouds_give_empty_voxels():
    found = voxelize(np.zeros((0, 3), np.float32), 1.0, batch=np.zeros(0, np.int32))
    assert found.coords.shape == (0, 4) and found.coords.dtype == np.int32
    assert found.features.shape == (0, 3) and found.features.dtype == np.float32
    assert found.index.shape == found.inverse.shape == found.counts.shape == (0,)
    assert voxel_downsample(np.zeros((0, 3)), 1.0).shape == (0, 3)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_the_result_does_not_depend_on_the_number_of_threads(threads):
    rng = np.random.default_rng(5)
    points, features = rng.random((100_000, 3)), rng.normal(size=(100_000, 4)).astype(np.float32)
    tensorhash.set_num_threads(3)
    expected = voxelize(points, 0.05, features=features, reduce="sum")
    tensorhash.set_num_threads(threads)
    found = voxelize(points, 0.05, features=features, reduce="sum")
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()


def test_strides_and_read_only_arrays():
    base = np.random.default_rng(6).random((90, 8))
    base.flags.writeable = False
    points, features = base[::-3, 6::-3], base[::-3, ::2]
    found = voxelize(points, 0.3, features=features)
    plain = voxelize(points.copy(), 0.3, features=features.copy())
    for one, other in zip(found, plain, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "f2", "i4"])
def test_downsample_of_a_large_cloud_has_the_bits_of_voxelize(dtype):
    wide = (np.random.default_rng(7).normal(size=(80_000, 8)) * 50).astype(dtype)
    points = wide[::-2, 6::-3]
    found = voxel_downsample(points, 2.5, origin=0.3)
    expected = voxelize(points.copy(), 2.5, origin=0.3).features
    assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(200, 3, generator=generator)
    features = torch.rand(200, 4, generator=generator).to(torch.bfloat16)
    found = voxelize(points, 0.3, features=features, batch=torch.zeros(200, dtype=torch.int64))
    assert all(isinstance(part, torch.Tensor) for part in found)
    assert found.features.dtype == torch.bfloat16 and found.coords.dtype == torch.int32
    groups = voxels_of(points.numpy(), 0.3).values()
    means = torch.stack([features[rows].double().mean(0) for rows in groups])
    assert torch.equal(found.features, means.to(torch.bfloat16))
    assert isinstance(voxel_downsample(points, torch.tensor(0.3)), torch.Tensor)
    words = ["sum", "mean", "min", "max"]
    mixed = voxelize(points, 0.3, features=features.float(), reduce=words).features
    assert isinstance(mixed, torch.Tensor) and mixed.dtype == torch.float32


def test_int64_voxels_hold_what_int32_cannot():
    points = np.array([[3e9, 0.0], [-3e9, 1.0]])
    with pytest.raises(
        ValueError, match=r"int32, got 2 coordinates.*row 0, axis 0: 3000000000.*int64"
    ):
        voxelize(points, 1.0)
    assert voxelize(points, 1.0, dtype="int64").coords.tolist() == [[3 * 10**9, 0], [-3 * 10**9, 1]]
    assert voxelize([[2.0**31 - 1], [-(2.0**31)]], 1.0).coords.tolist() == [[2**31 - 1], [-(2**31)]]
    with pytest.raises(ValueError, match="int64, got 1 coordinates"):
        voxelize([[2.0**63]], 1.0, dtype=np.int64)
    with pytest.raises(ValueError, match="int64, got 2 coordinates"):
        voxel_downsample(np.array([[2e10], [-2e10], [0.0]]), 1e-9)


def test_non_finite_coordinates_are_refused_and_counted():
    points = np.zeros((9, 3))
    points[4] = [np.nan, np.inf, 0]
    points[7, 2] = -np.inf
    for call in (voxelize, voxel_downsample):
        with pytest.raises(ValueError, match=r"points: .*1 NaN and 2 infinite.*row 4, column 0"):
            call(points, 1.0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"voxel_size": 0}, ValueError, "voxel_size: expected finite numbers greater than 0"),
        ({"voxel_size": -1.0}, ValueError, "voxel_size: expected finite numbers greater than 0"),
        ({"voxel_size": np.nan}, ValueError, "voxel_size: expected finite"),
        ({"voxel_size": np.inf}, ValueError, "voxel_size: expected finite"),
        ({"voxel_size": [1.0, 2.0]}, ValueError, "voxel_size: expected one number or 3.*got 2"),
        ({"voxel_size": "1"}, TypeError, "voxel_size: expected a number"),
        ({"voxel_size": None}, TypeError, "voxel_size: expected a number"),
        ({"origin": [0, np.inf, 0]}, ValueError, "origin: expected finite numbers"),
        ({"origin": [0, 0]}, ValueError, "origin: expected one number or 3"),
        ({"points": np.zeros(3)}, ValueError, r"points: expected shape \(N, D\)"),
        ({"points": np.zeros((2, 3), bool)}, TypeError, "points: expected floats or integers"),
        ({"points": [["a", "b"]]}, TypeError, "points: expected numbers"),
        ({"features": np.zeros(5)}, ValueError, r"features: expected 2 rows.*\(5,\)"),
        (
            {"features": [np.zeros(2), np.zeros(3)]},
            ValueError,
            r"features\[1\]: expected 2 rows",
        ),
        ({"reduce": "median"}, ValueError, 'reduce: expected first.*got "median"'),
        ({"reduce": ["sum"]}, ValueError, "reduce: expected one name or 3, one per column, got 1"),
        ({"reduce": [1, 2, 3]}, TypeError, "reduce: expected a name"),
        ({"reduce": None}, TypeError, "reduce: expected a name.*got None"),
        ({"batch": [0]}, ValueError, r"batch: expected shape \(2,\)"),
        ({"batch": [0.0, 1.0]}, TypeError, "batch: expected integers, got float64"),
        ({"batch": [0, 2**40]}, ValueError, "batch: expected integers that fit int32.*row 1"),
        ({"dtype": "int16"}, TypeError, "dtype: expected int32 or int64, got int16"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        voxelize(**{"points": np.zeros((2, 3)), "voxel_size": 1.0, **arguments})
