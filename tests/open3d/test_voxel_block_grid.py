"""VoxelBlockGrid of Open3D's wheel and ours on the same images."""

import numpy as np
import pytest

pytest.importorskip("open3d")

import open3d as o3d
import tsdf_scene

import tensorhash.core as our_core
from tensorhash import geometry

their_core = o3d.core
VOXEL = 0.02
COLUMNS = ("tsdf", "weight", "color")


def sort_rows(rows):
    return rows[np.lexsort(rows.T[::-1])]


class Pair:
    """Open3D's grid and ours, filled with the same images."""

    def __init__(self, dtype="uint16", stored="float32", resolution=8, images=3, colored=True):
        self.scale = 1000.0 if dtype == "uint16" else 1.0
        self.resolution = resolution
        names = COLUMNS[: 3 if colored else 2]
        types = ("float32", stored, stored)[: len(names)]
        shape = (names, types, (1, 1, 3)[: len(names)], VOXEL, resolution, 200)
        self.ours = geometry.VoxelBlockGrid(*shape)
        theirs = [getattr(their_core, t) for t in types]
        self.theirs = o3d.t.geometry.VoxelBlockGrid(
            names, theirs, [(1,), (1,), (3,)][: len(names)], VOXEL, resolution, 200
        )
        self.blocks = []
        for depth, color, extrinsic in tsdf_scene.frames(dtype)[:images]:
            self.add(depth, color if colored else None, extrinsic)

    def add(self, depth, color, extrinsic):
        image = o3d.t.geometry.Image(their_core.Tensor(depth))
        matrices = [their_core.Tensor(m) for m in (tsdf_scene.INTRINSIC, extrinsic)]
        numbers = (self.scale, 3.0, 6.0)
        their_blocks = self.theirs.compute_unique_block_coordinates(image, *matrices, *numbers)
        blocks = self.ours.compute_unique_block_coordinates(
            depth, tsdf_scene.INTRINSIC, extrinsic, *numbers
        )
        self.blocks.append((their_blocks, blocks))
        images, arrays = [image], [depth]
        if color is not None:
            images.append(o3d.t.geometry.Image(their_core.Tensor(color)))
            arrays.append(color)
        self.theirs.integrate(their_blocks, *images, *matrices, *numbers)
        self.ours.integrate(blocks, *arrays, tsdf_scene.INTRINSIC, extrinsic, *numbers)

    def values(self, name):
        """(ours, theirs) of an attribute, sorted by block."""
        both = []
        for grid in (self.ours, self.theirs):
            table = grid.hashmap()
            where = np.asarray(plain(table.active_buf_indices())).astype(np.int64)
            keys = np.asarray(plain(table.key_tensor()))[where]
            order = np.lexsort(keys.T[::-1])
            both.append(np.asarray(plain(grid.attribute(name)))[where][order])
        return both


def plain(array):
    return array.numpy() if hasattr(array, "numpy") else array


@pytest.fixture(scope="module", params=["uint16", "float32"])
def pair(request):
    return Pair(request.param)


def test_block_coordinates_of_depth_images_are_equal(pair):
    for theirs, ours in pair.blocks:
        np.testing.assert_array_equal(sort_rows(ours), sort_rows(theirs.numpy()))


def test_block_coordinates_of_clouds_are_equal():
    pair = Pair(images=0)
    points = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    cloud = o3d.t.geometry.PointCloud(their_core.Tensor(points))
    for factor in (2.0, 8.0, 13.5):
        theirs = pair.theirs.compute_unique_block_coordinates(cloud, factor)
        expected = sort_rows(theirs.numpy())
        for given in (points, cloud, geometry.SurfacePoints(points, points, None)):
            got = pair.ours.compute_unique_block_coordinates(given, factor)
            np.testing.assert_array_equal(sort_rows(got), expected)


