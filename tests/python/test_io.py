"""tensorhash.io: what is written comes back, and files of other writers are read."""

import doctest
import struct

import numpy as np
import pytest

import tensorhash
from tensorhash import io
from tensorhash.geometry import VoxelBlockGrid

ENCODINGS = ("ascii", "binary_little_endian", "binary_big_endian")


def cloud(rows, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    attributes = {
        "intensity": rng.random(rows).astype(np.float32),
        "normals": rng.normal(size=(rows, 3)),
        "colors": rng.integers(0, 256, (rows, 3)).astype(np.uint8),
        "label": rng.integers(-(2**31), 2**31, rows).astype(np.int32),
        "ring": rng.integers(0, 65536, rows).astype(np.uint16),
    }
    return (rng.normal(size=(rows, 3)) * 100).astype(dtype), attributes


def require_same(read, points, attributes, dtypes=True):
    assert np.array_equal(read.points.astype(points.dtype), points, equal_nan=True)
    assert list(read.attributes) == list(attributes)
    for name, values in attributes.items():
        got = read.attributes[name]
        assert np.array_equal(got.astype(values.dtype), values), name
        assert got.dtype == values.dtype or not dtypes, name
    assert read.points.dtype == points.dtype or not dtypes


@pytest.mark.parametrize("rows", [0, 1, 2, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_ply_gives_back_what_was_written(tmp_path, rows, dtype, encoding):
    points, attributes = cloud(rows, dtype)
    io.write(tmp_path / "a.ply", points, attributes, encoding=encoding)
    require_same(io.read(tmp_path / "a.ply"), points, attributes)


@pytest.mark.parametrize("rows", [0, 1, 1000])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_numpy_files_give_back_what_was_written(tmp_path, rows, suffix):
    points, attributes = cloud(rows)
    io.write(tmp_path / f"a{suffix}", points, attributes)
    require_same(io.read(tmp_path / f"a{suffix}"), points, attributes)
    io.write(tmp_path / f"b{suffix}", points)
    require_same(io.read(tmp_path / f"b{suffix}"), points, {})


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_xyz_gives_back_the_same_numbers_in_float64(tmp_path, rows):
    points, attributes = cloud(rows)
    points[:1] = np.inf
    io.write(tmp_path / "a.xyz", points, attributes)
    read = io.read(tmp_path / "a.xyz")
    require_same(read, points, attributes, dtypes=False)
    assert read.points.dtype == np.float64


def test_npz_keeps_attributes_of_any_shape(tmp_path):
    features = np.arange(24).reshape(2, 3, 4)
    io.write(
        tmp_path / "a.npz", [[0.0, 0, 0], [1, 1, 1]], {"features": features, "big": [2**60, 1]}
    )
    read = io.read(tmp_path / "a.npz")
    assert np.array_equal(read.attributes["features"], features)
    assert read.attributes["big"].tolist() == [2**60, 1]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_mesh_comes_back(tmp_path, encoding):
    vertices, attributes = cloud(50)
    triangles = np.random.default_rng(1).integers(0, 50, (70, 3))
    io.write_mesh(tmp_path / "m.ply", vertices, triangles, attributes, encoding=encoding)
    mesh = io.read_mesh(tmp_path / "m.ply")
    assert np.array_equal(mesh.triangles, triangles) and mesh.triangles.dtype == np.int32
    require_same(io.PointCloud(mesh.vertices, mesh.attributes), vertices, attributes)
    require_same(io.read(tmp_path / "m.ply"), vertices, attributes)
    io.write_mesh(tmp_path / "empty.ply", np.empty((0, 3)), [], encoding=encoding)
    assert io.read_mesh(tmp_path / "empty.ply").triangles.shape == (0, 3)


def test_ply_of_another_writer(tmp_path):
    """Comments, carriage returns, elements before and after the vertices, odd types."""
    header = [
        "ply",
        "format binary_big_endian 1.0",
        "comment made by hand",
        "obj_info none",
        "element camera 2",
        "property double focal",
        "element vertex 2",
        "property short z",
        "property uchar red",
        "property float x",
        "property double y",
        "element face 1",
        "property list uchar int vertex_indices",
        "end_header",
    ]
    rows = (
        struct.pack(">dd", 1, 2)
        + struct.pack(">hBfd", 3, 9, 1, 2)
        + struct.pack(">hBfd", 6, 8, 4, 5)
    )
    path = tmp_path / "hand.ply"
    path.write_bytes("\r\n".join([*header, ""]).encode() + rows + struct.pack(">Bii", 2, 0, 1))
    read = io.read(path)
    assert read.points.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert read.attributes["red"].tolist() == [9, 8]


@pytest.mark.parametrize(
    ("text", "points", "attributes"),
    [
        ("1 2 3\n4 5 6\n", [[1, 2, 3], [4, 5, 6]], {}),
        ("1,2,3,9\r\n4;5;6;8", [[1, 2, 3], [4, 5, 6]], {"column_3": [9, 8]}),
        ("\n\n  1\t2 3  \n\n", [[1, 2, 3]], {}),
        ("X,Y,Z,Label\n1,2,3,7\n", [[1, 2, 3]], {"Label": [7]}),
        ("# z y x\n// comment\n1 2 3\n# 9 9 9\n4 5 6", [[1, 2, 3], [4, 5, 6]], {}),
        ("# x y z red green blue\n1 2 3 4 5 6\n", [[1, 2, 3]], {"colors": [[4, 5, 6]]}),
        ("x y z label\n# comment\n1 2 3 7\n", [[1, 2, 3]], {"label": [7]}),
        ("label z y x\n7 3 2 1\n", [[1, 2, 3]], {"label": [7]}),
        ("# 1,2;3\n1 , 2,\t3,\n4;5;6", [[1, 2, 3], [4, 5, 6]], {}),
        ("1e3 -2.5E-1 nan", [[1000, -0.25, np.nan]], {}),
        ("", np.empty((0, 3)), {}),
        ("# nothing\n", np.empty((0, 3)), {}),
    ],
)
def test_text_of_other_writers(tmp_path, text, points, attributes):
    path = tmp_path / "a.xyz"
    path.write_text(text, newline="")
    read = io.read(path)
    assert np.array_equal(read.points, points, equal_nan=True)
    assert {name: values.tolist() for name, values in read.attributes.items()} == attributes


def test_numpy_files_of_other_writers(tmp_path):
    points = np.arange(15).reshape(3, 5)
    np.save(tmp_path / "a.npy", points.astype(">i4"))
    read = io.read(tmp_path / "a.npy")
    assert np.array_equal(read.points, points[:, :3]) and read.points.dtype == np.float64
    assert read.attributes["column_4"].tolist() == [4, 9, 14]
    np.save(tmp_path / "b.npy", np.asfortranarray(points[:, :3].astype(np.float32)))
    assert np.array_equal(io.read(tmp_path / "b.npy").points, points[:, :3])
    np.savez_compressed(tmp_path / "c.npz", x=points[:, 0], y=points[:, 1], z=points[:, 2])
    assert np.array_equal(io.read(tmp_path / "c.npz").points, points[:, :3])


def test_the_first_bytes_decide_not_the_name(tmp_path):
    io.write(tmp_path / "a.ply", [[1.0, 2.0, 3.0]])
    (tmp_path / "a.ply").rename(tmp_path / "a.xyz")
    assert io.read(tmp_path / "a.xyz").points.tolist() == [[1, 2, 3]]


def test_all_formats_convert_into_each_other(tmp_path):
    points, attributes = cloud(100)
    io.write(tmp_path / "start.ply", points, attributes)
    last = tmp_path / "start.ply"
    for number, suffix in enumerate((".xyz", ".npy", ".npz", ".txt", ".ply")):
        path = tmp_path / f"{number}{suffix}"
        io.write(path, *io.read(last))
        last = path
    require_same(io.read(last), points, attributes, dtypes=False)


def test_lists_torch_and_odd_dtypes_are_written(tmp_path):
    path = tmp_path / "a.ply"
    io.write(
        path, [[1, 2, 3]], {"good": np.array([True]), "half": np.float16([0.5]), "n": [2**32 - 1]}
    )
    read = io.read(path)
    assert read.points.dtype == np.float64
    kinds = {name: values.dtype.name for name, values in read.attributes.items()}
    assert kinds == {"good": "uint8", "half": "float32", "n": "uint32"}
    torch = pytest.importorskip("torch")
    io.write(path, torch.ones(2, 3), {"label": torch.tensor([1, 2])})
    assert io.read(path).attributes["label"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda p: io.write(p / "a.obj", [[0, 0, 0]]),
            ValueError,
            "path: expected a name that ends in",
        ),
        (lambda p: io.write(7, [[0, 0, 0]]), TypeError, "path: expected a path, got int"),
        (lambda p: io.write(p / "a.ply", [[0, 0]]), ValueError, r"points: expected shape \(N, 3\)"),
        (
            lambda p: io.write(p / "a.ply", np.ones((1, 3), bool)),
            TypeError,
            "points: expected numbers",
        ),
        (
            lambda p: io.write(p / "a.ply", [[0, 0, 0]], {"a": [1, 2]}),
            ValueError,
            "expected 1 rows",
        ),
        (lambda p: io.write(p / "a.ply", [[0, 0, 0]], {"": [1]}), TypeError, "expected names"),
        (lambda p: io.write(p / "a.ply", [[0, 0, 0]], {"a b": [1]}), ValueError, "without blanks"),
        (lambda p: io.write(p / "a.ply", [[0, 0, 0]], {"x": [1]}), ValueError, "has a column 'x'"),
        (
            lambda p: io.write(p / "a.ply", [[0, 0, 0]], {"a": [[1, 2]]}),
            ValueError,
            "one number per point",
        ),
        (
            lambda p: io.write(p / "a.ply", [[0, 0, 0]], {"a": [2**40]}),
            ValueError,
            "integers of 32 bits",
        ),
        (lambda p: io.write(p / "a.npz", [[0, 0, 0]], {"points": [1]}), ValueError, "another name"),
        (lambda p: io.write(p / "a.npz", [[0, 0, 0]], encoding="ascii"), ValueError, "encoding"),
        (lambda p: io.write(p / "a.ply", [[0, 0, 0]], encoding="text"), ValueError, "encoding"),
        (
            lambda p: io.write_mesh(p / "a.ply", [[0, 0, 0]], [[0, 0, 1]]),
            ValueError,
            "in triangle 0",
        ),
        (lambda p: io.write_mesh(p / "a.ply", [[0, 0, 0]], [[0.0, 0, 0]]), ValueError, "integers"),
        (lambda p: io.write_mesh(p / "a.npz", [[0, 0, 0]], []), ValueError, "ends in .ply"),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_no_file(tmp_path, call, error, message):
    with pytest.raises(error, match=message):
        call(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_stays_if_writing_fails(tmp_path):
    io.write(tmp_path / "a.ply", [[1, 2, 3]])
    with pytest.raises(ValueError, match="32 bits"):
        io.write(tmp_path / "a.ply", [[4, 5, 6]], {"big": [2**40]})
    assert io.read(tmp_path / "a.ply").points.tolist() == [[1, 2, 3]]


def test_the_examples_in_docstrings_are_true():
    for module in (tensorhash.io, tensorhash.io._formats, tensorhash.io._mesh):
        failed, tried = doctest.testmod(module)
        assert failed == 0 and tried > 0


def test_results_of_a_grid_are_written_as_they_are(tmp_path):
    """Points, normals and colours; colours become bytes."""
    grid = VoxelBlockGrid(
        ("tsdf", "weight", "color"),
        ("float32",) * 3,
        (1, 1, 3),
        voxel_size=0.25,
        block_resolution=8,
    )
    points = np.random.default_rng(0).normal(size=(500, 3))
    colors = np.full((500, 3), 51, np.uint8)
    grid.integrate(points=points, origin=(0, 0, 9), colors=colors)
    cloud, mesh = grid.extract_point_cloud(0), grid.extract_triangle_mesh(0)
    io.write(tmp_path / "a.ply", cloud)
    io.write_mesh(tmp_path / "b.ply", mesh)
    got, surface = io.read(tmp_path / "a.ply"), io.read_mesh(tmp_path / "b.ply")
    assert np.array_equal(got.points, cloud.points) and len(got.points) > 0
    assert np.array_equal(surface.triangles, mesh.triangles) and len(surface.triangles) > 0
    assert np.array_equal(surface.attributes["normals"], mesh.vertex_normals)
    for one in (got, surface):
        assert one.attributes["colors"].dtype == np.uint8
        assert (one.attributes["colors"] == 51).all()
    io.write(tmp_path / "c.npz", got)
    io.write_mesh(tmp_path / "d.ply", surface)
    require_same(io.read(tmp_path / "c.npz"), *got)
    assert (tmp_path / "d.ply").read_bytes() == (tmp_path / "b.ply").read_bytes()


def test_a_cloud_brings_its_own_attributes(tmp_path):
    mesh = io.TriangleMesh(np.eye(3), np.int32([[0, 1, 2]]), {})
    with pytest.raises(TypeError, match="attributes: expected None, because points is a PointClo"):
        io.write(tmp_path / "a.ply", io.PointCloud(np.eye(3), {}), {"label": [1, 2, 3]})
    with pytest.raises(TypeError, match="triangles: expected None beside a mesh, got ndarray"):
        io.write_mesh(tmp_path / "a.ply", mesh, mesh.triangles)
    with pytest.raises(TypeError, match="triangles: expected rows of three vertices, got None"):
        io.write_mesh(tmp_path / "a.ply", np.eye(3))
    assert not list(tmp_path.iterdir())
