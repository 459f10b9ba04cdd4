"""Files of VoxelBlockGrid: Open3D's .npz with the names of the attributes and the scale."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tensorhash import _core, _files, _npz

_NAME = "attr_name_"
_SCALE = ("voxel_size", "block_resolution")
_DEVICE = "CPU:0"  # an entry of this name tells Open3D where to load the grid


class GridFile(NamedTuple):
    """What a file holds."""

    table: _core.HashMap
    names: list[str]
    voxel_size: float
    block_resolution: int


def save(grid: GridFile, file_name: Any) -> str:
    """Writes the grid and returns the path of the file."""
    extra = {
        "voxel_size": np.array([grid.voxel_size], dtype=np.float32),
        "block_resolution": np.array([grid.block_resolution], dtype=np.int64),
        _DEVICE: np.empty(0, dtype=np.uint8),
    }
    for column, name in enumerate(grid.names):
        extra[_NAME + name] = np.array([column], dtype=np.int32)
    path = _files.archive_target(file_name)
    _npz.save(grid.table, path, extra)
    return path


def load(file_name: Any, max_bytes: int | None) -> GridFile:
    """Reads a file of ours or of Open3D. ValueError says what is wrong with it."""
    path, most = _files.archive_source(file_name, max_bytes)
    table, extra = _npz.load_with_extra(path, most, _is_extra)
    try:
        return _checked(table, extra)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _is_extra(name: str) -> bool:
    return name in _SCALE or name.startswith(_NAME)


def _single(extra: dict[str, Any], name: str, kinds: str) -> Any:
    array = extra.get(name)
    if array is None:
        raise ValueError(f"expected an array {name!r}, got none: not a file of a VoxelBlockGrid")
    if array.size != 1 or array.dtype.kind not in kinds:
        raise ValueError(f"{name}: expected one number, got {array.dtype} {array.shape}")
    return array.reshape(-1)[0].item()


def _checked(table: _core.HashMap, extra: dict[str, Any]) -> GridFile:
    voxel_size = float(_single(extra, "voxel_size", "f"))
    resolution = int(_single(extra, "block_resolution", "iu"))
    if not (math.isfinite(voxel_size) and voxel_size > 0):
        raise ValueError(f"voxel_size: expected a positive number, got {voxel_size}")
    names: list[str | None] = [None] * len(table.value_elements)
    for entry in sorted(name for name in extra if name.startswith(_NAME)):
        column = int(_single(extra, entry, "iu"))
        if not 0 <= column < len(names) or names[column] is not None:
            raise ValueError(
                f"{entry}: expected its own value column below {len(names)}, got {column}"
            )
        names[column] = entry.removeprefix(_NAME)
    for column, (name, (_, shape)) in enumerate(zip(names, table.value_elements, strict=True)):
        if name is None:
            raise ValueError(f"value_{column:03d}: expected an attribute with this column")
        if tuple(shape[:3]) != (resolution,) * 3:
            raise ValueError(
                f"value_{column:03d}: expected blocks of {resolution}^3 voxels, got {tuple(shape)}"
            )
    key = table.key_element
    if key[0] != "int32" or tuple(key[1]) != (3,):
        raise ValueError(f"key: expected int32 (3,), got {key[0]} {tuple(key[1])}")
    return GridFile(table, [name for name in names if name], voxel_size, resolution)
