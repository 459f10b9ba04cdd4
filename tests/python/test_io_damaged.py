"""tensorhash.io on damaged and hostile files: one sentence with the byte or line, little memory."""

import io as streams
import zipfile

import numpy as np
import pytest
from in_full import times

from tensorhash import io

HEADER = """ply
format ascii 1.0
element vertex 2
property float x
property float y
property float z
property uchar red
end_header
"""


def ply(changes=(), body="0 0 0 1\n1 1 1 2\n"):
    text = HEADER + body
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ply\n", "the header ends in line 2 without end_header"),
        (ply([("ascii", "text")]), "line 2: expected 'format'"),
        (ply([("1.0", "2.0")]), "line 2: expected 'format'"),
        (ply([("format ascii 1.0", "comment")]), "no line 'format'"),
        (ply([("vertex 2", "vertex -2")]), "line 3: expected 'element NAME COUNT'"),
        (ply([("vertex 2", "vertex two")]), "line 3: expected 'element NAME COUNT'"),
        (
            ply([("vertex 2", "vertex 99999999999999")]),
            "line 3: 99999999999999 rows of 'vertex' need",
        ),
        (ply([("vertex 2", "edge 2")]), "expected an element 'vertex', got edge"),
        (ply([("float y", "quad y")]), "line 5: expected 'property TYPE NAME'"),
        (ply([("float y", "float x")]), "line 5: the property 'x' is there twice"),
        (ply([("float y", "float w")]), "expected columns x, y and z, got x, w"),
        (ply([("uchar red", "list uchar int red")]), "line 9: expected 7 numbers, got 4"),
        (
            ply([("uchar red", "list float int red")]),
            "line 7: expected an integer as the type of a count",
        ),
        (ply([("property float y", "x" * 2000)]), "line 5: expected a line of the header"),
        (ply([("property float y", "nonsense")]), "line 5: expected a line of a PLY header"),
        (ply([("element vertex 2", "element vertex 2\nelement vertex 2")]), "line 4: the element"),
        (ply(body="0 0 0 1\n1 1 1\n"), "line 10: expected 4 numbers, got 3: '1 1 1'"),
        (ply(body="0 0 0 1\n1 x 1 2\n"), "line 10: expected 4 numbers, got '1 x 1 2'"),
        (ply(body="0 0 0 1\n1 1-1 1 2\n"), "line 10: expected 4 numbers, got '1 1-1 1 2'"),
        (ply(body="0 0 0 256\n1 1 1 2\n"), "line 9: expected an uint8 as 'red', got '0 0 0 256'"),
        (ply(body="0 0 0 1\n1 1 1 0.5\n"), "line 10: expected an uint8 as 'red'"),
        (ply(body="0 0 0 1\n"), "expected 2 lines of data after line 8, got 1"),
        (ply(body="0 0 0 1\n1 1 1 2\n3 3 3 3\n"), "expected 2 lines of data after line 8, got 3"),
    ],
)
def test_a_damaged_ply_file_is_one_sentence_with_the_line(tmp_path, content, message):
    path = tmp_path / "a.ply"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as raised:
        io.read(path)
    assert str(path) in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("cut", [1, 800, 1600])
def test_a_short_binary_file_names_the_byte(tmp_path, cut):
    path = tmp_path / "a.ply"
    io.write(path, np.ones((100, 3), np.float32), {"intensity": np.ones(100, np.float32)})
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    message = f"need at least 1600 bytes after byte 172, but the file ends at byte {1772 - cut}"
    with pytest.raises(ValueError, match=message):
        io.read(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(ValueError, match=f"to end at byte {len(content)}, but it ends at byte"):
        io.read(path)


def test_faces_that_are_no_triangles_are_refused(tmp_path):
    path = tmp_path / "m.ply"
    for encoding in ("ascii", "binary_little_endian"):
        io.write_mesh(path, np.ones((4, 3)), [[0, 1, 2], [1, 2, 3]], encoding=encoding)
        good = path.read_bytes()
        if encoding == "ascii":
            path.write_bytes(good.replace(b"3 1 2 3", b"4 1 2 3"))
            where = "line 16: expected a list of 3 items"
        else:
            path.write_bytes(good[:-13] + b"\4" + good[-12:])
            where = "got 4 in row 1 at byte"
        with pytest.raises(ValueError, match=where):
            io.read_mesh(path)
        outside = (
            good.replace(b"3 1 2 3", b"3 1 2 9") if encoding == "ascii" else good[:-4] + b"\t\0\0\0"
        )
        path.write_bytes(outside)
        with pytest.raises(ValueError, match=r"got \[1, 2, 9\] in triangle 1"):
            io.read_mesh(path)
    io.write(path, np.ones((4, 3)))
    with pytest.raises(ValueError, match="expected an element 'face', got vertex"):
        io.read_mesh(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 2\n", "line 1: expected 3 to 1000 columns, got 2"),
        (b"\n" + b"1 " * 1001, "line 2: expected 3 to 1000 columns, got 1001"),
        (b"x y z " + b"a" * 9 + b" w" * 1001 + b"\n", "expected 3 to 1000 columns, got 1005"),
        (b"1 2 3\n# c\n4 5\n", "line 3: expected 3 numbers, got 2: '4 5'"),
        (b"1 2 3\n4 five 6\n", "line 2: expected 3 numbers, got '4 five 6'"),
        (b"1 2 3\n" * 999 + b"1 2 0x3\n", "line 1000: expected 3 numbers"),
        (b"1 2 3\n\0\0\n", "expected text, got a zero at byte 6"),
        (b"a b c\n1 2 3\n", "expected columns x, y and z, got a, b, c"),
        (b"1 2 3\n" + b"7" * 5000 + b"\n", "line 2: expected 3 numbers, got 1: '777"),
        (b"1,5;2,5;3,5\n", "line 1: .* the same separator between all of them, got '1,5;2,5;3,5'"),
        (b"x,y,z\n1,2,3\n\n1,5 2,5 3,5\n", "line 4: .* the same separator .* got '1,5 2,5 3,5'"),
        (b"1,2,3\n4, ,5,6\n", "line 2: .* the same separator .* no empty fields"),
        (b"1,2,3\n,4,5,6\n", "line 2: .* the same separator"),
        (b"x,y,z,label\n1,2,3,\n", "line 2: expected 4 numbers, got 3"),
    ],
)
def test_damaged_text_is_one_sentence_with_the_line(tmp_path, content, message):
    path = tmp_path / "a.xyz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as raised:
        io.read(path)
    assert len(str(raised.value)) < 300


