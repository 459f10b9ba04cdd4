"""voxelize with reductions that keep a point, against loops in plain NumPy."""

import collections

import numpy as np
import pytest

import tensorhash
from tensorhash.coords import voxel_downsample, voxelize

SIZE, ORIGIN = np.array([0.5, 0.25, 1.0]), np.array([0.1, -3.0, 0.0])


def cloud(seed, rows=3000):
    rng = np.random.default_rng(seed)
    points = np.round(rng.normal(size=(rows, 3)) * 2, 2)  # rounded: equal distances occur
    return points, rng.integers(-3, 4, rows), rng.integers(0, 3, rows)


def groups_of(points, batch=None):
    """The rows of each voxel, in order of first occurrence."""
    found = collections.OrderedDict()
    for row, voxel in enumerate(np.floor((points - ORIGIN) / SIZE).astype(int).tolist()):
        key = (*voxel, 0 if batch is None else int(batch[row]))
        found.setdefault(key, []).append(row)
    return found


def nearest(points, rows, target):
    squared = [((points[row] - target) ** 2).tolist() for row in rows]
    sums = [x + y + z for x, y, z in squared]
    return rows[int(np.argmin(sums))]


def kept_by_loop(word, points, labels, batch, ignore):
    rows_kept = []
    for key, rows in groups_of(points, batch).items():
        if word == "nearest_center":
            kept = nearest(points, rows, (np.array(key[:3]) + 0.5) * SIZE + ORIGIN)
        elif word == "nearest_centroid":
            first = points[rows[0]]
            mean = first + sum(points[row] - first for row in rows) / len(rows)
            mean = np.clip(mean, points[rows].min(0), points[rows].max(0))
            kept = nearest(points, rows, mean)
        else:
            votes = [row for row in rows if labels[row] != ignore] or rows
            counts = collections.Counter(labels[row] for row in votes)
            kept = max(votes, key=lambda row: (counts[labels[row]], -row))
        rows_kept.append(kept)
    return rows_kept


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("word", ["nearest_center", "nearest_centroid", "mode"])
def test_the_kept_rows_are_those_of_a_loop(word, batched, threads):
    tensorhash.set_num_threads(threads)
    for seed in range(3):
        points, labels, batch = cloud(seed)
        batch = batch if batched else None
        for ignore in (None, 0) if word == "mode" else (None,):
            voxels = voxelize(points, SIZE, ORIGIN, word, labels, batch=batch, ignore_label=ignore)
            expected = kept_by_loop(word, points, labels, batch, ignore)
            assert voxels.index.tolist() == expected
            assert voxels.features.tolist() == labels[expected].tolist()
            assert voxels.inverse[voxels.index].tolist() == list(range(len(expected)))


def test_a_list_of_arrays_keeps_the_same_point():
    points, labels, _ = cloud(5)
    words = ["nearest_center", "mean", "nearest_center"]
    voxels = voxelize(points, SIZE, ORIGIN, words, [labels, points, points])
    kept = kept_by_loop("nearest_center", points, labels, None, None)
    assert voxels.index.tolist() == kept
    assert voxels.features[0].tolist() == labels[kept].tolist()
    assert voxels.features[2].tolist() == points[kept].tolist()
    means = voxelize(points, SIZE, ORIGIN).features
    assert voxels.features[1].tolist() == means.tolist()


def test_downsampling_can_keep_real_points():
    points, labels, _ = cloud(6)
    kept = kept_by_loop("nearest_centroid", points, labels, None, None)
    thin = voxel_downsample(points, SIZE, ORIGIN, "nearest_centroid")
    assert thin.tolist() == points[kept].tolist()
    thin, own = voxel_downsample(points, SIZE, ORIGIN, "nearest_centroid", labels)
    assert thin.tolist() == points[kept].tolist() and own.tolist() == labels[kept].tolist()


def test_labels_of_every_integer_dtype():
    points = np.zeros((5, 1))
    for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        labels = np.array([1, 0, 1, 0, 0]).astype(dtype)
        assert voxelize(points, 1.0, reduce="mode", features=labels).index.tolist() == [1]
    large = np.array([2**64 - 1, 5, 2**64 - 1], np.uint64)
    kept = voxelize(points[:3], 1.0, reduce="mode", features=large, ignore_label=2**64 - 1)
    assert kept.features.tolist() == [5]
    kept = voxelize(points[:3], 1.0, reduce="mode", features=large, ignore_label=-1)
    assert kept.features.tolist() == [2**64 - 1]


def test_empty_clouds():
    for word in ("nearest_center", "nearest_centroid", "mode"):
        voxels = voxelize(np.empty((0, 3)), 1.0, reduce=word, features=np.empty(0, np.int64))
        assert voxels.index.shape == (0,) and voxels.features.shape == (0,)


def test_bad_arguments_are_named():
    points, labels, _ = cloud(7, 20)
    with pytest.raises(ValueError, match=r"reduce: expected one word .* got mode and nearest_cent"):
        voxelize(points, 1.0, reduce=["mode", "nearest_center"], features=[labels, labels])
    with pytest.raises(ValueError, match="ignore_label: expected None without"):
        voxelize(points, 1.0, ignore_label=3)
    with pytest.raises(TypeError, match="ignore_label: expected an int, got str"):
        voxelize(points, 1.0, reduce="mode", features=labels, ignore_label="x")
    with pytest.raises(TypeError, match="features: expected integer labels .* got float64"):
        voxelize(points, 1.0, reduce="mode", features=points[:, 0])
    with pytest.raises(ValueError, match=r"features: expected one label per point .* \(20, 3\)"):
        voxelize(points, 1.0, reduce="mode", features=points.astype(int))
    with pytest.raises(ValueError, match="reduce: expected first, .* nearest_centroid or mode"):
        voxelize(points, 1.0, reduce="median")
