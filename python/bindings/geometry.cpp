// Binds the core's free functions for tensorhash.coords: voxels, neighbours and operations on
// coordinates.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array_in.hpp"
#include "bindings.hpp"
#include "neighbours.hpp"
#include "tensorhash/coords/neighbours.hpp"
#include "tensorhash/coords/ops.hpp"
#include "tensorhash/coords/voxels.hpp"

namespace tensorhash::bindings {
namespace {

Tensor voxel_coords(nb::handle points, std::vector<double> const& voxel_size,
                    std::vector<double> const& origin, nb::handle batch, std::string const& dtype) {
    Tensor const rows = to_tensor(points, "points");
    std::optional<Tensor> const batches = optional_tensor(batch, "batch");
    return without_gil([&] {
        return coords::voxel_coords(rows, voxel_size, origin, batches, dtype_from_name(dtype));
    });
}

Tensor voxel_means(nb::handle points, std::vector<double> const& voxel_size,
                   std::vector<double> const& origin) {
    Tensor const rows = to_tensor(points, "points");
    return without_gil([&] { return coords::voxel_means(rows, voxel_size, origin); });
}

Tensor reduce_voxels(nb::handle values, nb::handle inverse, std::int64_t voxels,
                     std::string const& reduce) {
    Tensor const rows = to_tensor(values, "features");
    Tensor const voxel_of_row = to_tensor(inverse, "inverse");
    return without_gil([&] {
        return coords::reduce_voxels(rows, voxel_of_row, voxels,
                                     coords::voxel_reduce_from_name(reduce));
    });
}

Tensor nearest_to_centers(nb::handle points, std::vector<double> const& voxel_size,
                          std::vector<double> const& origin, nb::handle inverse,
                          std::int64_t voxels) {
    Tensor const rows = to_tensor(points, "points");
    Tensor const voxel_of_row = to_tensor(inverse, "inverse");
    return without_gil(
        [&] { return coords::nearest_to_centers(rows, voxel_size, origin, voxel_of_row, voxels); });
}

Tensor nearest_to_centroids(nb::handle points, nb::handle inverse, std::int64_t voxels) {
    Tensor const rows = to_tensor(points, "points");
    Tensor const voxel_of_row = to_tensor(inverse, "inverse");
    return without_gil([&] { return coords::nearest_to_centroids(rows, voxel_of_row, voxels); });
}

Tensor mode_rows(nb::handle labels, std::optional<std::int64_t> ignore_label, nb::handle inverse,
                 std::int64_t voxels) {
    Tensor const rows = to_tensor(labels, "features");
    Tensor const voxel_of_row = to_tensor(inverse, "inverse");
    return without_gil([&] { return coords::mode_rows(rows, ignore_label, voxel_of_row, voxels); });
}

Csr radius_search(nb::handle points, nb::handle queries, double radius, nb::handle batch,
                  nb::handle query_batch, std::optional<std::int64_t> max_neighbors) {
    coords::Cloud const cloud = to_cloud(points, batch, "points", "batch");
    coords::Cloud const query_cloud = to_cloud(queries, query_batch, "queries", "query_batch");
    return to_csr(without_gil(
        [&] { return coords::radius_search(cloud, query_cloud, radius, max_neighbors); }));
}

Csr knn_search(nb::handle points, nb::handle queries, std::int64_t k, nb::handle batch,
               nb::handle query_batch) {
    coords::Cloud const cloud = to_cloud(points, batch, "points", "batch");
    coords::Cloud const query_cloud = to_cloud(queries, query_batch, "queries", "query_batch");
    return to_csr(without_gil([&] { return coords::knn_search(cloud, query_cloud, k); }));
}

using Pair = std::pair<Tensor, Tensor>;

Pair expand_coords(nb::handle coordinates, nb::handle offsets, std::int64_t chunk,
                   std::optional<std::int64_t> batches) {
    Tensor const rows = to_tensor(coordinates, "coords");
    Tensor const shifts = to_tensor(offsets, "offsets");
    coords::BatchedCoords out =
        without_gil([&] { return coords::expand_coords(rows, shifts, chunk, batches); });
    return {std::move(out.coords), std::move(out.offsets)};
}

Pair stride_coords(nb::handle coordinates, std::vector<std::int64_t> const& stride,
                   std::optional<std::int64_t> batches) {
    Tensor const rows = to_tensor(coordinates, "coords");
    coords::BatchedCoords out =
        without_gil([&] { return coords::stride_coords(rows, stride, batches); });
    return {std::move(out.coords), std::move(out.offsets)};
}

}  // namespace

void bind_geometry(nb::module_& m) {
    m.def("voxel_coords", &voxel_coords, nb::arg("points"), nb::arg("voxel_size"),
          nb::arg("origin"), nb::arg("batch").none(), nb::arg("dtype"));
    m.def("voxel_means", &voxel_means, nb::arg("points"), nb::arg("voxel_size"), nb::arg("origin"));
    m.def("reduce_voxels", &reduce_voxels, nb::arg("values"), nb::arg("inverse"), nb::arg("voxels"),
          nb::arg("reduce"));
    m.def("nearest_to_centers", &nearest_to_centers, nb::arg("points"), nb::arg("voxel_size"),
          nb::arg("origin"), nb::arg("inverse"), nb::arg("voxels"));
    m.def("nearest_to_centroids", &nearest_to_centroids, nb::arg("points"), nb::arg("inverse"),
          nb::arg("voxels"));
    m.def("mode_rows", &mode_rows, nb::arg("labels"), nb::arg("ignore_label").none(),
          nb::arg("inverse"), nb::arg("voxels"));
    m.def("radius_search", &radius_search, nb::arg("points"), nb::arg("queries"), nb::arg("radius"),
          nb::arg("batch").none(), nb::arg("query_batch").none(), nb::arg("max_neighbors").none(),
          "(indices int64 [P], distances float64 [P], offsets int64 [M + 1]).");
    m.def("knn_search", &knn_search, nb::arg("points"), nb::arg("queries"), nb::arg("k"),
          nb::arg("batch").none(), nb::arg("query_batch").none(),
          "(indices int64 [P], distances float64 [P], offsets int64 [M + 1]).");
    m.def("expand_coords", &expand_coords, nb::arg("coords"), nb::arg("offsets"), nb::arg("chunk"),
          nb::arg("batches").none(), "(coords [M, 1 + D], batch offsets int64 [B + 1]).");
    m.def("stride_coords", &stride_coords, nb::arg("coords"), nb::arg("stride"),
          nb::arg("batches").none(), "(coords [M, 1 + D], batch offsets int64 [B + 1]).");
}

}  // namespace tensorhash::bindings