@pytest.mark.parametrize(
    "options",
    [{}, {"dtype": "float32"}, {"stored": "uint16"}, {"colored": False}, {"resolution": 16}],
    ids=str,
)
def test_integration_gives_the_same_voxels(options):
    pair = Pair(**options)
    for name in COLUMNS[: 3 if options.get("colored", True) else 2]:
        ours, theirs = pair.values(name)
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        if name == "weight":
            np.testing.assert_array_equal(ours, theirs)
        scale = 255 if name == "color" else 1
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * scale)


def test_a_colour_camera_of_its_own():
    pair = Pair(images=0)
    depth, color, extrinsic = tsdf_scene.frames()[1]
    small = np.ascontiguousarray(color[::2, ::2])
    other = tsdf_scene.INTRINSIC * [[0.5], [0.5], [1]] + [[0, 0, -0.2], [0, 0, 0.3], [0, 0, 0]]
    numbers = (1000.0, 3.0, 6.0)
    matrices = (tsdf_scene.INTRINSIC, other, extrinsic)
    blocks = pair.ours.compute_unique_block_coordinates(
        depth, tsdf_scene.INTRINSIC, extrinsic, *numbers
    )
    images = [o3d.t.geometry.Image(their_core.Tensor(image)) for image in (depth, small)]
    pair.theirs.integrate(
        their_core.Tensor(blocks), *images, *(their_core.Tensor(m) for m in matrices), *numbers
    )
    pair.ours.integrate(blocks, depth, small, *matrices, *numbers)
    for name in COLUMNS:
        ours, theirs = pair.values(name)
        np.testing.assert_allclose(
            ours, theirs, rtol=0, atol=1e-5 * (255 if name == "color" else 1)
        )


def same_sets(ours, theirs, distance):
    """Rows of two arrays match one to one: returns the row of `theirs` of each of `ours`."""
    assert len(ours) == len(theirs)
    nearest = geometry.knn_search(theirs, ours, 1)
    match = nearest.indices
    assert nearest.distances.max(initial=0) <= distance
    assert len(np.unique(match)) == len(match)
    return match


@pytest.mark.parametrize("threshold", [0.0, 1.0, 2.0])
def test_points_are_equal_as_sets(pair, threshold):
    ours = pair.ours.extract_point_cloud(threshold)
    theirs = pair.theirs.extract_point_cloud(threshold)
    match = same_sets(ours.points, theirs.point.positions.numpy(), 1e-4 * VOXEL)
    assert len(match) > 5000
    np.testing.assert_allclose(ours.colors, theirs.point.colors.numpy()[match], atol=1e-4)
    normals = theirs.point.normals.numpy()[match]
    # At the border of the blocks Open3D keeps parts of the normal of another edge.
    assert (np.abs(ours.normals - normals).max(axis=1) < 1e-3).mean() > 0.98


def directed_edges(triangles):
    return np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])


def outlines(vertices, triangles, match):
    """The outline of the triangles of each cube: edges that occur in one direction only."""
    corners = np.floor(vertices[triangles].mean(axis=1) / VOXEL).astype(np.int64)
    edges = match[directed_edges(triangles)]
    rows = np.concatenate([np.tile(corners, (3, 1)), edges], axis=1)
    there = {tuple(row) for row in rows.tolist()}
    return {row for row in there if (*row[:3], row[4], row[3]) not in there}


@pytest.mark.parametrize("threshold", [0.0, 2.0])
def test_meshes_have_the_same_vertices_and_the_same_polygons(pair, threshold):
    ours = pair.ours.extract_triangle_mesh(threshold)
    theirs = pair.theirs.extract_triangle_mesh(threshold)
    positions = theirs.vertex.positions.numpy()
    match = same_sets(ours.vertices, positions, 1e-4 * VOXEL)
    triangles = theirs.triangle.indices.numpy()
    assert len(ours.triangles) == len(triangles) > 5000
    mine = outlines(ours.vertices, ours.triangles, match)
    other = outlines(positions, triangles, np.arange(len(positions)))
    # A polygon may be cut along another diagonal; its outline in the cube is the same.
    assert mine == other
    np.testing.assert_allclose(ours.vertex_colors, theirs.vertex.colors.numpy()[match], atol=1e-4)


