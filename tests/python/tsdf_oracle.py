"""What VoxelBlockGrid computes, in plain NumPy: one voxel, pixel or ray after the other."""

import collections

import numpy as np

F = np.float32


def first_occurrences(rows):
    return [list(row) for row in collections.OrderedDict.fromkeys(map(tuple, rows))]


def touched_by_depth(depth, intrinsic, extrinsic, voxel, side, scale, most, truncation):
    """The blocks of compute_unique_block_coordinates, in order of first occurrence."""
    fx, fy, cx, cy = (F(intrinsic[i]) for i in ((0, 0), (1, 1), (0, 2), (1, 2)))
    back = np.eye(4)
    back[:3, :3] = extrinsic[:3, :3].T
    back[:3, 3] = -(extrinsic[:3, :3].T @ extrinsic[:3, 3])
    back = back.astype(F)
    block, reach, most = F(voxel) * F(side), F(voxel) * F(truncation), F(most)
    origin, found = back[:3, 3], []
    for y in range(0, depth.shape[0] // 4 * 4, 4):
        for x in range(0, depth.shape[1] // 4 * 4, 4):
            d = F(depth[y, x]) / F(scale)
            if not 0 < d < most:
                continue
            p = [(F(x) - cx) / fx, (F(y) - cy) / fy, F(1)]
            at = [p[0] * row[0] + p[1] * row[1] + p[2] * row[2] + row[3] for row in back[:3]]
            direction = [a - o for a, o in zip(at, origin, strict=True)]
            first, last = max(d - reach, F(0)), min(d + reach, most)
            step, t = (last - first) / F(3), first
            for _ in range(4):
                found.append(
                    [
                        int(np.floor((o + t * r) / block))
                        for o, r in zip(origin, direction, strict=True)
                    ]
                )
                t = t + step
    return first_occurrences(found)


def touched_by_points(points, voxel, side, truncation):
    block, reach = F(voxel) * F(side), F(voxel) * F(truncation)
    found = []
    for point in np.asarray(points, F):
        low = [int(np.floor((x - reach) / block)) for x in point]
        high = [int(np.floor((x + reach) / block)) for x in point]
        for x in range(low[0], high[0] + 1):
            for y in range(low[1], high[1] + 1):
                found += [[x, y, z] for z in range(low[2], high[2] + 1)]
    return first_occurrences(found)


class Volume:
    """Voxels by coordinate: [distance, weight, colour]. Only blocks that were added."""

    def __init__(self, voxel, side):
        self.voxel, self.side = voxel, side
        self.blocks = []
        self.values = {}

    def add_blocks(self, blocks):
        new = [tuple(b) for b in blocks if tuple(b) not in self.blocks]
        self.blocks += list(dict.fromkeys(new))

    def voxels(self, block):
        r = self.side
        for z in range(r):
            for y in range(r):
                for x in range(r):
                    yield block[0] * r + x, block[1] * r + y, block[2] * r + z

    def block_of(self, voxel):
        return tuple(x // self.side for x in voxel)

    def get(self, voxel):
        """The values of a voxel; None if its block is not there."""
        if self.block_of(voxel) not in self.blocks:
            return None
        return self.values.get(voxel, (F(0), F(0), np.zeros(3, F)))

    def observe(self, voxel, distance, color=None):
        tsdf, weight, before = self.get(voxel)
        share = F(1) / (weight + F(1))
        mixed = before if color is None else (weight * before + color.astype(F)) * share
        self.values[voxel] = ((weight * tsdf + distance) * share, weight + F(1), mixed)

    def integrate(self, blocks, depth, color, intrinsic, extrinsic, scale, most, truncation):
        self.add_blocks(blocks)
        fx, fy, cx, cy = (F(intrinsic[i]) for i in ((0, 0), (1, 1), (0, 2), (1, 2)))
        m, reach = extrinsic.astype(F), F(self.voxel) * F(truncation)
        for block in dict.fromkeys(map(tuple, blocks)):
            for voxel in self.voxels(block):
                p = [F(x) * F(self.voxel) for x in voxel]
                x, y, z = (r[0] * p[0] + r[1] * p[1] + r[2] * p[2] + r[3] for r in m[:3])
                with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                    inverse = F(1) / z
                    u, v = fx * x * inverse + cx, fy * y * inverse + cy
                if not (0 <= u <= depth.shape[1] - 1 and 0 <= v <= depth.shape[0] - 1):
                    continue
                d = F(depth[int(v), int(u)]) / F(scale)
                if not (0 < d <= F(most)) or z <= 0 or d - z < -reach:
                    continue
                distance = min(d - z, reach) / reach
                self.observe(voxel, distance, None if color is None else color[int(v), int(u)])

    def integrate_scan(self, points, origin, truncation, colors=None, only=None):
        size, origin = float(F(self.voxel)), np.asarray(origin, float)
        if only is not None:
            self.add_blocks(only)
        for row, point in enumerate(np.asarray(points, float)):
            direction = point - origin
            length = float(np.sqrt(direction[0] ** 2 + direction[1] ** 2 + direction[2] ** 2))
            direction = direction / length
            last = None
            for step in range(int(2 * truncation) + 1):
                t = length + (step - truncation) * size
                if t < 0:
                    continue
                voxel = tuple(int(np.floor(x)) for x in (origin + t * direction) / size + 0.5)
                if voxel == last:
                    continue
                last = voxel
                parts = (np.array(voxel) * size - origin) * direction
                distance = (length - (0 + parts[0] + parts[1] + parts[2])) / (truncation * size)
                block = self.block_of(voxel)
                if distance < -1 or (only is not None and list(block) not in only):
                    continue
                self.add_blocks([block])
                color = None if colors is None else colors[row]
                self.observe(voxel, F(min(distance, 1.0)), color)

    def arrays(self, name):
        """The values of all blocks in their order, [blocks, z, y, x, channels]."""
        column = ("tsdf", "weight", "color").index(name)
        r = self.side
        made = [[self.get(voxel)[column] for voxel in self.voxels(block)] for block in self.blocks]
        return np.array(made, F).reshape(len(self.blocks), r, r, r, -1)

    def crossings(self, threshold):
        """[(point, colour)] of extract_point_cloud, in its order."""
        found = []
        for block in self.blocks:
            for voxel in self.voxels(block):
                tsdf, weight, color = self.get(voxel)
                for axis in range(3) if weight > threshold else ():
                    after = self.get(tuple(x + (i == axis) for i, x in enumerate(voxel)))
                    if after is None or not after[1] > threshold or not after[0] * tsdf < 0:
                        continue
                    share = (F(0) - tsdf) / (after[0] - tsdf)
                    steps = [share if i == axis else F(0) for i in range(3)]
                    point = [F(self.voxel) * (F(x) + s) for x, s in zip(voxel, steps, strict=True)]
                    mixed = ((F(1) - share) * color + share * after[2]) / F(255)
                    found.append((point, mixed))
        return found
