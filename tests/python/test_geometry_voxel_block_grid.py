"""VoxelBlockGrid against loops in plain NumPy, to the last bit.

Over 400 lines: one file tests one class, with frames and helpers that all tests share.
"""

import copy
import pickle

import numpy as np
import pytest
import tsdf_scene
from tsdf_oracle import Volume, touched_by_depth, touched_by_points

import tensorhash
from tensorhash.geometry import VoxelBlockGrid

VOXEL, SIDE = 0.09, 4
TSDF = (("tsdf", "weight", "color"), ("float32", "float32", "float32"), (1, 1, 3))
#: A camera of few pixels, so that the loops are quick.
INTRINSIC = np.array([[20.0, 0, 11.3], [0, 20.0, 8.6], [0, 0, 1]])


def frame(seed):
    """(depth uint16 [17, 24], color uint8, extrinsic): a tilted wall with a hole."""
    rng = np.random.default_rng(seed)
    v, u = np.mgrid[0:17, 0:24]
    depth = (1000 + 12 * u - 9 * v + rng.integers(0, 60, u.shape)).astype(np.uint16)
    depth[3:6, 4:9] = 0
    depth[8, 8] = 5000
    color = rng.integers(0, 256, (17, 24, 3)).astype(np.uint8)
    return depth, color, tsdf_scene.pose(0.1 * seed, (0.02, -0.03, 0.05 * seed))


def grid(**options):
    return VoxelBlockGrid(*TSDF, VOXEL, SIDE, **{"block_count": 50, **options})


def both(frames=2):
    """(a grid, the same volume by loops)."""
    ours, volume = grid(), Volume(VOXEL, SIDE)
    for seed in range(frames):
        depth, color, extrinsic = frame(seed)
        blocks = ours.compute_unique_block_coordinates(depth, INTRINSIC, extrinsic, 1000, 3, 3)
        ours.integrate(blocks, depth, color, INTRINSIC, extrinsic, 1000, 3, 3)
        volume.integrate(blocks.tolist(), depth, color, INTRINSIC, extrinsic, 1000, 3, 3)
    return ours, volume


@pytest.fixture(scope="module")
def pair():
    return both()


def same_voxels(ours, volume):
    assert ours.hashmap().keys().tolist() == [list(block) for block in volume.blocks]
    live = ours.hashmap().active_buf_indices()
    for name in ("tsdf", "weight", "color"):
        np.testing.assert_array_equal(ours.attribute(name)[live], volume.arrays(name), name)


@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_a_depth_image(seed):
    depth, _, extrinsic = frame(seed)
    for truncation in (1.0, 4.5):
        numbers = (1000.0, 1.15, truncation)
        got = grid().compute_unique_block_coordinates(depth, INTRINSIC, extrinsic, *numbers)
        assert got.dtype == np.int32
        expected = touched_by_depth(depth, INTRINSIC, extrinsic, VOXEL, SIDE, *numbers)
        assert got.tolist() == expected
        metres = (depth / np.float32(1000)).astype(np.float32)[..., None]
        again = grid().compute_unique_block_coordinates(
            metres, INTRINSIC, extrinsic, depth_scale=1, depth_max=1.15,
            trunc_voxel_multiplier=truncation,
        )  # fmt: skip
        assert again.tolist() == expected


def test_blocks_of_points():
    points = np.random.default_rng(0).normal(size=(60, 3))
    for truncation in (0.5, 5.0):
        got = grid().compute_unique_block_coordinates(points, truncation)
        assert got.tolist() == touched_by_points(points, VOXEL, SIDE, truncation)


def test_integration_of_images(pair):
    same_voxels(*pair)