RENDERINGS = (
    *("depth", "vertex", "normal", "color", "index", "mask"),
    *("interp_ratio", "interp_ratio_dx", "interp_ratio_dy", "interp_ratio_dz"),
)


def test_ray_casting_gives_the_same_images(pair):
    extrinsic = tsdf_scene.POSES[1]
    where = (tsdf_scene.INTRINSIC, extrinsic)
    size = (tsdf_scene.WIDTH, tsdf_scene.HEIGHT, list(RENDERINGS), 1000.0, 0.1, 3.0, 1.0, 6.0, 8)
    their_blocks = pair.blocks[1][0]
    for _ in range(2):  # Open3D's first call on a fresh grid returns zeros
        theirs = pair.theirs.ray_cast(their_blocks, *map(their_core.Tensor, where), *size)
    ours = pair.ours.ray_cast(pair.blocks[1][1], *where, *size)
    np.testing.assert_allclose(ours["range"], theirs["range"].numpy(), atol=1e-5)
    depth = ours["depth"]
    assert (depth > 0).mean() > 0.8
    tolerance = {"depth": 0.01, "vertex": 1e-5}
    for name in RENDERINGS:
        got, expected = ours[name], theirs[name].numpy()
        assert got.shape == expected.shape and got.dtype == expected.dtype, name
        if name == "index":
            continue  # buffer indices differ
        near = np.abs(got.astype(float) - expected) <= tolerance.get(name, 1e-3)
        # A ray through the border of two voxels can go either way.
        assert near.mean() > 0.999, name


def test_voxels_are_listed_alike(pair):
    ours = pair.ours
    theirs = pair.theirs
    where = np.array([3, 0], np.int32)
    np.testing.assert_array_equal(
        ours.voxel_indices(where), theirs.voxel_indices(their_core.Tensor(where)).numpy()
    )
    indices = ours.voxel_indices(where)
    coords = ours.voxel_coordinates(indices)
    keys = np.asarray(ours.hashmap().key_tensor())
    np.testing.assert_array_equal(coords, keys[indices[0]].T * ours.block_resolution + indices[1:])
    all_ours = ours.voxel_coordinates_and_flattened_indices()
    all_theirs = theirs.voxel_coordinates_and_flattened_indices()
    assert all_ours[1].shape == all_theirs[1].numpy().shape
    np.testing.assert_allclose(
        sort_rows(all_ours[0]), sort_rows(all_theirs[0].numpy()), rtol=0, atol=1e-6
    )


def test_files_go_both_ways(pair, tmp_path):
    path = str(tmp_path / "ours.npz")
    pair.ours.save(path)
    read = o3d.t.geometry.VoxelBlockGrid.load(path)
    assert read.hashmap().size() == pair.ours.hashmap().size()
    theirs = pair.ours.extract_point_cloud(1).points
    same_sets(read.extract_point_cloud(1).point.positions.numpy(), theirs, 1e-4 * VOXEL)
    path = str(tmp_path / "theirs.npz")
    pair.theirs.save(path)
    back = geometry.VoxelBlockGrid.load(path)
    assert back.voxel_size == pytest.approx(VOXEL) and back.block_resolution == pair.resolution
    expected = pair.theirs.extract_point_cloud(1).point.positions.numpy()
    same_sets(back.extract_point_cloud(1).points.numpy(), expected, 1e-4 * VOXEL)


class Theirs:
    """What a script imports: `import open3d as o3d`."""

    core = their_core
    grid = o3d.t.geometry.VoxelBlockGrid

    @staticmethod
    def image(array):
        return o3d.t.geometry.Image(their_core.Tensor(array))


class Ours:
    """The same names after the imports are changed."""

    core = our_core
    grid = geometry.VoxelBlockGrid

    @staticmethod
    def image(array):
        return our_core.Tensor(array)


