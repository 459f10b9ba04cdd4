"""The command line: what each command prints and writes, and one line for bad input."""

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest

import tensorhash
from tensorhash import cli, coords, io


@pytest.fixture
def run(capsys):
    """Runs a command in this process: (exit code, stdout, stderr)."""

    def call(*arguments):
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


@pytest.fixture
def answer(run):
    """The JSON object that a command prints."""

    def call(*arguments):
        code, out, err = run(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return call


@pytest.fixture
def scan(tmp_path):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(5000, 3)).astype(np.float32)
    points[4000:] = points[:1000]
    attributes = {
        "intensity": rng.random(5000).astype(np.float32),
        "colors": rng.integers(0, 256, (5000, 3)).astype(np.uint8),
        "label": rng.integers(0, 9, 5000).astype(np.int32),
    }
    io.write(tmp_path / "scan.ply", points, attributes)
    return tmp_path / "scan.ply"


def test_info(run, answer):
    facts = answer("info")
    assert facts["tensorhash"] == tensorhash.__version__
    assert facts["numpy"] == np.__version__ and "ply" in facts["formats"]
    code, out, _ = run("info")
    assert code == 0 and f"tensorhash   {tensorhash.__version__}" in out
    assert "integer ids  i is cpu:i" in out and facts["integer ids"]


