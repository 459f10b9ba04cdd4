"""Saving: which file is written, what it keeps of the old file, and leftovers of killed saves."""

import fcntl
import os
import stat
import warnings

import numpy as np
import pytest

import tensorhash
import tensorhash.core as o3c


def table():
    return tensorhash.HashMap.from_items(np.arange(5), np.arange(5))


def bounded():
    made = tensorhash.BoundedHashMap(4, "int64", (), "int8", ())
    made.activate([1])
    return made


def sharded():
    return tensorhash.ShardedHashMap(4, "int64", (), "int8", (), devices=["cpu:0", "cpu:1"])


MAKERS = {"map": table, "bounded": bounded, "sharded": sharded}


@pytest.mark.parametrize("make", MAKERS)
def test_save_returns_the_file_that_it_wrote(tmp_path, make):
    made = MAKERS[make]()
    for given, written in (("a", "a.thash"), ("b.thash", "b.thash"), ("v1.2", "v1.2.thash")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = made.save(tmp_path / given)
        assert got == str(tmp_path / written)
        assert os.path.exists(got)


@pytest.mark.parametrize("make", MAKERS)
def test_a_name_with_another_suffix_warns_and_returns_the_written_file(tmp_path, make):
    with pytest.warns(UserWarning, match=r"map\.ply\.thash") as said:
        got = MAKERS[make]().save(tmp_path / "map.ply")
    assert got == str(tmp_path / "map.ply.thash")
    assert said[0].filename == __file__
    assert [path.name for path in tmp_path.iterdir()] == ["map.ply.thash"]


def test_in_core_the_file_is_an_npz(tmp_path):
    made = o3c.HashMap(1, o3c.int64, (1,), o3c.int64, (1,))
    assert made.save(tmp_path / "open").endswith("open.npz")
    with pytest.warns(UserWarning, match=r"map\.ply\.npz"):
        assert made.save(tmp_path / "map.ply").endswith("map.ply.npz")


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ["", "new/", ".", "..", "new/.", "folder/"])
def test_names_that_cannot_be_files_are_refused_and_nothing_is_written(
    tmp_path, make, name, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="file_name: expected the name of a file, got"):
        MAKERS[make]().save(name)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


@pytest.mark.parametrize("suffix", [".thash", ".npz"])
def test_the_mode_of_the_old_file_is_kept(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    table().save(path)
    for mode in (0o600, 0o640, 0o444):
        path.chmod(mode)
        table().save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".thash", ".npz"])
def test_links_are_followed(tmp_path, suffix):
    (tmp_path / "real").mkdir()
    link = tmp_path / f"link{suffix}"
    link.symlink_to(f"real/t{suffix}")
    for _ in range(2):  # a link to a missing file, then to an existing one
        table().save(link)
        assert link.is_symlink()
        assert tensorhash.HashMap.load(tmp_path / "real" / f"t{suffix}").size() == 5
    assert [path.name for path in (tmp_path / "real").iterdir()] == [f"t{suffix}"]


@pytest.mark.parametrize("suffix", [".thash", ".npz"])
def test_a_pipe_is_not_replaced(tmp_path, suffix):
    os.mkfifo(tmp_path / f"t{suffix}")
    with pytest.raises(ValueError, match="regular file"):
        table().save(tmp_path / f"t{suffix}")
    assert stat.S_ISFIFO((tmp_path / f"t{suffix}").stat().st_mode)


@pytest.mark.parametrize("suffix", [".thash", ".npz"])
def test_a_save_removes_what_a_killed_save_left(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    stale = tmp_path / f".t{suffix}.00112233aabbccdd.tmp"
    running = tmp_path / f".t{suffix}.ddccbbaa33221100.tmp"
    for leftover in (stale, running):
        leftover.write_bytes(b"half a file")
    with open(running, "r+b") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        table().save(path)
        assert sorted(tmp_path.iterdir()) == sorted([path, running])
    table().save(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_npz_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "t.npz"
    table().save(path)
    before = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="the disk is full"):
        table().save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