def integrate_script(o3):
    """The calls of Open3D's example integrate.py."""
    o3c = o3.core
    device = o3c.Device("CPU:0")
    vbg = o3.grid(
        attr_names=("tsdf", "weight", "color"),
        attr_dtypes=(o3c.float32, o3c.float32, o3c.float32),
        attr_channels=((1), (1), (3)),
        voxel_size=3.0 / 128,
        block_resolution=16,
        block_count=500,
        device=device,
    )
    intrinsic = o3c.Tensor(tsdf_scene.INTRINSIC)
    for depth, color, pose in tsdf_scene.frames():
        depth, color = o3.image(depth).to(device), o3.image(color).to(device)
        extrinsic = o3c.Tensor(pose)
        coords = vbg.compute_unique_block_coordinates(depth, intrinsic, extrinsic, 1000.0, 3.0)
        vbg.integrate(coords, depth, color, intrinsic, extrinsic, 1000.0, 3.0)
    return vbg


def custom_script(o3):
    """The calls of Open3D's example integrate_custom.py: the update written by hand."""
    o3c = o3.core
    device = o3c.Device("CPU:0")
    types = (o3c.float32, o3c.float32)
    vbg = o3.grid(("tsdf", "weight"), types, ((1), (1)), 3.0 / 128, 8, 5000, device)
    trunc = 4 * 3.0 / 128
    intrinsic = o3c.Tensor(tsdf_scene.INTRINSIC)
    for image, _, pose in tsdf_scene.frames():
        depth, extrinsic = o3.image(image).to(device), o3c.Tensor(pose)
        coords = vbg.compute_unique_block_coordinates(depth, intrinsic, extrinsic, 1000.0, 3.0)
        vbg.hashmap().activate(coords)
        buf_indices, _masks = vbg.hashmap().find(coords)
        o3c.cuda.synchronize()
        voxel_coords, voxel_indices = vbg.voxel_coordinates_and_flattened_indices(buf_indices)
        extrinsic_dev = extrinsic.to(device, o3c.float32)
        xyz = extrinsic_dev[:3, :3] @ voxel_coords.T() + extrinsic_dev[:3, 3:]
        uvd = intrinsic.to(device, o3c.float32) @ xyz
        d = uvd[2]
        u = (uvd[0] / d).round().to(o3c.int64)
        v = (uvd[1] / d).round().to(o3c.int64)
        rows, columns = image.shape
        mask_proj = (d > 0) & (u >= 0) & (v >= 0) & (u < columns) & (v < rows)
        v_proj, u_proj, d_proj = v[mask_proj], u[mask_proj], d[mask_proj]
        readings = o3c.Tensor(image.astype(np.int32))[v_proj, u_proj].to(o3c.float32) / 1000.0
        sdf = readings - d_proj
        mask_inlier = (readings > 0) & (readings < 3.0) & (sdf >= -trunc)
        sdf[sdf >= trunc] = trunc
        sdf = sdf / trunc
        weight = vbg.attribute("weight").reshape((-1, 1))
        tsdf = vbg.attribute("tsdf").reshape((-1, 1))
        valid = voxel_indices[mask_proj][mask_inlier]
        w = weight[valid]
        wp = w + 1
        tsdf[valid] = (tsdf[valid] * w + sdf[mask_inlier].reshape(w.shape)) / wp
        weight[valid] = wp
    return vbg


@pytest.mark.parametrize("script", [integrate_script, custom_script])
def test_scripts_run_with_the_imports_changed(script):
    ours, theirs = script(Ours), script(Theirs)
    assert type(ours.hashmap()) is our_core.HashMap
    got = ours.extract_triangle_mesh(1.0)
    assert type(got.vertices) is our_core.Tensor
    expected = theirs.extract_triangle_mesh(1.0).vertex.positions.numpy()
    same_sets(got.vertices.numpy(), expected, 1e-4 * 3.0 / 128)