def test_integration_without_colours_and_with_a_colour_camera():
    depth, color, extrinsic = frame(1)
    ours, volume = grid(), Volume(VOXEL, SIDE)
    blocks = ours.compute_unique_block_coordinates(depth, INTRINSIC, extrinsic)
    ours.integrate(blocks, depth, INTRINSIC, extrinsic)
    volume.integrate(blocks.tolist(), depth, None, INTRINSIC, extrinsic, 1000, 3, 8)
    same_voxels(ours, volume)
    # A colour camera of twice the size that sees the same.
    double = np.repeat(np.repeat(color, 2, axis=0), 2, axis=1)
    twice = INTRINSIC * [[2], [2], [1]] + [[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]]
    ours.integrate(blocks, depth, double, INTRINSIC, twice, extrinsic)
    once = grid()
    once.integrate(blocks, depth, INTRINSIC, extrinsic)
    once.integrate(blocks, depth=depth, color=color, intrinsic=INTRINSIC, extrinsic=extrinsic)
    np.testing.assert_array_equal(ours.attribute("color"), once.attribute("color"))


def test_a_block_that_comes_twice_counts_once_and_new_blocks_grow_the_map():
    depth, color, extrinsic = frame(0)
    ours, plain = grid(block_count=2), grid()
    blocks = ours.compute_unique_block_coordinates(depth, INTRINSIC, extrinsic)
    ours.integrate(np.concatenate([blocks, blocks[::-1]]), depth, color, INTRINSIC, extrinsic)
    plain.integrate(blocks, depth, color, INTRINSIC, extrinsic)
    size = len(blocks)
    assert ours.hashmap().size() == size > 2
    for name in ("tsdf", "weight", "color"):
        np.testing.assert_array_equal(ours.attribute(name)[:size], plain.attribute(name)[:size])


def test_integers_hold_weights_and_colours():
    depth, color, extrinsic = frame(0)
    small = VoxelBlockGrid(TSDF[0], ("float32", "uint16", "uint16"), (1, 1, 3), VOXEL, SIDE)
    wide = grid()
    blocks = small.compute_unique_block_coordinates(depth, INTRINSIC, extrinsic)
    for one in (small, wide):
        one.integrate(blocks, depth, color, INTRINSIC, extrinsic)
    assert small.attribute("weight").dtype == np.uint16
    for name in ("weight", "color"):
        live = slice(len(blocks))
        np.testing.assert_array_equal(small.attribute(name)[live], wide.attribute(name)[live])


