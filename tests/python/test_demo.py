"""The demo: both sources of its scans, its steps against NumPy, and its pictures and report."""

import hashlib
import io as streams
import re
import tarfile

import numpy as np
import pytest
from in_full import only_in_full

from tensorhash import cli, io
from tensorhash.cli import demo
from tensorhash.cli.demo import embedding, scans, stages


@pytest.fixture(scope="module")
def street():
    return scans.synthetic(beams=24, turns=240)


def test_the_synthetic_street_is_seen_from_two_places(street):
    again = scans.synthetic(beams=24, turns=240)
    assert all(np.array_equal(a, b) for a, b in zip(street.clouds, again.clouds, strict=True))
    assert not np.array_equal(*street.origins)
    for cloud, origin in zip(street.clouds, street.origins, strict=True):
        assert len(cloud) > 4000 and cloud.dtype == np.float32
        far = np.linalg.norm(cloud - origin, axis=1)
        assert far.min() > 0.4 and far.max() < 61
        assert cloud[:, 2].min() > -1.9  # nothing below the ground
    assert len(street.points) + street.dropped == 2 * 24 * 240


@pytest.fixture
def index(monkeypatch):
    """A package index in memory: pip's download writes a small source distribution."""
    points = np.float32([[1, 2, 3], [0, 0, 0], [-0.0, 0, 0], [4, 5, 6]])
    pose = np.eye(4)
    pose[:3, 3] = [10, 0, 0]
    files = {"T_target_source.txt": "\n".join(" ".join(map(str, row)) for row in pose).encode()}

    def fill(folder):
        for name in ("target.ply", "source.ply"):
            io.write(folder / name, points)
            files[name] = (folder / name).read_bytes()
        archive = streams.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as contents:
            for name, content in files.items():
                entry = tarfile.TarInfo(f"small_gicp-1.0.1/data/{name}")
                entry.size = len(content)
                contents.addfile(entry, streams.BytesIO(content))
        sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        monkeypatch.setattr(scans, "_SHA256", sums)
        sdist = archive.getvalue()
        monkeypatch.setattr(scans, "_SDIST_SHA256", hashlib.sha256(sdist).hexdigest())
        return sdist

    return fill


def test_the_real_scans_are_taken_out_of_the_source_distribution(tmp_path, index, monkeypatch):
    sdist = index(tmp_path)
    calls = []

    def pip(place):
        calls.append(place)
        (place / "small_gicp-1.0.1.tar.gz").write_bytes(sdist)

    monkeypatch.setattr(scans, "_run_pip", pip)
    for _ in range(2):  # the second time the files are there
        found = scans.load(tmp_path / "data")
        assert [cloud.tolist() for cloud in found.clouds] == [
            [[1, 2, 3], [4, 5, 6]],
            [[11, 2, 3], [14, 5, 6]],
        ]
        assert found.dropped == 4 and found.origins[1].tolist() == [10, 0, 0]
    assert len(calls) == 1
    # A file that changed is not used: it is downloaded again.
    (tmp_path / "data" / "target.ply").write_bytes(b"ply")
    assert len(scans.load(tmp_path / "data").points) == 4 and len(calls) == 2
    # A source distribution that changed is refused.
    sdist = sdist[:-1] + b"?"
    (tmp_path / "data" / "target.ply").unlink()
    with pytest.raises(ValueError, match="expected sha256"):
        scans.load(tmp_path / "data")


def test_without_an_index_the_reason_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(OSError, match="pip could not download small-gicp 1.0.1: ERROR: No match"):
        scans.load(tmp_path / "data")


def test_steps_agree_with_numpy(street):
    """Each step compares its result with NumPy's itself, and raises if they differ."""
    voxels, timing = stages.voxelise(street)
    assert voxels.counts.sum() == timing.rows == len(street.points)
    assert stages.count_sizes(street)[0][0] > stages.count_sizes(street)[0][-1]
    assert stages.distinct_points(street)[0] == len(np.unique(street.points, axis=0))
    columns, _ = stages.group(street)
    assert columns.counts.sum() == len(street.points) and set(columns.scans) == {1, 2, 3}
    surface, timing = stages.fuse(street)
    assert len(surface.triangles) > 100 and timing.numpy is None
    found, _ = stages.kernel_map(street)
    assert found.pairs == found.neighbours.sum() and found.neighbours.min() >= 1
    with pytest.raises(RuntimeError, match="the demo failed"):
        stages.agree([1], [2], "a number")


def test_the_embedding_learns(monkeypatch):
    monkeypatch.setattr(embedding, "BATCHES", 40)
    learned, _ = embedding.learn()
    assert learned.errors[-5:].mean() < 0.9 * learned.errors[:5].mean()
    assert (np.diff(learned.ids) >= 0).all() and learned.ids[-1] > 2 * learned.ids[0]


@only_in_full
def test_the_demo_writes_pictures_and_a_report(tmp_path, street, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(embedding, "BATCHES", 10)
    monkeypatch.setattr(scans, "synthetic", lambda: street)

    def load(folder):
        raise OSError("the index is not there")

    monkeypatch.setattr(scans, "load", load)
    assert cli.main(["demo", "--output", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "synthetic, because the real scans could not be had: the index is not there" in out
    assert "NumPy ms" in out and f"{tmp_path / 'index.html'}" in out
    steps = re.findall(r"\[(\d+)/(\d+)\]", err)
    assert steps == [(str(i + 1), steps[0][1]) for i in range(int(steps[0][1]))]
    page = (tmp_path / "index.html").read_text()
    pictures = re.findall(r'<img src="(.+?)"', page)
    assert len(pictures) >= 6
    assert all((tmp_path / name).stat().st_size > 10_000 for name in pictures)
    assert "http" not in page  # nothing from outside


def test_without_matplotlib_one_line_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(demo.sys.modules, "matplotlib", None)
    assert cli.main(["demo"]) == 2
    assert "pip install 'tensorhash[demo]'" in capsys.readouterr().err
