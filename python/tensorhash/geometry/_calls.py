"""Sorts the arguments of methods that Open3D overloads, and takes images and clouds of Open3D."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorhash._arguments import number
from tensorhash.coords._points import shape_of, take_numbers

_NUMBERS = ("depth_scale", "depth_max", "trunc_voxel_multiplier")
_DEFAULTS = {"depth_scale": 1000.0, "depth_max": 3.0, "trunc_voxel_multiplier": 8.0}


class FrameCall(NamedTuple):
    """The arguments of `integrate` for an image."""

    depth: Any
    color: Any  #: or None
    intrinsic: Any
    color_intrinsic: Any  #: or None
    extrinsic: Any
    depth_scale: float
    depth_max: float
    trunc_voxel_multiplier: float


class TouchCall(NamedTuple):
    """The arguments of `compute_unique_block_coordinates` for an image."""

    depth: Any
    intrinsic: Any
    extrinsic: Any
    depth_scale: float
    depth_max: float
    trunc_voxel_multiplier: float


def frame_call(args: tuple[Any, ...], named: dict[str, Any]) -> FrameCall:
    """Reads (depth[, color], intrinsic(s), extrinsic, numbers), by position and by name."""
    given = _bind("integrate", _frame_names(args, named), args, named)
    apart = "color_intrinsic" in given or "depth_intrinsic" in given
    intrinsic = "depth_intrinsic" if apart else "intrinsic"
    _require("integrate", given, "depth", intrinsic, "extrinsic")
    color = None if given.get("color") is None else take(given["color"], "color")
    if color is not None and 0 in shape_of(color):
        color = None  # Open3D's way to give no image
    other = given.get("color_intrinsic")
    return FrameCall(
        take(given["depth"], "depth"),
        color,
        take(given[intrinsic], intrinsic),
        None if other is None else take(other, "color_intrinsic"),
        take(given["extrinsic"], "extrinsic"),
        *(_number(given, name) for name in _NUMBERS),
    )


def touch_call(args: tuple[Any, ...], named: dict[str, Any]) -> TouchCall:
    """Reads (depth, intrinsic, extrinsic, numbers)."""
    verb = "compute_unique_block_coordinates"
    given = _bind(verb, ("depth", "intrinsic", "extrinsic", *_NUMBERS), args, named)
    _require(verb, given, "depth", "intrinsic", "extrinsic")
    return TouchCall(
        *(take(given[name], name) for name in ("depth", "intrinsic", "extrinsic")),
        *(_number(given, name) for name in _NUMBERS),
    )


def cloud_call(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, float]:
    """Reads (pcd, trunc_voxel_multiplier)."""
    verb = "compute_unique_block_coordinates"
    given = _bind(verb, ("pcd", "trunc_voxel_multiplier"), args, named)
    _require(verb, given, "pcd")
    return take(given["pcd"], "pcd"), _number(given, "trunc_voxel_multiplier")


def is_cloud(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether a call of `compute_unique_block_coordinates` gives a cloud, not an image."""
    if "pcd" in named or "depth" in named:
        return "pcd" in named
    return (len(args) < 2 and "intrinsic" not in named) or _is_number(args[1:2])


def take(array: Any, argument: str) -> Any:
    """The array for the core. Takes Open3D's images and clouds, and tuples with points, too."""
    if hasattr(array, "as_tensor"):  # Open3D's Image
        array = array.as_tensor()
    elif hasattr(array, "point"):  # Open3D's PointCloud
        array = array.point["positions"]
    elif hasattr(array, "points"):
        array = array.points
    if type(array).__module__.startswith("open3d."):  # its __dlpack_device__ is not the standard's
        array = array.numpy()
    return take_numbers(array, argument)[0]


def _is_number(args: tuple[Any, ...]) -> bool:
    return bool(args) and shape_of(args[0]) == ()


def _is_intrinsic(args: tuple[Any, ...], at: int) -> bool:
    return len(args) > at and args[at] is not None and shape_of(args[at]) == (3, 3)


def _frame_names(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[str, ...]:
    """The names of the positional arguments. Only matrices have the shape (3, 3)."""
    if _is_intrinsic(args, 1):
        return ("depth", "intrinsic", "extrinsic", *_NUMBERS)
    if _is_intrinsic(args, 3) or "depth_intrinsic" in named or "color_intrinsic" in named:
        return ("depth", "color", "depth_intrinsic", "color_intrinsic", "extrinsic", *_NUMBERS)
    return ("depth", "color", "intrinsic", "extrinsic", *_NUMBERS)


def _bind(
    verb: str, names: tuple[str, ...], args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by name, as Python binds them."""
    if len(args) > len(names):
        raise TypeError(f"{verb}: expected at most {len(names)} arguments, got {len(args)}")
    given = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name not in names:
            raise TypeError(f"{verb}: expected some of {', '.join(names)}, got {name}=")
        if name in given:
            raise TypeError(f"{name}: expected it once, got it by position and by name")
        given[name] = value
    return given


def _require(verb: str, given: dict[str, Any], *names: str) -> None:
    for name in names:
        if given.get(name) is None:
            hint = "; an intrinsic has shape (3, 3)" if "trinsic" in name else ""
            raise TypeError(f"{name}: expected an array in this call of {verb}, got none{hint}")


def _number(given: dict[str, Any], name: str) -> float:
    return number(given.get(name, _DEFAULTS[name]), name)