def scan(seed):
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(150, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * rng.uniform(0.1, 1.5, (150, 1)), rng.integers(0, 256, (150, 3))


def test_integration_of_scans():
    ours, volume = grid(), Volume(VOXEL, SIDE)
    for seed, origin in enumerate(([0.0, 0.0, 0.0], [0.2, -0.1, 0.05])):
        points, colors = scan(seed)
        truncation = 3.0 - 0.5 * seed
        ours.integrate(
            points=points, origin=origin, colors=colors, trunc_voxel_multiplier=truncation
        )
        volume.integrate_scan(points, origin, truncation, colors)
    same_voxels(ours, volume)


def test_scans_can_be_limited_to_blocks():
    points, _ = scan(3)
    ours, volume = grid(), Volume(VOXEL, SIDE)
    only = [[0, 0, 0], [1, 0, 0], [-1, -1, 0]]
    ours.integrate(np.int32(only), points=points, origin=(0, 0, 0))
    volume.integrate_scan(points, (0, 0, 0), 8.0, None, only)
    same_voxels(ours, volume)


@pytest.mark.parametrize("threshold", [0, 1])
def test_points_of_the_surface(pair, threshold):
    ours, volume = pair
    cloud = ours.extract_point_cloud(threshold)
    expected = volume.crossings(threshold)
    assert len(expected) > 100
    np.testing.assert_array_equal(cloud.points, np.array([point for point, _ in expected]))
    np.testing.assert_array_equal(cloud.colors, np.array([color for _, color in expected]))
    lengths = np.linalg.norm(cloud.normals, axis=1)
    assert np.all(lengths < 1.0001)


def field(distance, side=4, blocks=2):
    """A grid of blocks^3 blocks with the given distances [z, y, x], all observed."""
    made = VoxelBlockGrid(*TSDF, 1.0, side, blocks**3)
    keys = np.stack(np.meshgrid(*[np.arange(blocks)] * 3, indexing="ij"), -1).reshape(-1, 3)
    indices, _ = made.hashmap().activate(keys.astype(np.int32))
    made.attribute("weight")[indices] = 1
    for index, (x, y, z) in zip(indices, keys * side, strict=True):
        cut = distance[z : z + side, y : y + side, x : x + side]
        made.attribute("tsdf")[index] = cut[..., None]
    return made


def winding(mesh, points):
    """How often the mesh surrounds each point: the sum of solid angles / 4 pi."""
    a, b, c = (mesh.vertices[mesh.triangles[:, i]].astype(float) for i in range(3))
    found = []
    for point in points:
        p, q, r = a - point, b - point, c - point
        x, y, z = (np.linalg.norm(v, axis=1) for v in (p, q, r))
        volume = np.einsum("ij,ij->i", p, np.cross(q, r))
        base = (
            x * y * z
            + np.einsum("ij,ij->i", p, q) * z
            + np.einsum("ij,ij->i", q, r) * x
            + np.einsum("ij,ij->i", r, p) * y
        )
        found.append(2 * np.arctan2(volume, base).sum() / (4 * np.pi))
    return np.array(found)


@pytest.mark.parametrize("side,blocks", [(4, 2), (1, 8), (8, 1), (3, 3)])
def test_meshes_of_random_fields_separate_negative_voxels_from_positive_ones(side, blocks):
    rng = np.random.default_rng(side)
    extent = side * blocks
    distance = rng.uniform(0.05, 1, (extent,) * 3) * rng.choice([-1, 1], (extent,) * 3)
    border = np.ones_like(distance, bool)
    border[1:-1, 1:-1, 1:-1] = False
    distance[border] = np.abs(distance[border])  # so that the mesh is closed
    mesh = field(distance.astype(np.float32), side, blocks).extract_triangle_mesh(0)
    edges = np.concatenate([mesh.triangles[:, [0, 1]], mesh.triangles[:, [1, 2]],
                            mesh.triangles[:, [2, 0]]])  # fmt: skip
    there, back = (np.unique(e, axis=0, return_counts=True) for e in (edges, edges[:, ::-1]))
    np.testing.assert_array_equal(there[0], back[0])  # every edge runs both ways: no hole
    np.testing.assert_array_equal(there[1], back[1])
    z, y, x = np.nonzero(np.ones_like(distance))
    inside = winding(mesh, np.stack([x, y, z], axis=1).astype(float))
    np.testing.assert_allclose(inside, (distance[z, y, x] < 0).astype(float), atol=1e-6)


def test_all_256_cubes_occur_in_a_random_field():
    rng = np.random.default_rng(0)
    negative = rng.choice([False, True], (24, 24, 24))
    case = np.zeros((23, 23, 23), int)
    for corner in range(8):
        x, y, z = corner & 1, corner >> 1 & 1, corner >> 2 & 1
        case |= negative[z : z + 23, y : y + 23, x : x + 23].astype(int) << corner
    assert len(np.unique(case)) == 256
    distance = np.where(negative, -0.5, 0.5).astype(np.float32)
    mesh = field(distance, 8, 3).extract_triangle_mesh(0)
    # Each crossing of an edge is one vertex, and all of them are used.
    assert len(mesh.vertices) == sum((np.diff(negative, axis=axis) != 0).sum() for axis in range(3))
    assert len(np.unique(mesh.triangles)) == len(mesh.vertices)


def test_a_ball_is_round():
    z, y, x = np.mgrid[0:24, 0:24, 0:24] - 11.5
    distance = np.sqrt(x * x + y * y + z * z) - 7.3
    mesh = field((distance / 24).astype(np.float32), 8, 3).extract_triangle_mesh(0)
    middle = mesh.vertices - 11.5
    np.testing.assert_allclose(np.linalg.norm(middle, axis=1), 7.3, atol=0.05)
    outward = middle / np.linalg.norm(middle, axis=1, keepdims=True)
    assert (mesh.vertex_normals * outward).sum(axis=1).min() > 0.99
    vertices, edges, faces = len(mesh.vertices), 3 * len(mesh.triangles) // 2, len(mesh.triangles)
    assert vertices - edges + faces == 2  # Euler: one ball without handles
    a, b, c = (mesh.vertices[mesh.triangles[:, i]] for i in range(3))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6
    assert abs(volume / (4 / 3 * np.pi * 7.3**3) - 1) < 0.02


def room(threads=None):
    """A grid with the images of the scene."""
    if threads:
        tensorhash.set_num_threads(threads)
    made = VoxelBlockGrid(*TSDF, 0.03, 8, 100)
    for depth, color, extrinsic in tsdf_scene.frames():
        where = (tsdf_scene.INTRINSIC, extrinsic)
        blocks = made.compute_unique_block_coordinates(depth, *where)
        made.integrate(blocks, depth, color, *where)
    return made


NAMES = (
    *("depth", "vertex", "normal", "color", "index", "mask"),
    *("interp_ratio", "interp_ratio_dx", "interp_ratio_dy", "interp_ratio_dz"),
)


def test_ray_casting_shows_what_was_integrated():
    made = room()
    extrinsic = tsdf_scene.POSES[1]
    where = (made.hashmap().keys(), tsdf_scene.INTRINSIC, extrinsic)
    views = made.ray_cast(*where, 157, 115, NAMES, weight_threshold=1)
    expected = tsdf_scene.depth_of(extrinsic)[:115, :157]
    depth = views["depth"][..., 0] / 1000
    seen = (depth > 0) & (expected > 0)
    assert seen.mean() > 0.8
    assert np.median(np.abs(depth - expected)[seen]) < 0.03  # a voxel
    x = (np.arange(157) - tsdf_scene.INTRINSIC[0, 2]) / tsdf_scene.INTRINSIC[0, 0]
    np.testing.assert_allclose(views["vertex"][..., 2], depth, atol=1e-5)
    np.testing.assert_allclose(views["vertex"][..., 0], depth * x, atol=1e-5)
    # Shares of the eight voxels interpolate the colour.
    mask, shares = views["mask"], views["interp_ratio"]
    colors = made.attribute("color").reshape(-1, 3)[views["index"]]
    mixed = (shares[..., None] * colors * mask[..., None]).sum(axis=2)
    total = np.maximum(shares.sum(axis=2), 1e-9)[..., None]
    np.testing.assert_allclose(views["color"], mixed / total / 255, atol=1e-5)
    whole = mask.all(axis=2)
    np.testing.assert_allclose(shares.sum(axis=2)[whole], 1, atol=1e-5)
    lengths = np.linalg.norm(views["normal"], axis=2)[whole]
    assert (np.abs(lengths - 1) < 1e-5).mean() > 0.999  # 0 where the eight voxels are alike
    for name in ("interp_ratio_dx", "interp_ratio_dy", "interp_ratio_dz"):
        np.testing.assert_allclose(views[name].sum(axis=2)[whole], 0, atol=1e-5)
    assert views["range"].shape == (15, 20, 2)


def everything(made):
    """All results of a grid, as bytes."""
    cloud, mesh = made.extract_point_cloud(1), made.extract_triangle_mesh(0)
    views = made.ray_cast(
        made.hashmap().keys(), tsdf_scene.INTRINSIC, tsdf_scene.POSES[2], 160, 120, NAMES
    )
    voxels = made.extract_voxels(1)
    arrays = [made.hashmap().keys(), *made.hashmap().value_tensors(), *cloud, *mesh]
    arrays += [*views.values(), *voxels[:2], *voxels.attributes.values()]
    arrays += [made.voxel_indices(), *made.voxel_coordinates_and_flattened_indices()]
    return [np.asarray(array).tobytes() for array in arrays]


def test_the_same_bits_on_any_number_of_threads():
    points = np.random.default_rng(4).normal(size=(4000, 3))
    results = []
    for threads in (1, 2, 5):
        made = room(threads)
        made.integrate(points=points, origin=(0.1, 0.2, 0.3))
        results.append(everything(made))
    assert results[0] == results[1] == results[2]


def test_all_voxels_can_be_listed(pair):
    ours, volume = pair
    for threshold in (-1, 0, 1):
        voxels = ours.extract_voxels(threshold)
        expected = [
            (v, volume.get(v))
            for block in volume.blocks
            for v in volume.voxels(block)
            if volume.get(v)[1] > threshold
        ]
        assert voxels.coords.tolist() == [list(v) for v, _ in expected]
        for at, name in enumerate(("tsdf", "weight")):
            assert voxels.attributes[name].ravel().tolist() == [v[at] for _, v in expected]
        scaled = voxels.coords.astype(np.float32) * np.float32(VOXEL)
        np.testing.assert_array_equal(voxels.points, scaled)


def test_indices_lead_to_voxels(pair):
    ours, volume = pair
    indices = ours.voxel_indices()
    coords = ours.voxel_coordinates(indices).T
    listed = [list(v) for block in volume.blocks for v in volume.voxels(block)]
    assert coords.tolist() == listed
    points, flattened = ours.voxel_coordinates_and_flattened_indices()
    np.testing.assert_array_equal(points, np.array(listed, np.float32) * np.float32(VOXEL))
    buf, x, y, z = indices
    by_four = ours.attribute("tsdf")[buf, z, y, x]
    np.testing.assert_array_equal(by_four, ours.attribute("tsdf").reshape(-1, 1)[flattened])
    some = np.array([2, 0])
    assert ours.voxel_indices(some)[0].tolist() == [2] * SIDE**3 + [0] * SIDE**3


def test_copies_are_independent_and_reset_empties_the_grid():
    ours = both(1)[0]
    before = [array.copy() for array in ours.hashmap().value_tensors()]
    copies = [ours.to("cpu", copy=True), ours.clone(), copy.deepcopy(ours)]
    copies.append(pickle.loads(pickle.dumps(ours)))
    assert ours.to("cpu") is ours and ours.cpu() is ours
    capacity = ours.hashmap().capacity()
    ours.reset()
    assert ours.hashmap().size() == 0 and ours.hashmap().capacity() == capacity
    assert len(ours.extract_triangle_mesh(0).vertices) == 0
    for one in copies:
        assert one.hashmap().size() > 0
        for got, expected in zip(one.hashmap().value_tensors(), before, strict=True):
            np.testing.assert_array_equal(got, expected)
        assert one.voxel_size == VOXEL and one.block_resolution == SIDE
    # A recycled block is clean.
    depth, color, extrinsic = frame(0)
    blocks = ours.compute_unique_block_coordinates(depth, INTRINSIC, extrinsic, 1000, 3, 3)
    ours.integrate(blocks, depth, color, INTRINSIC, extrinsic, 1000, 3, 3)
    np.testing.assert_array_equal(ours.attribute("tsdf"), before[0])


def test_files(tmp_path):
    ours = both(1)[0]
    path = ours.save(tmp_path / "grid")
    assert path == str(tmp_path / "grid.npz")
    back = VoxelBlockGrid.load(path)
    assert back.voxel_size == np.float32(VOXEL) and back.block_resolution == SIDE
    for name in TSDF[0]:
        read = back.attribute(name).numpy()
        np.testing.assert_array_equal(read, ours.attribute(name)[: len(read)])
    expected = ours.extract_triangle_mesh(0)
    np.testing.assert_array_equal(back.extract_triangle_mesh(0).triangles.numpy(), expected[1])
    empty = VoxelBlockGrid.load(grid().save(tmp_path / "empty.npz"))
    assert empty.hashmap().size() == 0
    tensorhash.HashMap(3, "int32", (3,), "float32", (1,)).save(str(tmp_path / "map.npz"))
    with pytest.raises(ValueError, match="expected an array 'voxel_size', got none"):
        VoxelBlockGrid.load(tmp_path / "map.npz")
    with pytest.raises(ValueError, match=r"file_name: expected a name that ends in '\.npz'"):
        ours.save(tmp_path / "grid.thash")


def test_empty_is_ordinary():
    ours = grid()
    nothing = np.zeros((16, 24), np.uint16)
    blocks = ours.compute_unique_block_coordinates(nothing, INTRINSIC, np.eye(4))
    assert blocks.shape == (0, 3) and blocks.dtype == np.int32
    ours.integrate(blocks, nothing, INTRINSIC, np.eye(4))
    ours.integrate(points=np.empty((0, 3)), origin=(0, 0, 0))
    assert ours.compute_unique_block_coordinates(np.empty((0, 3))).shape == (0, 3)
    assert ours.extract_point_cloud().points.shape == (0, 3)
    assert ours.extract_triangle_mesh().triangles.shape == (0, 3)
    assert ours.extract_voxels().coords.shape == (0, 3)
    assert ours.voxel_indices().shape == (4, 0)
    views = ours.ray_cast(blocks, INTRINSIC, np.eye(4), 24, 17)
    assert not views["depth"].any() and views["color"].shape == (17, 24, 3)


def test_depth_that_is_no_number_is_no_measurement():
    depth, _, extrinsic = frame(0)
    metres = depth.astype(np.float32)
    metres[depth == 0] = np.nan
    metres[depth == 5000] = np.inf
    plain, odd = grid(), grid()
    blocks = plain.compute_unique_block_coordinates(depth, INTRINSIC, extrinsic)
    again = odd.compute_unique_block_coordinates(metres, INTRINSIC, extrinsic)
    np.testing.assert_array_equal(blocks, again)
    plain.integrate(blocks, depth, INTRINSIC, extrinsic)
    odd.integrate(blocks, metres, INTRINSIC, extrinsic)
    np.testing.assert_array_equal(plain.attribute("tsdf"), odd.attribute("tsdf"))


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "CUDA:0"])
def test_other_devices_are_refused(device):
    for call in (lambda: grid(device=device), lambda: grid().to(device), lambda: grid().cuda()):
        with pytest.raises(RuntimeError, match=r"device: expected the CPU, .*\.cpu\(\)"):
            call()


