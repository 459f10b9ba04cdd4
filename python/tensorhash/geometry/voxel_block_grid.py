"""VoxelBlockGrid: a sparse volume of voxels in blocks, for TSDF integration and more.

Over 400 lines, and `ray_cast` over 50 lines: one class with all of Open3D's methods, most of it
docstrings with examples. The work is in C++.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from tensorhash import _core
from tensorhash._arguments import integer, number, parse_shape
from tensorhash._device import Device, named_device
from tensorhash._dtypes import parse_dtype
from tensorhash._frameworks import Framework, framework, to_numpy
from tensorhash._types import Array, ArrayLike, DeviceLike, DtypeLike, ShapeLike
from tensorhash.coords._points import per_axis
from tensorhash.geometry import _calls, _grid_files
from tensorhash.geometry.results import GridVoxels, SurfaceMesh, SurfacePoints
from tensorhash.hash_map import HashMap


class VoxelBlockGrid:
    """Voxels in blocks of `block_resolution`^3, in a HashMap from block coordinates to values.

    Voxel (x, y, z) is the point (x, y, z) * `voxel_size`. Each attribute has a name, a dtype and
    channels. The methods for TSDF volumes use the attributes "tsdf" (float32, 1 channel), "weight"
    (float32 or uint16, 1) and, if there is one, "color" (float32 or uint16, 3, from 0 to 255).
    Names, argument order and results are those of Open3D's VoxelBlockGrid; images, matrices, clouds
    and meshes are arrays. Results use the framework of the dtypes: `tensorhash.core`'s dtypes give
    Tensors, torch's give torch tensors, all others NumPy arrays. They are bit-identical on any
    number of threads. The grid computes on the CPU.

    >>> depth = np.full((48, 64), 1000, np.uint16)  # a wall at 1 m
    >>> intrinsic = [[60.0, 0, 31.5], [0, 60.0, 23.5], [0, 0, 1]]
    >>> grid = VoxelBlockGrid(("tsdf", "weight"), ("float32", "float32"), (1, 1), 0.05, 8)
    >>> blocks = grid.compute_unique_block_coordinates(depth, intrinsic, np.eye(4))
    >>> grid.integrate(blocks, depth, intrinsic, np.eye(4))
    >>> mesh = grid.extract_triangle_mesh(weight_threshold=0)
    >>> float(mesh.vertices[:, 2].min().round(5)), float(mesh.vertices[:, 2].max().round(5))
    (1.0, 1.0)
    """

    def __init__(
        self,
        attr_names: Sequence[str] = ("tsdf", "weight"),
        attr_dtypes: Sequence[DtypeLike] = ("float32", "float32"),
        attr_channels: Sequence[ShapeLike] = (1, 1),
        voxel_size: float = 0.0058,
        block_resolution: int = 16,
        block_count: int = 10000,
        device: DeviceLike = "cpu",
    ) -> None:
        names = _attribute_names(attr_names)
        dtypes = _as_many(attr_dtypes, "attr_dtypes", len(names))
        channels = _as_many(attr_channels, "attr_channels", len(names))
        size = _voxel_size(voxel_size)
        side = _resolution(block_resolution)
        _require_cpu(device)
        shapes = [(side, side, side, *parse_shape(one, "attr_channels")) for one in channels]
        homes = {parse_dtype(dtype, "attr_dtypes")[1] for dtype in dtypes}
        table = _map_class(homes)(
            integer(block_count, "block_count"),
            "int32",
            (3,),
            value_dtypes=dtypes,
            value_element_shapes=shapes,
        )
        self._hold(table, names, size, side)

    def _hold(self, table: HashMap[Array], names: list[str], size: float, side: int) -> None:
        self._map = table
        self._names = names
        self._columns = {name: column for column, name in enumerate(names)}
        # Bound once: `attribute` takes less than a microsecond.
        self._give_view = _giver(table._framework)
        self._value_tensor = table._table.value_tensor
        self._voxel_size = size
        self._side = side
        columns = (names.index(name) if name in names else -1 for name in _TSDF)
        self._grid = _core.BlockGrid(table._table, size, side, *columns)

    @classmethod
    def _of(cls, table: HashMap[Array], names: list[str], size: float, side: int) -> VoxelBlockGrid:
        grid = cls.__new__(cls)
        grid._hold(table, names, size, side)
        return grid

    def __repr__(self) -> str:
        return (
            f"VoxelBlockGrid({', '.join(self._names)}; {self._map.size()} blocks of "
            f"{self._side}^3 voxels of {self._voxel_size:g})"
        )

    # The map and its voxels.

    def hashmap(self) -> HashMap[Array]:
        """The map from block coordinates, int32 [3], to the values of a block. Not a copy.

        >>> VoxelBlockGrid(["x"], ["int64"], [1], block_count=7).hashmap().capacity()
        7
        """
        return self._map

    def attribute(self, attribute_name: str) -> Array:
        """A view of an attribute, [capacity, z, y, x, *channels], to read and write.

        As for `HashMap.value_tensor`, a view taken before growth no longer shows the grid.

        >>> VoxelBlockGrid(["x"], ["int64"], [3], 0.1, 8, 10).attribute("x").shape
        (10, 8, 8, 8, 3)
        """
        try:
            column = self._columns[attribute_name]
        except (KeyError, TypeError):
            raise ValueError(
                f"attribute_name: expected one of {', '.join(self._names)}, got {attribute_name!r}"
            ) from None
        return self._give_view(self._value_tensor(column))

    @property
    def voxel_size(self) -> float:
        """The edge of a voxel."""
        return self._voxel_size

    @property
    def block_resolution(self) -> int:
        """The voxels along each axis of a block."""
        return self._side

    def voxel_indices(self, buf_indices: ArrayLike | None = None) -> Array:
        """int64 [4, N * r^3]: buffer index, x, y, z of all voxels of blocks; by default of all.

        >>> grid = VoxelBlockGrid(["x"], ["int64"], [1], 0.1, 2, 10)
        >>> grid.voxel_indices([3]).T.tolist()[:3]
        [[3, 0, 0, 0], [3, 1, 0, 0], [3, 0, 1, 0]]
        """
        return self._give(self._grid.voxel_indices(self._take_blocks(buf_indices)))

    def voxel_coordinates(self, voxel_indices: ArrayLike) -> Array:
        """int64 [3, N]: the coordinates of voxels given by `voxel_indices`, [4, N].

        >>> grid = VoxelBlockGrid(["x"], ["int64"], [1], 0.1, 2, 10)
        >>> _ = grid.hashmap().activate([[5, 0, -1]])
        >>> grid.voxel_coordinates(grid.voxel_indices()).T.tolist()[:2]
        [[10, 0, -2], [11, 0, -2]]
        """
        return self._give(self._grid.voxel_coordinates(_calls.take(voxel_indices, "voxel_indices")))

    def voxel_coordinates_and_flattened_indices(
        self, buf_indices: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """(float32 [N, 3] points, int64 [N] indices) of all voxels of blocks; by default of all.

        The indices are rows of `attribute(name).reshape((-1, channels))`.

        >>> grid = VoxelBlockGrid(["x"], ["int64"], [1], 0.5, 2, 10)
        >>> _ = grid.hashmap().activate([[1, 0, 0]])
        >>> points, indices = grid.voxel_coordinates_and_flattened_indices()
        >>> points.tolist()[:2], indices.tolist()[:2]
        ([[1.0, 0.0, 0.0], [1.5, 0.0, 0.0]], [0, 1])
        """
        points, flattened = self._grid.voxel_places(self._take_blocks(buf_indices))
        return self._give(points), self._give(flattened)

    def extract_voxels(self, weight_threshold: float = 0.0) -> GridVoxels:
        """All voxels with a weight above the threshold; all voxels if there is no "weight".

        >>> grid = VoxelBlockGrid(["x"], ["int64"], [1], 0.5, 2, 10)
        >>> _ = grid.hashmap().activate([[1, 0, 0]])
        >>> grid.extract_voxels().attributes["x"].shape
        (8, 1)
        """
        found = self._grid.occupied_voxels(number(weight_threshold, "weight_threshold"))
        coords = self._grid.voxel_coords(found)
        points = to_numpy(coords).astype(np.float32) * np.float32(self._voxel_size)
        rows = to_numpy(found)
        attributes = {}
        for column, name in enumerate(self._names):
            values = to_numpy(self._map._table.value_tensor(column))
            picked = values.reshape(-1, *values.shape[4:])[rows]
            attributes[name] = self._give(_core.Tensor.wrap(picked, name))
        return GridVoxels(
            self._give(coords), self._give(_core.Tensor.wrap(points, "points")), attributes
        )

    # Integration.

    @overload
    def compute_unique_block_coordinates(
        self,
        depth: ArrayLike,
        intrinsic: ArrayLike,
        extrinsic: ArrayLike,
        depth_scale: float = ...,
        depth_max: float = ...,
        trunc_voxel_multiplier: float = ...,
    ) -> Array: ...
    @overload
    def compute_unique_block_coordinates(
        self, pcd: ArrayLike, trunc_voxel_multiplier: float = ...
    ) -> Array: ...
    def compute_unique_block_coordinates(self, *args: Any, **named: Any) -> Array:
        """int32 [M, 3]: the blocks near the surface that an image or a cloud shows.

        For a depth image, `(depth, intrinsic, extrinsic, depth_scale=1000, depth_max=3,
        trunc_voxel_multiplier=8)`: the image is [H, W] or [H, W, 1]; metres are numbers /
        `depth_scale`; `extrinsic` leads from the world to the camera. Every fourth pixel of every
        fourth row counts. For a cloud, `(pcd, trunc_voxel_multiplier=8)`: points [N, 3] or a
        cloud; the blocks within the truncation of each point. Blocks come in order of first
        occurrence, and are not added to the grid.

        >>> grid = VoxelBlockGrid(("tsdf", "weight"), ("float32", "float32"), (1, 1), 0.1, 10)
        >>> grid.compute_unique_block_coordinates([[0.5, 0.5, 1.9]], 2.0).tolist()
        [[0, 0, 1], [0, 0, 2]]
        """
        if _calls.is_cloud(args, named):
            return self._give(self._grid.touched_by_points(*_calls.cloud_call(args, named)))
        return self._give(self._grid.touched_by_depth(*_calls.touch_call(args, named)))

    @overload
    def integrate(
        self,
        block_coords: ArrayLike,
        depth: ArrayLike,
        color: ArrayLike,
        depth_intrinsic: ArrayLike,
        color_intrinsic: ArrayLike,
        extrinsic: ArrayLike,
        depth_scale: float = ...,
        depth_max: float = ...,
        trunc_voxel_multiplier: float = ...,
    ) -> None: ...
    @overload
    def integrate(
        self,
        block_coords: ArrayLike,
        depth: ArrayLike,
        color: ArrayLike,
        intrinsic: ArrayLike,
        extrinsic: ArrayLike,
        depth_scale: float = ...,
        depth_max: float = ...,
        trunc_voxel_multiplier: float = ...,
    ) -> None: ...
    @overload
    def integrate(
        self,
        block_coords: ArrayLike,
        depth: ArrayLike,
        intrinsic: ArrayLike,
        extrinsic: ArrayLike,
        depth_scale: float = ...,
        depth_max: float = ...,
        trunc_voxel_multiplier: float = ...,
    ) -> None: ...
    @overload
    def integrate(
        self,
        block_coords: ArrayLike | None = ...,
        *,
        points: ArrayLike,
        origin: Any,
        colors: ArrayLike | None = ...,
        trunc_voxel_multiplier: float = ...,
    ) -> None: ...
    def integrate(self, block_coords: ArrayLike | None = None, *args: Any, **named: Any) -> None:
        """Adds one observation to the voxels that an image or a LiDAR scan sees.

        With an image, `(block_coords, depth, color, depth_intrinsic, color_intrinsic, extrinsic,
        depth_scale=1000, depth_max=3, trunc_voxel_multiplier=8)`; one `intrinsic` serves both
        images, and `color` may be left out. Blocks that the grid does not have are added; a block
        that is given twice counts once. Colours are [H, W, 3], integers from 0 to 255 or floats
        from 0 to 1. Depth that is 0, negative or not finite is no measurement.

        With a scan, `(points=, origin=, colors=None, trunc_voxel_multiplier=8)`: each ray from the
        origin adds an observation to the voxels near it, within the truncation of its point, in row
        order. Blocks are added as needed; with `block_coords` only these blocks change.

        >>> grid = VoxelBlockGrid(("tsdf", "weight"), ("float32", "float32"), (1, 1), 0.1)
        >>> grid.integrate(points=[[1.0, 0.0, 0.0]], origin=[0.0, 0.0, 0.0])
        >>> grid.hashmap().size()
        2
        """
        if "points" in named or "origin" in named:
            self._integrate_scan(block_coords, args, named)
            return
        if block_coords is None:
            raise TypeError(
                "block_coords: expected those of compute_unique_block_coordinates, got none"
            )
        blocks = _calls.take(block_coords, "block_coords")
        self._grid.integrate_frame(blocks, *_calls.frame_call(args, named))

    def _integrate_scan(
        self, block_coords: Any, args: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        known = ("points", "origin", "colors", "trunc_voxel_multiplier")
        wrong = [name for name in named if name not in known]
        if args or wrong or not {"points", "origin"} <= named.keys():
            got = ", ".join([*named, *("an argument by position" for _ in args[:1])])
            raise TypeError(
                f"integrate: expected points=, origin= and, if wanted, colors= and "
                f"trunc_voxel_multiplier= for a scan, got {got}"
            )
        origin = per_axis(named["origin"], 3, "origin")
        if len(origin) != 3:
            raise ValueError(f"origin: expected 3 numbers, got {len(origin)}")
        colors = named.get("colors")
        self._grid.integrate_scan(
            None if block_coords is None else _calls.take(block_coords, "block_coords"),
            _calls.take(named["points"], "points"),
            (origin[0], origin[1], origin[2]),
            None if colors is None else _calls.take(colors, "colors"),
            number(named.get("trunc_voxel_multiplier", 8.0), "trunc_voxel_multiplier"),
        )

    # Surfaces.

    def extract_point_cloud(
        self, weight_threshold: float = 3.0, estimated_point_number: int = -1
    ) -> SurfacePoints:
        """The points where the surface crosses an edge between two voxels.

        Voxels with a weight above `weight_threshold` count. `estimated_point_number` has no effect:
        the result always has all points.

        >>> grid = VoxelBlockGrid(("tsdf", "weight"), ("float32", "float32"), (1, 1), 0.1)
        >>> grid.integrate(points=[[0.0, 0.0, 1.03]], origin=(0, 0, 0))
        >>> grid.extract_point_cloud(0).points.round(4).tolist()
        [[0.0, 0.0, 1.0299999713897705]]
        """
        integer(estimated_point_number, "estimated_point_number")
        found = self._grid.extract_points(number(weight_threshold, "weight_threshold"))
        return SurfacePoints(*self._surface(found))

    def extract_triangle_mesh(
        self, weight_threshold: float = 3.0, estimated_vertex_number: int = -1
    ) -> SurfaceMesh:
        """The surface as triangles, by marching cubes.

        Voxels with a weight above `weight_threshold` count. `estimated_vertex_number` has no
        effect: the result always has all vertices.

        >>> grid = VoxelBlockGrid(("tsdf", "weight"), ("float32", "float32"), (1, 1), 0.1)
        >>> grid.extract_triangle_mesh().triangles.shape
        (0, 3)
        """
        integer(estimated_vertex_number, "estimated_vertex_number")
        found, triangles = self._grid.extract_mesh(number(weight_threshold, "weight_threshold"))
        vertices, normals, colors = self._surface(found)
        return SurfaceMesh(vertices, self._give(triangles), normals, colors)

    def ray_cast(
        self,
        block_coords: ArrayLike,
        intrinsic: ArrayLike,
        extrinsic: ArrayLike,
        width: int,
        height: int,
        render_attributes: Sequence[str] | None = None,
        depth_scale: float = 1000.0,
        depth_min: float = 0.1,
        depth_max: float = 3.0,
        weight_threshold: float = 3.0,
        trunc_voxel_multiplier: float = 8.0,
        range_map_down_factor: int = 8,
    ) -> dict[str, Array]:
        """Renders images of the surface that a camera sees.

        `block_coords` bound the depths to search: those of the frame, or `hashmap().keys()` for
        all. Names to render: "depth", "vertex" and "normal" (in the camera's space), "color",
        "index", "mask", "interp_ratio", "interp_ratio_dx", "interp_ratio_dy", "interp_ratio_dz".
        Without names, depth and, if the grid has it, color.
        The result also has "range": the depths that were searched. Pixels without surface are 0.

        >>> depth = np.full((48, 64), 1000, np.uint16)
        >>> intrinsic = [[60.0, 0, 31.5], [0, 60.0, 23.5], [0, 0, 1]]
        >>> grid = VoxelBlockGrid(("tsdf", "weight"), ("float32", "float32"), (1, 1), 0.05, 8)
        >>> blocks = grid.compute_unique_block_coordinates(depth, intrinsic, np.eye(4))
        >>> grid.integrate(blocks, depth, intrinsic, np.eye(4))
        >>> camera = intrinsic, np.eye(4), 64, 48
        >>> views = grid.ray_cast(blocks, *camera, ["depth"], weight_threshold=1)
        >>> views["depth"].shape, bool(abs(views["depth"][20, 30, 0] - 1000) <= 50)  # a voxel
        ((48, 64, 1), True)
        """
        if render_attributes is None:
            render_attributes = ["depth", *(name for name in self._names if name == "color")]
        if isinstance(render_attributes, str):
            raise TypeError(
                f"render_attributes: expected a list of names, got {render_attributes!r}"
            )
        images = self._grid.ray_cast(
            _calls.take(block_coords, "block_coords"),
            _calls.take(intrinsic, "intrinsic"),
            _calls.take(extrinsic, "extrinsic"),
            (
                integer(width, "width"),
                integer(height, "height"),
                integer(range_map_down_factor, "range_map_down_factor"),
            ),
            list(render_attributes),
            (
                number(depth_scale, "depth_scale"),
                number(depth_min, "depth_min"),
                number(depth_max, "depth_max"),
            ),
            number(weight_threshold, "weight_threshold"),
            number(trunc_voxel_multiplier, "trunc_voxel_multiplier"),
        )
        return {name: self._give(image) for name, image in images}

    def reset(self) -> None:
        """Removes all blocks; the capacity stays.

        >>> grid = VoxelBlockGrid(("tsdf", "weight"), ("float32", "float32"), (1, 1), 0.1)
        >>> grid.integrate(points=[[0.0, 0.0, 1.0]], origin=(0, 0, 0))
        >>> grid.reset()
        >>> grid.hashmap().size()
        0
        """
        self._map.clear()

    # Copies, devices, files.

    def clone(self) -> VoxelBlockGrid:
        """An independent copy with the same buffer indices.

        >>> VoxelBlockGrid(["x"], ["int64"], [1], 0.5).clone().voxel_size
        0.5
        """
        return self._of(self._map.clone(), list(self._names), self._voxel_size, self._side)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> VoxelBlockGrid:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        return VoxelBlockGrid._of, (self._map, self._names, self._voxel_size, self._side)

    @property
    def device(self) -> str | Device:
        """The device of the map: the CPU."""
        return self._map.device

    def to(self, device: DeviceLike, copy: bool = False) -> VoxelBlockGrid:
        """The grid itself, or with `copy` an independent copy; the grid computes on the CPU.

        >>> grid = VoxelBlockGrid(["x"], ["int64"], [1])
        >>> grid.to("cpu") is grid, grid.to("cpu", copy=True) is grid
        (True, False)
        """
        _require_cpu(device)
        return self.clone() if copy else self

    def cpu(self) -> VoxelBlockGrid:
        """The grid itself.

        >>> grid = VoxelBlockGrid(["x"], ["int64"], [1])
        >>> grid.cpu() is grid
        True
        """
        return self

    def cuda(self, device_id: int = 0) -> VoxelBlockGrid:
        """RuntimeError: the grid computes on the CPU.

        >>> VoxelBlockGrid().cuda()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        RuntimeError: device: expected the CPU, where a VoxelBlockGrid computes, got CUDA:0; ...
        """
        return self.to(f"cuda:{integer(device_id, 'device_id')}")

    def save(self, file_name: Any) -> str:
        """Writes Open3D's .npz and returns the name of the file, "x.npz" for "x".

        >>> import os, tempfile
        >>> grid = VoxelBlockGrid(["x"], ["int64"], [1], 0.5)
        >>> path = os.path.join(tempfile.mkdtemp(), "grid.npz")
        >>> VoxelBlockGrid.load(grid.save(path)).voxel_size
        0.5
        """
        table = self._map._table
        grid = _grid_files.GridFile(table, self._names, self._voxel_size, self._side)
        return _grid_files.save(grid, file_name)

    @classmethod
    def load(cls, file_name: Any, max_bytes: int | None = None) -> VoxelBlockGrid:
        """Reads a grid that `save` or Open3D wrote. Views of it are `tensorhash.core` Tensors.

        Safe for untrusted files: `max_bytes` limits the memory, as for `HashMap.load`.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     grid = VoxelBlockGrid.load(VoxelBlockGrid(voxel_size=0.5).save(f"{folder}/grid"))
        >>> grid.voxel_size
        0.5
        """
        found = _grid_files.load(file_name, max_bytes)
        table = _map_class({"core"})._of(found.table, framework("core"))
        return cls._of(table, found.names, found.voxel_size, found.block_resolution)

    # Helpers.

    def _give(self, tensor: _core.Tensor) -> Array:
        return self._map._give(tensor)

    def _surface(
        self, found: tuple[_core.Tensor, _core.Tensor, _core.Tensor]
    ) -> tuple[Array, Array, Array | None]:
        points, normals, colors = found
        colored = "color" in self._names
        return self._give(points), self._give(normals), self._give(colors) if colored else None

    def _take_blocks(self, buf_indices: Any) -> Any:
        if buf_indices is None:
            return self._map._table.active_buf_indices()
        return _calls.take(buf_indices, "buf_indices")


_TSDF = ("tsdf", "weight", "color")


def _map_class(homes: set[str | None]) -> Any:
    """The class of the map: that of `tensorhash.core` for dtypes from there."""
    if "core" in homes and "torch" not in homes:
        from tensorhash.core.hash_tables import HashMap as CoreMap

        return CoreMap
    return HashMap


def _giver(home: Framework) -> Callable[[_core.Tensor], Array]:
    """`home.give` for memory on the CPU, without a question for the device."""
    if home.name == "numpy":
        return to_numpy
    if home.name == "core":
        from tensorhash.core.tensor import Tensor

        return lambda tensor: Tensor._wrap(to_numpy(tensor))
    return home.give


def _attribute_names(attr_names: Any) -> list[str]:
    names: list[Any] = list(attr_names) if isinstance(attr_names, (list, tuple)) else [None]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"attr_names: expected a list of names, got {attr_names!r}")
    if len(set(names)) != len(names):
        raise ValueError(f"attr_names: expected different names, got {attr_names!r}")
    return names


def _as_many(values: Any, argument: str, count: int) -> list[Any]:
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{argument}: expected a list, one per name, got {values!r}")
    if len(values) != count:
        raise ValueError(f"{argument}: expected {count}, one per name, got {len(values)}")
    return list(values)


def _voxel_size(value: Any) -> float:
    size = number(value, "voxel_size")
    with np.errstate(over="ignore"):
        stored = np.float32(size)
    if not (np.isfinite(stored) and stored > 0):
        raise ValueError(f"voxel_size: expected a positive float32, got {size}")
    return size


def _resolution(value: Any) -> int:
    side = integer(value, "block_resolution")
    if not 1 <= side <= 256:
        raise ValueError(f"block_resolution: expected 1 to 256, got {side}")
    return side


def _require_cpu(device: Any) -> None:
    named = named_device(device)
    if named.get_type() is not Device.DeviceType.CPU or named.get_id() != 0:
        raise RuntimeError(
            f"device: expected the CPU, where a VoxelBlockGrid computes, got {named}; "
            f"leave it out, and pass arrays of another device as array.cpu()"
        )