def npz_bytes(**arrays):
    stream = streams.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", b"\x93NUMPY\x01\x00\x10\x00" + b"x" * 16, "header is not readable"),
        ("a.npz", b"PK\x03\x04" + b"x" * 50, "not a readable .npz file"),
        (
            "a.npz",
            npz_bytes(key=np.ones(3)),
            "expected an array 'points', or 'x', 'y' and 'z', got key",
        ),
        ("a.npz", npz_bytes(points=np.ones((3, 2))), r"'points' of shape \(N, 3\)"),
        ("a.npz", npz_bytes(points=np.ones((3, 3)), a=np.ones(2)), "expected 3 rows in 'a'"),
        ("a.npz", npz_bytes(x=np.ones(3), y=np.ones(3), z=np.ones(2)), "of the same length"),
        ("a.ply", b"", "expected a PLY file, but it is empty"),
        ("a.ply", b"solid", "expected a PLY file, but it begins with b'solid' at byte 0"),
        ("a.stl", b"solid", "expected a point cloud"),
    ],
)
def test_other_damaged_files_are_one_sentence(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        io.read(tmp_path / name)


def test_objects_in_numpy_files_are_never_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[None, 1, 2]], object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects, which are never loaded"):
        io.read(tmp_path / "a.npy")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        rows = 8_333_333
        stream = streams.BytesIO()
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f4", "fortran_order": False, "shape": (rows, 3)}
        )
        with archive.open("points.npy", "w") as member:
            member.write(stream.getvalue())
            member.write(bytes(12 * rows))
    with pytest.raises(ValueError, match="max_bytes=100000"):
        io.read(path)


@pytest.mark.parametrize("suffix", [".ply", "ascii.ply", ".xyz", ".npy", ".npz"])
def test_random_damage_gives_a_value_error_or_the_same_number_of_columns(tmp_path, suffix):
    """Flipped bytes and cut ends: read() returns a cloud or raises ValueError, nothing else."""
    rng = np.random.default_rng(7)
    path = tmp_path / f"a{suffix[-4:]}"
    encoding = "ascii" if suffix == "ascii.ply" else None
    points = rng.normal(size=(20, 3)).astype(np.float32)
    io.write(path, points, {"label": rng.integers(0, 9, 20)}, encoding=encoding)
    good = np.frombuffer(path.read_bytes(), np.uint8)
    refused = 0
    for _ in range(times(3000, 60)):
        bad = good[: rng.integers(len(good) // 2, len(good) + 1)].copy()
        where = rng.integers(0, min(len(bad), 300), rng.integers(0, 3))
        bad[where] ^= rng.integers(1, 256, len(where)).astype(np.uint8)
        path.write_bytes(bad.tobytes())
        try:
            read = io.read(path)
        except ValueError as error:
            refused += 1
            assert "\n" not in str(error) or ".npy" in suffix, error
        else:
            assert read.points.ndim == 2 and read.points.shape[1] == 3
            assert all(len(values) == len(read.points) for values in read.attributes.values())
    assert refused > 0


def test_a_pipe_and_a_folder_are_refused(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe.ply")
    with pytest.raises(ValueError, match="expected a regular file"):
        io.read(tmp_path / "pipe.ply")
    with pytest.raises(IsADirectoryError):
        io.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        io.read(tmp_path / "none.ply")