def test_results_come_in_the_framework_of_the_dtypes():
    torch = pytest.importorskip("torch")
    depth, color, extrinsic = frame(0)
    depth, color, extrinsic = map(torch.from_numpy, (depth.astype(np.int32), color, extrinsic))
    kinds = (torch.float32, torch.float32, torch.float32)
    ours = VoxelBlockGrid(TSDF[0], kinds, TSDF[2], VOXEL, SIDE)
    where = (torch.from_numpy(INTRINSIC), extrinsic)
    blocks = ours.compute_unique_block_coordinates(depth, *where)
    ours.integrate(blocks, depth, color, *where)
    mesh = ours.extract_triangle_mesh(0)
    assert isinstance(blocks, torch.Tensor) and isinstance(mesh.vertices, torch.Tensor)


def test_a_call_that_raises_changes_nothing():
    depth, _, extrinsic = frame(0)
    ours = grid()
    blocks = ours.compute_unique_block_coordinates(depth, INTRINSIC, extrinsic)
    where = (INTRINSIC, extrinsic)
    bad = [
        (ValueError, "color: expected shape", lambda: ours.integrate(blocks, depth, depth, *where)),
        (ValueError, "extrinsic: expected shape", lambda: ours.integrate(
            blocks, depth, INTRINSIC, np.eye(3))),
        (TypeError, "block_coords: expected int32, got int64", lambda: ours.integrate(
            blocks.astype(np.int64), depth, *where)),
        (ValueError, "depth_max: expected a positive", lambda: ours.integrate(
            blocks, depth, *where, 1000, -1)),
        (TypeError, "extrinsic: expected an array", lambda: ours.integrate(blocks, depth, INTRINSIC)),
        (ValueError, "points: expected points away from the origin .* row 1", lambda: ours.integrate(
            points=[[1.0, 0, 0], [0, 0, 0]], origin=(0, 0, 0))),
        (ValueError, "points: ", lambda: ours.integrate(
            points=[[np.nan, 0, 0]], origin=(0, 0, 0))),
        (ValueError, "origin: expected 3 numbers, got 2", lambda: ours.integrate(
            points=[[1.0, 0, 0]], origin=(0, 0))),
        (TypeError, "integrate: expected points=, origin=", lambda: ours.integrate(points=[[1.0]])),
        (ValueError, "colors: expected shape", lambda: ours.integrate(
            points=[[1.0, 0, 0]], origin=(0, 0, 0), colors=[[1, 2]])),
        (ValueError, "voxel_size: expected blocks .* int32", lambda: ours.integrate(
            points=[[1e12, 0, 0]], origin=(0, 0, 0))),
        (TypeError, "integrate: expected some of depth", lambda: ours.integrate(
            blocks, depth, *where, speed=3)),
        (ValueError, "render_attributes: expected some of depth", lambda: ours.ray_cast(
            blocks, *where, 10, 10, ["deep"])),
    ]  # fmt: skip
    for error, match, call in bad:
        with pytest.raises(error, match=match):
            call()
        assert ours.hashmap().size() == 0 and ours.hashmap().capacity() == 50


