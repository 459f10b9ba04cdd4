"""Images of a made-up room, for the tests of VoxelBlockGrid: a ball before a wavy wall."""

import numpy as np

HEIGHT, WIDTH = 120, 160
INTRINSIC = np.array([[130.0, 0, 79.5], [0, 130.0, 59.5], [0, 0, 1]])


def pose(angle, shift):
    """The extrinsic of a camera: from the world to the camera."""
    matrix = np.eye(4)
    c, s = np.cos(angle), np.sin(angle)
    matrix[:3, :3] = [[c, 0, s], [0, 1, 0], [-s, 0, c]]
    matrix[:3, 3] = shift
    return matrix


POSES = [pose(0.0, (0, 0, 0)), pose(0.12, (0.05, -0.02, 0.1)), pose(-0.1, (-0.1, 0.03, 0.04))]


def rays(extrinsic, height=HEIGHT, width=WIDTH, intrinsic=INTRINSIC):
    """(origin [3], directions [H, W, 3] with depth 1) of the pixels, in the world."""
    v, u = np.mgrid[0:height, 0:width]
    x = (u - intrinsic[0, 2]) / intrinsic[0, 0]
    y = (v - intrinsic[1, 2]) / intrinsic[1, 1]
    back = np.linalg.inv(extrinsic)
    directions = np.stack([x, y, np.ones_like(x)], axis=-1) @ back[:3, :3].T
    return back[:3, 3], directions


def depth_of(extrinsic):
    """float64 [H, W]: metres along the axis of the camera; 0 in a hole."""
    origin, directions = rays(extrinsic)
    x, y = (origin[i] + 2.0 * directions[..., i] / directions[..., 2] for i in (0, 1))
    wall = (2.0 + 0.05 * np.sin(4 * x) * np.cos(3 * y) - origin[2]) / directions[..., 2]
    center, radius = np.array([0.1, 0.05, 1.4]), 0.35
    a = (directions**2).sum(-1)
    b = directions @ (origin - center)
    c = ((origin - center) ** 2).sum() - radius**2
    inside = b * b - a * c
    ball = np.where(inside > 0, (-b - np.sqrt(np.maximum(inside, 0))) / a, np.inf)
    depth = np.minimum(wall, ball)
    depth[10:20, 20:40] = 0
    return depth


def color_of(extrinsic):
    """uint8 [H, W, 3]"""
    depth = depth_of(extrinsic)
    v, u = np.mgrid[0:HEIGHT, 0:WIDTH]
    channels = [120 + 100 * np.sin(u / 9), 100 + 80 * np.cos(v / 7), 90 * depth]
    return np.clip(np.stack(channels, axis=-1), 0, 255).astype(np.uint8)


def frames(dtype="uint16"):
    """[(depth, color, extrinsic)]: uint16 millimetres with uint8, or float32 metres with floats."""
    made = []
    for extrinsic in POSES:
        depth, color = depth_of(extrinsic), color_of(extrinsic)
        if dtype == "uint16":
            made.append(((1000 * depth).astype(np.uint16), color, extrinsic))
        else:
            made.append((depth.astype(np.float32), color.astype(np.float32) / 255, extrinsic))
    return made