def test_voxelize_agrees_with_numpy(scan, tmp_path, answer):
    facts = answer("voxelize", scan, tmp_path / "out.ply", "--size", "0.25")
    cloud, out = io.read(scan), io.read(tmp_path / "out.ply")
    cells = np.floor(cloud.points.astype(np.float64) / 0.25)
    _, first, inverse, counts = np.unique(
        cells, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    assert facts["points"] == 5000 and facts["voxels"] == len(first) == len(out.points)
    assert np.array_equal(out.attributes["count"], counts[order])
    assert np.array_equal(out.attributes["label"], cloud.attributes["label"][first[order]])
    inverse = inverse.reshape(-1)
    for name, got in (("intensity", out.attributes["intensity"]), ("points", out.points)):
        source = cloud.points if name == "points" else cloud.attributes[name]
        source = source.reshape(5000, -1).astype(np.float64)
        sums = np.stack([np.bincount(inverse, column) for column in source.T], axis=1)
        means = (sums / counts[:, None])[order]
        assert np.allclose(got.reshape(len(means), -1), means, atol=1e-6)
    colors = np.stack([np.bincount(inverse, c) for c in cloud.attributes["colors"].T], axis=1)
    assert np.array_equal(out.attributes["colors"], np.rint((colors / counts[:, None])[order]))
    assert out.attributes["colors"].dtype == np.uint8


@pytest.mark.parametrize("word", ["first", "last", "nearest_center", "nearest_centroid"])
def test_voxelize_keeps_a_point_with_all_of_its_attributes(scan, tmp_path, answer, word):
    answer("voxelize", scan, tmp_path / "out.ply", "--size", "0.5", "--reduce", word)
    cloud, out = io.read(scan), io.read(tmp_path / "out.ply")
    kept = coords.voxelize(cloud.points, 0.5, reduce=word)
    rows = kept.index
    if word == "last":  # `index` is the first point then
        rows = len(cloud.points) - 1 - np.unique(kept.inverse[::-1], return_index=True)[1]
    assert np.array_equal(out.points, cloud.points[rows])
    for name, values in cloud.attributes.items():
        assert np.array_equal(out.attributes[name], values[rows]), name


def test_voxelize_without_output_only_counts(scan, tmp_path, run):
    code, out, err = run("voxelize", scan, "--size", "0.5", "--reduce", "first")
    assert code == 0 and err == ""
    assert out.startswith("5,000 points in ") and "voxels of 0.5, in " in out
    assert list(tmp_path.iterdir()) == [scan]


def test_the_output_may_come_after_the_options(scan, tmp_path, answer):
    answer("voxelize", scan, "--size", "0.5", tmp_path / "a.ply")
    answer("unique", scan, "--by", "label", tmp_path / "b.ply")
    assert len(io.read(tmp_path / "b.ply").points) == 9


@pytest.mark.parametrize("flag", ["-o", "--output"])
def test_the_output_may_be_named(scan, tmp_path, answer, run, flag):
    answer("voxelize", scan, "--size", "0.5", flag, tmp_path / "a.ply")
    answer("convert", flag, tmp_path / "b.xyz", tmp_path / "a.ply")
    answer("mesh", scan, flag, tmp_path / "c.ply", "--size", "0.5")
    assert len(io.read(tmp_path / "b.xyz").points) == len(io.read(tmp_path / "a.ply").points)
    code, out, err = run("unique", scan, "x.ply", flag, "y.ply")
    assert (code, out) == (2, "") and "expected one output, got x.ply and -o y.ply" in err
    code, out, err = run("mesh", scan, "--size", "1")
    assert (code, out) == (2, "") and "required: output" in err


def test_coordinates_of_a_map_in_voxels_of_a_millimetre(tmp_path, answer):
    points = np.array([[5e6, 4e5, 0], [5e6, 4e5, 0.0005], [5e6 + 1, 4e5, 0]])
    io.write(tmp_path / "map.npy", points)
    assert answer("voxelize", tmp_path / "map.npy", "--size", "0.001")["voxels"] == 2


def test_unique_of_a_cloud(scan, tmp_path, answer):
    facts = answer("unique", scan, tmp_path / "out.npz")
    assert (facts["rows"], facts["distinct"]) == (5000, 4000)
    out, cloud = io.read(tmp_path / "out.npz"), io.read(scan)
    assert np.array_equal(out.points, cloud.points[:4000])
    assert out.attributes["count"].tolist() == [2] * 1000 + [1] * 3000
    labels = cloud.attributes["label"]
    assert answer("unique", scan, "--by", "label")["distinct"] == len(np.unique(labels))
    rows = np.column_stack([cloud.points.astype(np.float64), labels])
    assert answer("unique", scan, "--by", "x,y,z,label")["distinct"] == len(np.unique(rows, axis=0))


@pytest.mark.parametrize(
    "array", [np.array([7, 3, 7]), np.zeros((4, 2), np.int32), np.ones((3, 3), int)]
)
def test_unique_of_an_array(tmp_path, answer, array):
    np.save(tmp_path / "a.npy", array)
    facts = answer("unique", tmp_path / "a.npy", tmp_path / "b.npy")
    assert np.array_equal(np.load(tmp_path / "b.npy"), tensorhash.unique(array))
    assert (facts["rows"], facts["distinct"]) == (len(array), len(tensorhash.unique(array)))


def test_convert_clouds_and_tables(scan, tmp_path, answer):
    facts = answer("convert", scan, tmp_path / "a.xyz")
    assert facts["rows"] == 5000 and facts["columns"][:4] == ["x", "y", "z", "intensity"]
    answer("convert", tmp_path / "a.xyz", tmp_path / "b.ply", "--encoding", "ascii")
    assert np.array_equal(io.read(tmp_path / "b.ply").points.astype("f4"), io.read(scan).points)
    table = tensorhash.HashMap(0, "int64", (), "float32", (2,))
    table.insert(np.arange(5), np.ones((5, 2), np.float32))
    table.save(tmp_path / "t.thash")
    assert answer("convert", tmp_path / "t.thash", tmp_path / "t.npz")["rows"] == 5
    again = tensorhash.HashMap.load(tmp_path / "t.npz")
    assert np.array_equal(again.get(np.arange(5)), np.ones((5, 2)))


def test_mesh_of_a_ball_that_was_scanned_from_inside(tmp_path, answer, run):
    rng = np.random.default_rng(0)
    rays = rng.normal(size=(40_000, 3))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    origin = np.array([1.0, 2.0, 3.0])
    points = np.concatenate([5 * rays + origin, np.tile(origin, (7, 1))])
    io.write(tmp_path / "ball.npy", points)
    arguments = ("mesh", tmp_path / "ball.npy", tmp_path / "m.ply", "--size", "0.25")
    facts = answer(*arguments, "--origin", "1,2,3")
    mesh = io.read_mesh(tmp_path / "m.ply")
    assert facts["points"] == 40_000 and facts["triangles"] == len(mesh.triangles) > 5000
    radius = np.linalg.norm(mesh.vertices - origin, axis=1)
    assert np.abs(radius - 5).max() < 0.25
    inward = -(mesh.vertices - origin) / radius[:, None]
    assert np.median((mesh.attributes["normals"] * inward).sum(axis=1)) > 0.95
    code, _, err = run(*arguments, "--origin", "1,2,3")
    assert code == 0 and err == "tensorhash: dropped 7 points at the origin of the scan\n"


def test_an_origin_may_be_negative(tmp_path, answer):
    io.write(tmp_path / "one.xyz", [[0.0, 0, 0], [0, 0, 1]])
    for words in (["--origin", "-1,0,0"], ["--origin=-1,0,0"], ["--origin", "-.5,0,0"]):
        facts = answer("mesh", tmp_path / "one.xyz", tmp_path / "m.ply", "--size", "0.1", *words)
        assert facts["points"] == 2


def test_drop_invalid(tmp_path, run, answer):
    io.write(tmp_path / "a.ply", np.float32([[0, 0, 0], [np.nan, 0, 0], [np.inf, 1, 1]]))
    code, _, err = run("voxelize", tmp_path / "a.ply", "--size", "1")
    assert code == 2 and "2 of 3 with NaN" in err and "--drop-invalid" in err
    assert err.count("\n") == 1
    assert answer("voxelize", tmp_path / "a.ply", "--size", "1", "--drop-invalid")["voxels"] == 1


def filled(cls, *arguments, **options):
    table = cls(*arguments, **options)
    keys = np.arange(300, dtype=np.int32).reshape(100, 3)
    table.insert(keys, np.ones((100, 2), np.float32))
    table.erase(keys[:10])
    return table


def tables(folder):
    shape = ("int32", (3,), "float32", (2,))
    devices = ["cpu:0", "cpu:1"]
    saved = {
        "HashMap": filled(tensorhash.HashMap, 0, *shape).save(folder / "map.thash"),
        "npz table": filled(tensorhash.HashMap, 0, *shape).save(folder / "map.npz"),
        "BoundedHashMap": filled(tensorhash.BoundedHashMap, 200, *shape).save(folder / "b.thash"),
        "ShardedHashMap": filled(tensorhash.ShardedHashMap, 0, *shape, devices=devices).save(
            folder / "s.thash"
        ),
    }
    bounded = filled(tensorhash.ShardedBoundedHashMap, 400, *shape, devices=devices)
    return [*saved.items(), ("ShardedHashMap", bounded.save(folder / "sb.thash"))]


def test_inspect_all_kinds_of_tables(tmp_path, answer, run):
    for kind, path in tables(tmp_path):
        facts = answer("inspect", path)
        assert facts["kind"] == kind and facts["bytes"] == os.path.getsize(path)
        assert facts["size"] == 90, kind
        assert (facts["key"], facts["values"]) == ("int32 (3,)", ["float32 (2,)"]), kind
        assert answer("inspect", path, "--verify")["verified"] is True
        content = bytearray(Path(path).read_bytes())
        content[len(content) // 2] ^= 1
        damaged = tmp_path / ("damaged" + os.path.splitext(path)[1])
        damaged.write_bytes(content)
        code, out, err = run("inspect", damaged, "--verify")
        assert (code, out) == (2, "") and err.count("\n") == 1, kind


def test_inspect_a_set_and_a_cloud(tmp_path, scan, answer):
    seen = tensorhash.HashSet(0, "int64", ())
    seen.insert(np.arange(7))
    facts = answer("inspect", seen.save(tmp_path / "set"), "--verify")
    assert facts["size"] == 7 and facts["values"] == []
    facts = answer("inspect", scan)
    assert facts["points"] == 5000 and facts["attributes"][1] == "colors uint8 (3,)"
    assert np.allclose(facts["low"], io.read(scan).points.min(axis=0))


def checkpoint(folder):
    """A checkpoint of two ranks, written without torch."""
    from tensorhash.distributed import checkpoint, shard_file

    folder.mkdir()
    counts = []
    for rank in range(2):
        table = tensorhash.HashMap(0, "int64", (), "float32", (2,))
        table.insert(np.arange(50) + 1000 * rank, np.ones((50, 2), np.float32))
        path = folder / checkpoint._file_name("00ff", rank, 2)
        facts = {"id": "00ff", "rank": rank, "ranks": 2}
        counts.append(shard_file.write(str(path), table, facts)["count"])
    checkpoint._write_manifest(str(folder), table, "00ff", counts)
    return path


def test_inspect_checkpoints(tmp_path, answer, run):
    file = checkpoint(tmp_path / "checkpoint")
    facts = answer("inspect", tmp_path / "checkpoint", "--verify")
    assert (facts["kind"], facts["size"], facts["ranks"]) == ("checkpoint", 100, [50, 50])
    facts = answer("inspect", file, "--verify")
    assert (facts["kind"], facts["rank"], facts["key"]) == ("checkpoint file", 1, "int64")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    for path in (file, tmp_path / "checkpoint"):
        code, _, err = run("inspect", path, "--verify")
        assert code == 2 and "checksum of value column 0 is wrong" in err
    (tmp_path / "checkpoint" / "checkpoint.json").unlink()
    assert run("inspect", tmp_path / "checkpoint")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["voxelize", "SCAN"], "required: --size"),
        (["voxelize", "SCAN", "--size", "0"], "expected a number greater than 0, got '0'"),
        (["voxelize", "SCAN", "--size", "-1"], "expected a number greater than 0, got '-1'"),
        (["voxelize", "SCAN", "--size", "nan"], "expected a number greater than 0, got 'nan'"),
        (["voxelize", "SCAN", "--size", "1e-30"], "int64"),
        (
            ["voxelize", "SCAN", "--size", "1", "a.ply", "b.ply"],
            "unrecognized arguments: a.ply b.ply",
        ),
        (["inspect", "SCAN", "--fast"], "tensorhash inspect: unrecognized arguments: --fast"),
        (["info", "SCAN"], "tensorhash info: unrecognized arguments"),
        (["convert", "WORDS", "a.npz"], "table of a HashMap or HashSet, got a StringIndex"),
        (
            ["convert", "TABLE", "a.npz", "--encoding", "ascii"],
            "--encoding: expected a point cloud",
        ),
        (["convert", "TABLE", "a.npz", "--drop-invalid"], "--drop-invalid: expected a point cloud"),
        (["voxelize", "none.ply", "--size", "1"], "none.ply: No such file or directory"),
        (["mesh", "SCAN", "m.ply", "--size", "1", "--origin", "1,2"], "three numbers as x,y,z"),
        (["mesh", "SCAN", "m.npz", "--size", "1"], "path: expected a name that ends in .ply"),
        (["unique", "SCAN", "--by", "x,w"], "which are x, y, z, intensity, label, got 'w'"),
        (["unique", "SCAN", "--by", "x,,"], "expected names with commas between them"),
        (["convert", "SCAN", "out.obj"], "path: expected a name that ends in"),
        (["convert", "SCAN", "no/such/folder.ply"], "No such file or directory"),
        (["inspect", "."], "got a folder without checkpoint.json"),
        (["inspect", "BAD"], "expected a PLY file, but it begins with"),
        (
            ["inspect", "UNKNOWN"],
            "expected a table or a checkpoint of tensorhash, or a point cloud",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    run, scan, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.ply").write_bytes(b"PLY?")
    (tmp_path / "page.html").write_bytes(b"<html></html>")
    tensorhash.StringIndex().save("words")
    tensorhash.HashSet(0, "int64", ()).save("table")
    words = [
        {
            "WORDS": "words.thash",
            "TABLE": "table.thash",
            "SCAN": scan,
            "BAD": "bad.ply",
            "UNKNOWN": "page.html",
        }.get(word, word)
        for word in arguments
    ]
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message in err and err.count("\n") == 1 and err.startswith("tensorhash"), err


def test_module_version_and_broken_pipe():
    """As a user starts it: python -m tensorhash."""
    command = f"'{sys.executable}' -m tensorhash"
    done = subprocess.run(
        f"{command} --version; {command} info | head -1; {command} inspect no-such-file; echo $?",
        shell=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    version, first, code = done.stdout.splitlines()
    assert version == f"tensorhash {tensorhash.__version__}" and first.startswith("tensorhash ")
    assert (
        code == "2"
        and done.stderr == "tensorhash inspect: no-such-file: No such file or directory\n"
    )


@pytest.mark.parametrize("bar", ["", "tqdm"])
def test_progress_is_one_line_on_a_terminal(scan, bar):
    """Plain text, or a bar of tqdm if it is installed."""
    if bar:
        pytest.importorskip(bar)
    terminal, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    hide = "" if bar else "import sys; sys.modules['tqdm'] = None; "
    program = (
        f"{hide}from tensorhash.cli import main; main(['voxelize', {str(scan)!r}, '--size', '1'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=other
    )
    os.close(other)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal ends with the process
        while piece := os.read(terminal, 4096):
            shown += piece
    os.close(terminal)
    assert process.communicate(timeout=60)[0].startswith(b"5,000 points")
    assert b"reading" in shown and b"voxelising" in shown and b"\n" not in shown
    assert (b"[2/3]" in shown) == (not bar)


def test_completion_knows_every_command_and_option(run):
    for shell in ("bash", "zsh", "fish"):
        code, out, _ = run("completion", shell)
        assert code == 0 and "voxelize" in out and "verify" in out
    script = run("completion", "bash")[1]
    probe = """
COMP_WORDS=(tensorhash voxelize --si); COMP_CWORD=2; _tensorhash; echo "${COMPREPLY[@]}"
COMP_WORDS=(tensorhash ins); COMP_CWORD=1; _tensorhash; echo "${COMPREPLY[@]}"
"""
    done = subprocess.run(
        ["bash", "-c", script + probe], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["--size", "inspect"], done.stderr
