"""tensorhash.io and LAS: with laspy files come back, without it there is one sentence."""

import sys

import numpy as np
import pytest

from tensorhash import io


def test_without_laspy_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "laspy", None)
    (tmp_path / "a.las").write_bytes(b"LASF" + bytes(400))
    message = "LAS and LAZ files need the package laspy, .*; pip install 'laspy"
    with pytest.raises(ImportError, match=message):
        io.read(tmp_path / "a.las")
    with pytest.raises(ImportError, match=message):
        io.write(tmp_path / "b.laz", [[0.0, 0, 0]])
    assert not (tmp_path / "b.laz").exists()


@pytest.fixture
def cloud():
    pytest.importorskip("laspy")
    pytest.importorskip("lazrs")
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, 3)) * [300, 300, 20] + [6.4e5, 8.5e5, 400]
    attributes = {
        "intensity": rng.integers(0, 65536, 500).astype(np.uint16),
        "classification": rng.integers(0, 32, 500).astype(np.uint8),
        "gps_time": np.sort(rng.random(500)),
        "colors": rng.integers(0, 65536, (500, 3)).astype(np.uint16),
        "height": rng.random(500),  # not in the standard: an extra column
    }
    return points, attributes


@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_points_come_back_to_a_tenth_of_a_millimetre(tmp_path, cloud, suffix):
    points, attributes = cloud
    path = tmp_path / f"a{suffix}"
    io.write(path, points, attributes)
    read = io.read(path)
    assert read.points.dtype == np.float64
    assert np.abs(read.points - points).max() <= 1e-4 / 2 * 1.001
    for name, values in attributes.items():
        assert np.array_equal(read.attributes[name], values), name
    io.write(tmp_path / f"again{suffix}", *read)
    again = io.read(tmp_path / f"again{suffix}")
    assert np.array_equal(again.points, read.points)
    assert list(again.attributes) == list(read.attributes)
    io.write(path, np.empty((0, 3)))
    assert io.read(path).points.shape == (0, 3)


@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_damaged_files_are_one_sentence(tmp_path, cloud, suffix):
    path = tmp_path / f"a{suffix}"
    io.write(path, cloud[0])
    good = path.read_bytes()
    for cut in (100, 300, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:cut])
        with pytest.raises(ValueError, match="not a readable LAS file"):
            io.read(path)
    # The header says 2^31 - 1 points: refused before anything is allocated.
    path.write_bytes(good[:107] + b"\xff\xff\xff\x7f" + good[111:])
    with pytest.raises(ValueError, match="the file ends at byte|max_bytes"):
        io.read(path)


def test_numbers_that_las_does_not_hold_are_refused(tmp_path, cloud):
    points, _ = cloud
    with pytest.raises(ValueError, match="intensity.*from 0 to 65535"):
        io.write(tmp_path / "a.las", points, {"intensity": np.full(500, 70000)})
    with pytest.raises(ValueError, match="finite numbers"):
        io.write(tmp_path / "a.las", [[np.nan, 0, 0]])
    assert list(tmp_path.iterdir()) == []
