// Binds the TSDF functions of tensorhash.geometry as methods of BlockGrid, a map with a scale.
#include "tensorhash/geometry/voxel_block_grid.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "array_in.hpp"
#include "bindings.hpp"

namespace tensorhash::bindings {
namespace {

using geometry::Camera;
using geometry::DepthRange;
using geometry::VoxelBlockGrid;

using Triple = std::tuple<Tensor, Tensor, Tensor>;

Camera to_camera(nb::handle intrinsic, nb::handle extrinsic) {
    return {to_tensor(intrinsic, "intrinsic"), to_tensor(extrinsic, "extrinsic")};
}

Tensor touched_by_depth(VoxelBlockGrid const& self, nb::handle depth, nb::handle intrinsic,
                        nb::handle extrinsic, double depth_scale, double depth_max,
                        double truncation) {
    Tensor const image = to_tensor(depth, "depth");
    Camera const camera = to_camera(intrinsic, extrinsic);
    DepthRange const range{depth_scale, depth_max, truncation};
    return without_gil([&] { return geometry::touched_blocks(self.scale, image, camera, range); });
}

Tensor touched_by_points(VoxelBlockGrid const& self, nb::handle points, double truncation) {
    Tensor const rows = to_tensor(points, "points");
    return without_gil([&] { return geometry::touched_blocks(self.scale, rows, truncation); });
}

void integrate_frame(VoxelBlockGrid const& self, nb::handle block_coords, nb::handle depth,
                     nb::handle color, nb::handle intrinsic, nb::handle color_intrinsic,
                     nb::handle extrinsic, double depth_scale, double depth_max,
                     double truncation) {
    Tensor const blocks = to_tensor(block_coords, "block_coords");
    geometry::Frame const frame{to_tensor(depth, "depth"), to_camera(intrinsic, extrinsic),
                                optional_tensor(color, "color"),
                                optional_tensor(color_intrinsic, "color_intrinsic")};
    DepthRange const range{depth_scale, depth_max, truncation};
    without_gil([&] { geometry::integrate(self, blocks, frame, range); });
}

void integrate_scan(VoxelBlockGrid const& self, nb::handle block_coords, nb::handle points,
                    std::array<double, 3> const& origin, nb::handle colors, double truncation) {
    std::optional<Tensor> const blocks = optional_tensor(block_coords, "block_coords");
    geometry::Scan const scan{to_tensor(points, "points"), origin,
                              optional_tensor(colors, "colors")};
    without_gil([&] { geometry::integrate(self, scan, truncation, blocks); });
}

Triple to_triple(geometry::SurfacePoints&& found) {
    return {std::move(found.points), std::move(found.normals), std::move(found.colors)};
}

Triple extract_points(VoxelBlockGrid const& self, double weight_threshold) {
    return to_triple(without_gil([&] { return geometry::extract_points(self, weight_threshold); }));
}

std::pair<Triple, Tensor> extract_mesh(VoxelBlockGrid const& self, double weight_threshold) {
    auto found = without_gil([&] { return geometry::extract_mesh(self, weight_threshold); });
    return {to_triple(std::move(found.vertices)), std::move(found.triangles)};
}

std::vector<std::pair<std::string, Tensor>> ray_cast(
    VoxelBlockGrid const& self, nb::handle block_coords, nb::handle intrinsic, nb::handle extrinsic,
    std::array<std::int64_t, 3> const& size, std::vector<std::string> const& names,
    std::array<double, 3> const& depths, double weight_threshold, double truncation) {
    Tensor const blocks = to_tensor(block_coords, "block_coords");
    Camera const camera = to_camera(intrinsic, extrinsic);
    geometry::RenderOptions const view{size[0], size[1], size[2], weight_threshold};
    DepthRange const range{depths[0], depths[2], truncation, depths[1]};
    auto images =
        without_gil([&] { return geometry::ray_cast(self, blocks, camera, view, range, names); });
    std::vector<std::pair<std::string, Tensor>> out;
    for (geometry::Rendering& one : images) out.emplace_back(one.name, std::move(one.image));
    return out;
}

Tensor voxel_indices(VoxelBlockGrid const& self, nb::handle buf_indices) {
    Tensor const indices = to_tensor(buf_indices, "buf_indices");
    return without_gil([&] { return geometry::voxel_indices(self.scale.resolution, indices); });
}

std::pair<Tensor, Tensor> voxel_places(VoxelBlockGrid const& self, nb::handle buf_indices) {
    Tensor const indices = to_tensor(buf_indices, "buf_indices");
    auto found = without_gil([&] { return geometry::voxel_places(self, indices); });
    return {std::move(found.points), std::move(found.flattened)};
}

Tensor occupied_voxels(VoxelBlockGrid const& self, double weight_threshold) {
    return without_gil([&] { return geometry::occupied_voxels(self, weight_threshold); });
}

Tensor voxel_coordinates(VoxelBlockGrid const& self, nb::handle voxel_indices) {
    Tensor const indices = to_tensor(voxel_indices, "voxel_indices");
    return without_gil([&] { return geometry::voxel_coordinates(self, indices); });
}

Tensor voxel_coords(VoxelBlockGrid const& self, nb::handle flattened) {
    Tensor const places = to_tensor(flattened, "flattened");
    return without_gil([&] { return geometry::voxel_coords(self, places); });
}

void construct(VoxelBlockGrid* self, HashMap& map, double voxel_size, std::int64_t resolution,
               int tsdf, int weight, int color) {
    new (self) VoxelBlockGrid{map, {voxel_size, resolution}, tsdf, weight, color};
}

}  // namespace

void bind_voxel_block_grid(nb::module_& m) {
    nb::class_<VoxelBlockGrid>(m, "BlockGrid", "A map of voxel blocks, and which columns to use.")
        .def("__init__", &construct, nb::arg("map"), nb::arg("voxel_size"), nb::arg("resolution"),
             nb::arg("tsdf"), nb::arg("weight"), nb::arg("color"), nb::keep_alive<1, 2>())
        .def("touched_by_depth", &touched_by_depth, nb::arg("depth"), nb::arg("intrinsic"),
             nb::arg("extrinsic"), nb::arg("depth_scale"), nb::arg("depth_max"),
             nb::arg("truncation"))
        .def("touched_by_points", &touched_by_points, nb::arg("points"), nb::arg("truncation"))
        .def("integrate_frame", &integrate_frame, nb::arg("block_coords"), nb::arg("depth"),
             nb::arg("color").none(), nb::arg("intrinsic"), nb::arg("color_intrinsic").none(),
             nb::arg("extrinsic"), nb::arg("depth_scale"), nb::arg("depth_max"),
             nb::arg("truncation"))
        .def("integrate_scan", &integrate_scan, nb::arg("block_coords").none(), nb::arg("points"),
             nb::arg("origin"), nb::arg("colors").none(), nb::arg("truncation"))
        .def("extract_points", &extract_points, nb::arg("weight_threshold"))
        .def("extract_mesh", &extract_mesh, nb::arg("weight_threshold"))
        .def("ray_cast", &ray_cast, nb::arg("block_coords"), nb::arg("intrinsic"),
             nb::arg("extrinsic"), nb::arg("size"), nb::arg("names"), nb::arg("depths"),
             nb::arg("weight_threshold"), nb::arg("truncation"),
             "`size` is (width, height, range step), `depths` (scale, min, max).")
        .def("voxel_indices", &voxel_indices, nb::arg("buf_indices"))
        .def("voxel_places", &voxel_places, nb::arg("buf_indices"))
        .def("occupied_voxels", &occupied_voxels, nb::arg("weight_threshold"))
        .def("voxel_coordinates", &voxel_coordinates, nb::arg("voxel_indices"))
        .def("voxel_coords", &voxel_coords, nb::arg("flattened"));
}

}  // namespace tensorhash::bindings
