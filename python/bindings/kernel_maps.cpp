// Binds KernelMap and the functions that make one.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>

#include "array_in.hpp"
#include "bindings.hpp"
#include "tensorhash/coords/kernel_map.hpp"
#include "tensorhash/coords/packed_hash_table.hpp"

namespace tensorhash::bindings {
namespace {

using coords::Kernel;
using coords::KernelMap;

KernelMap make_map(nb::handle in_coords, nb::handle out_coords, Shape const& stride,
                   Shape const& size, Shape const& dilation, Shape const& center,
                   std::optional<std::string> const& strategy, bool first_of_duplicates,
                   bool skip_symmetric, bool pair_table) {
    Tensor const in = to_tensor(in_coords, "in_coords", Dtype::Int32);
    Tensor const out = to_tensor(out_coords, "out_coords", Dtype::Int32);
    coords::KernelMapOptions options;
    if (strategy) options.strategy = coords::strategy_from_name(*strategy);
    if (first_of_duplicates) options.duplicates = coords::Duplicates::First;
    options.skip_symmetric = skip_symmetric;
    options.pair_table = pair_table;
    return without_gil([&] {
        return coords::generate_kernel_map(in, out, stride, Kernel{size, dilation, center},
                                           options);
    });
}

KernelMap map_of_offsets(nb::handle in_coords, nb::handle out_coords, Shape const& stride,
                         nb::handle kernel_offsets, bool first_of_duplicates) {
    Tensor const in = to_tensor(in_coords, "in_coords", Dtype::Int32);
    Tensor const out = to_tensor(out_coords, "out_coords", Dtype::Int32);
    Tensor const offsets = to_tensor(kernel_offsets, "kernel_offsets", Dtype::Int32);
    auto const duplicates =
        first_of_duplicates ? coords::Duplicates::First : coords::Duplicates::Refuse;
    return without_gil(
        [&] { return coords::kernel_map_from_offsets(in, out, stride, offsets, duplicates); });
}

/// A map from its parts, which must be contiguous and have the right dtypes.
KernelMap map_of_parts(nb::handle in_maps, nb::handle out_maps, nb::handle offsets,
                       std::int64_t num_in, std::int64_t num_out,
                       std::optional<std::int64_t> identity_map_index, std::string const& strategy,
                       std::int64_t coarse_probes, std::int64_t fine_probes) {
    KernelMap map;
    map.in_maps = to_tensor(in_maps, "in_maps", Dtype::Int32);
    map.out_maps = to_tensor(out_maps, "out_maps", Dtype::Int32);
    map.offsets = to_tensor(offsets, "offsets", Dtype::Int64);
    map.num_in = num_in;
    map.num_out = num_out;
    map.identity_map_index = identity_map_index;
    map.strategy = coords::strategy_from_name(strategy);
    map.coarse_probes = coarse_probes;
    map.fine_probes = fine_probes;
    return map;
}

KernelMap map_of_table(coords::CoordTableBase const& fine_ht, nb::handle query_coords,
                       Shape const& kernel_size, std::int64_t stride) {
    Tensor const queries = to_tensor(query_coords, "query_coords", Dtype::Int32);
    return without_gil([&] {
        return coords::kernel_map_from_size_hierarchical(fine_ht, queries, kernel_size, stride);
    });
}

std::tuple<Tensor, Tensor, Tensor> csr(KernelMap const& self) {
    coords::KernelMapCsr made = without_gil([&] { return coords::to_csr(self); });
    return {made.in_maps, made.out_rows, made.offsets};
}

}  // namespace

void bind_kernel_maps(nb::module_& m) {
    nb::class_<KernelMap>(m, "KernelMap", "Pairs (in row, out row), grouped by kernel offset.")
        .def_ro("in_maps", &KernelMap::in_maps)
        .def_ro("out_maps", &KernelMap::out_maps)
        .def_ro("offsets", &KernelMap::offsets)
        .def_ro("bounds", &KernelMap::bounds)
        .def_ro("num_in", &KernelMap::num_in)
        .def_ro("num_out", &KernelMap::num_out)
        .def_ro("identity_map_index", &KernelMap::identity_map_index)
        .def_ro("coarse_probes", &KernelMap::coarse_probes)
        .def_ro("fine_probes", &KernelMap::fine_probes)
        .def_prop_ro("strategy",
                     [](KernelMap const& self) { return std::string(name(self.strategy)); })
        .def("transpose",
             [](KernelMap const& self) {
                 return without_gil([&] { return coords::transpose(self); });
             })
        .def("pair_table",
             [](KernelMap const& self) {
                 return without_gil([&] { return coords::pair_table(self); });
             })
        .def("pair_mask",
             [](KernelMap const& self) {
                 return without_gil([&] { return coords::pair_mask(self); });
             })
        .def("to_csr", &csr);
    m.def("generate_kernel_map", &make_map, nb::arg("in_coords").none(),
          nb::arg("out_coords").none(), nb::arg("stride"), nb::arg("size"), nb::arg("dilation"),
          nb::arg("center"), nb::arg("strategy").none(), nb::arg("first_of_duplicates"),
          nb::arg("skip_symmetric"), nb::arg("pair_table"));
    m.def("kernel_map_from_offsets", &map_of_offsets, nb::arg("in_coords").none(),
          nb::arg("out_coords").none(), nb::arg("stride"), nb::arg("kernel_offsets").none(),
          nb::arg("first_of_duplicates"));
    m.def("kernel_map_from_parts", &map_of_parts, nb::arg("in_maps"), nb::arg("out_maps"),
          nb::arg("offsets"), nb::arg("num_in"), nb::arg("num_out"),
          nb::arg("identity_map_index").none(), nb::arg("strategy"), nb::arg("coarse_probes"),
          nb::arg("fine_probes"));
    m.def("hierarchical_kernel_map", &map_of_table, nb::arg("fine_ht"),
          nb::arg("query_coords").none(), nb::arg("kernel_size"), nb::arg("stride"));
    m.def(
        "kernel_offsets",
        [](Shape const& size, Shape const& dilation, Shape const& center) {
            return coords::kernel_offsets_from_size({size, dilation, center});
        },
        nb::arg("size"), nb::arg("dilation"), nb::arg("center"));
}

}  // namespace tensorhash::bindings
