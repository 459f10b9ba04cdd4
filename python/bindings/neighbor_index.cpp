// Binds NeighborIndex of tensorhash.geometry.
#include "tensorhash/geometry/neighbor_index.hpp"

#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>

#include "array_in.hpp"
#include "bindings.hpp"
#include "neighbours.hpp"

namespace tensorhash::bindings {
namespace {

using geometry::NeighborIndex;

std::optional<coords::Cloud> optional_queries(nb::handle points, nb::handle batch) {
    if (points.is_none()) return std::nullopt;
    return to_cloud(points, batch, "queries", "query_batch");
}

void construct(NeighborIndex* self, nb::handle points, nb::handle batch) {
    coords::Cloud const cloud = to_cloud(points, batch, "points", "batch");
    without_gil([&] { new (self) NeighborIndex(cloud); });
}

Csr radius(NeighborIndex const& self, double radius, nb::handle queries, nb::handle query_batch,
           std::optional<std::int64_t> max_neighbors) {
    auto const cloud = optional_queries(queries, query_batch);
    return to_csr(without_gil([&] { return self.radius(radius, cloud, max_neighbors); }));
}

Csr knn(NeighborIndex const& self, std::int64_t k, nb::handle queries, nb::handle query_batch) {
    auto const cloud = optional_queries(queries, query_batch);
    return to_csr(without_gil([&] { return self.knn(k, cloud); }));
}

}  // namespace

void bind_neighbor_index(nb::module_& m) {
    nb::class_<NeighborIndex>(m, "NeighborIndex", "Points that are searched many times.")
        .def("__init__", &construct, nb::arg("points"), nb::arg("batch").none())
        .def("radius", &radius, nb::arg("radius"), nb::arg("queries").none(),
             nb::arg("query_batch").none(), nb::arg("max_neighbors").none())
        .def("knn", &knn, nb::arg("k"), nb::arg("queries").none(), nb::arg("query_batch").none())
        .def_prop_ro("size", &NeighborIndex::size)
        .def_prop_ro("axes", &NeighborIndex::axes);
}

}  // namespace tensorhash::bindings
