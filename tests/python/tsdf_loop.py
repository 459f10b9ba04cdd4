"""TSDF integration with operators of `core` only: runs with Open3D's and with ours."""

import numpy as np

RESOLUTION = 8
VOXEL = 0.02
TRUNCATION = 0.08
HEIGHT, WIDTH = 24, 32


def camera():
    """(intrinsic, its inverse, [(world to camera, camera to world)]), made with + - * / only."""
    f, cx, cy = 30.0, 15.5, 11.5
    intrinsic = np.array([[f, 0, cx], [0, f, cy], [0, 0, 1]])
    inverse = np.array([[1 / f, 0, -cx / f], [0, 1 / f, -cy / f], [0, 0, 1]])
    poses = []
    for t in (0.0, 0.0625, -0.078125):
        cosine, sine = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
        there, back = np.eye(4), np.eye(4)
        there[:3, :3] = [[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]]
        there[:3, 3] = [t / 3, -t / 5, 0.05 * t]
        back[:3, :3] = there[:3, :3].T
        x, y, z = there[:3, 3]
        back[:3, 3] = [sine * z - cosine * x, -y, -sine * x - cosine * z]
        poses.append((there, back))
    return intrinsic, inverse, poses


def depth_images():
    """Three float32 depth images of a wavy wall with a hole."""
    v, u = np.mgrid[0:HEIGHT, 0:WIDTH]
    images = []
    for frame in range(3):
        # Only + - * /, for the same bits on every machine.
        depth = 1.0 + ((u * 7 + v * 3 + frame * 5) % 11) / 50 + (u - v) * 0.004
        depth[5:9, 10:14] = 0
        images.append(depth.astype(np.float32))
    return images


def frustum_blocks(o3c, depth, inverse, back):
    """Int32 [N, 3]: the blocks with a measured point, with repetitions."""
    v, u = (depth > 0).nonzero()
    d = depth[v, u].reshape((1, -1))
    pixels = o3c.concatenate(
        (
            u.to(depth.dtype).reshape((1, -1)) * d,
            v.to(depth.dtype).reshape((1, -1)) * d,
            d,
        ),
        0,
    )
    points = (back[:3, :3] @ (inverse @ pixels) + back[:3, 3:]).T()
    return (points / (VOXEL * RESOLUTION)).floor().to(o3c.int32).contiguous()


def voxels_of(o3c, grid, places, dtype):
    """([N, 3] positions, [N] flat indices) of all voxels of the blocks at `places`."""
    cube = RESOLUTION**3
    inside = o3c.Tensor.arange(0, cube, 1, o3c.int64)
    x = inside / (RESOLUTION * RESOLUTION)
    y = inside / RESOLUTION - x * RESOLUTION
    z = inside - (inside / RESOLUTION) * RESOLUTION
    corner = grid.key_tensor()[places].to(o3c.int64).reshape((-1, 1, 3)) * RESOLUTION
    local = o3c.concatenate((x.reshape((-1, 1)), y.reshape((-1, 1)), z.reshape((-1, 1))), 1)
    cells = (corner + local.reshape((1, -1, 3))).reshape((-1, 3))
    flat = (places.reshape((-1, 1)) * cube + inside.reshape((1, -1))).reshape((-1,))
    return cells.to(dtype) * VOXEL, flat


def integrate(o3c, grid, depth, intrinsic, inverse, there, back):
    """Integrates one depth image into the grid, in place."""
    blocks = frustum_blocks(o3c, depth, inverse, back)
    grid.activate(blocks)
    indices, found = grid.find(blocks)
    places = np.unique(indices[found].numpy()).astype(np.int64)
    points, flat = voxels_of(o3c, grid, o3c.Tensor(places), depth.dtype)

    view = there[:3, :3] @ points.T() + there[:3, 3:]
    image = intrinsic @ view
    d = image[2]
    u = (image[0] / d).round().to(o3c.int64)
    v = (image[1] / d).round().to(o3c.int64)
    seen = (d > 0) & (u >= 0) & (v >= 0) & (u < WIDTH) & (v < HEIGHT)

    measured = depth[v[seen], u[seen]]
    distance = measured - d[seen]
    near = (measured > 0) & (distance >= -TRUNCATION)
    distance = distance[near]
    distance[distance > TRUNCATION] = TRUNCATION
    distance /= TRUNCATION

    rows = flat[seen][near]
    weight = grid.value_tensor(1).reshape((-1, 1))
    tsdf = grid.value_tensor(0).reshape((-1, 1))
    before = weight[rows]
    after = before + 1
    tsdf[rows] = (before * tsdf[rows] + distance.reshape((-1, 1))) / after
    weight[rows] = after


def run(o3c, dtype_name):
    """(keys, tsdf, weight) of the grid after three images, sorted by key, as NumPy arrays."""
    dtype = getattr(o3c, dtype_name)
    shape = (RESOLUTION, RESOLUTION, RESOLUTION, 1)
    grid = o3c.HashMap(1000, o3c.int32, (3,), (dtype, dtype), (shape, shape), o3c.Device("CPU:0"))
    intrinsic, inverse, poses = camera()
    for depth, (there, back) in zip(depth_images(), poses, strict=True):
        arrays = (depth, intrinsic, inverse, there, back)
        integrate(o3c, grid, *(o3c.Tensor(array).to(dtype) for array in arrays))
    places = grid.active_buf_indices().to(o3c.int64)
    keys = grid.key_tensor()[places].numpy()
    order = np.lexsort(keys.T[::-1])
    values = [grid.value_tensor(column)[places].numpy()[order] for column in (0, 1)]
    return keys[order], *values