def test_a_grid_without_attributes_is_for_distances():
    grid = VoxelBlockGrid(voxel_size=0.5, block_resolution=4)
    assert repr(grid) == "VoxelBlockGrid(tsdf, weight; 0 blocks of 4^3 voxels of 0.5)"
    grid.integrate(points=[[0.0, 0.0, 3.0]], origin=(0, 0, 0))
    assert len(grid.extract_voxels().coords) > 0


def test_arguments_of_the_constructor_are_named():
    cases = [
        (
            ValueError,
            "attr_dtypes: expected 2, one per name, got 1",
            (["a", "b"], ["int8"], [1, 1]),
        ),
        (ValueError, "attr_channels: expected 1, one per name", (["a"], ["int8"], [1, 1])),
        (ValueError, "attr_names: expected different names", (["a", "a"], ["int8"] * 2, [1, 1])),
        (TypeError, "attr_names: expected a list of names", ("ab", ["int8"], [1])),
        (ValueError, "voxel_size: expected a positive float32", (["a"], ["int8"], [1], 0.0)),
        (ValueError, "block_resolution: expected 1 to 256", (["a"], ["int8"], [1], 1.0, 0)),
    ]
    for error, match, arguments in cases:
        with pytest.raises(error, match=match):
            VoxelBlockGrid(*arguments)
    plain = VoxelBlockGrid(["a"], ["int8"], [1], block_count=5)
    with pytest.raises(ValueError, match="expected an attribute 'tsdf' in the grid, got none"):
        plain.extract_point_cloud()
    with pytest.raises(ValueError, match="attribute_name: expected one of a, got 'b'"):
        plain.attribute("b")
    wrong = VoxelBlockGrid(("tsdf", "weight"), ("float32", "int64"), (1, 1), block_count=5)
    with pytest.raises(
        TypeError, match="attribute 'weight': expected float32 or uint16, got int64"
    ):
        wrong.extract_point_cloud()
