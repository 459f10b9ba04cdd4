// Binds HashMap. Methods take Python arrays, release the GIL while the core works, and return bound
// tensors.
#include "tensorhash/hash_map.hpp"

#include <nanobind/stl/optional.h>

#include "table_methods.hpp"

namespace tensorhash::bindings {
namespace {

void construct(HashMap* self, std::int64_t init_capacity, ElementSpec const& key,
               std::vector<ElementSpec> const& values, std::string const& device,
               std::optional<std::uint64_t> seed) {
    std::vector<Element> elements = to_elements(values);
    without_gil([&] {
        new (self) HashMap(Capacity{init_capacity}, to_element(key), std::move(elements),
                           Device::parse(device), seed);
    });
}

HashMap from_items(nb::handle keys, Arrays const& values) {
    Tensor const rows = to_tensor(keys, "keys");
    std::vector<Tensor> const columns = to_tensors(values, "values");
    return without_gil([&] { return HashMap::from_items(rows, columns); });
}

HashMap from_parts(nb::handle keys, Arrays const& values, nb::handle buf_indices) {
    Tensor const rows = to_tensor(keys, "keys");
    std::vector<Tensor> const columns = to_tensors(values, "values");
    Tensor const indices = to_tensor(buf_indices, "buf_index");
    return without_gil([&] { return HashMap::from_parts(rows, columns, indices); });
}

std::vector<Tensor> unique_rows(nb::handle array, bool index, bool inverse, bool counts) {
    Tensor const rows = to_tensor(array, "array");
    Unique found = without_gil([&] { return unique(rows, {index, inverse, counts}); });
    std::vector<Tensor> parts{std::move(found.rows)};
    if (index) parts.push_back(std::move(found.index));
    if (inverse) parts.push_back(std::move(found.inverse));
    if (counts) parts.push_back(std::move(found.counts));
    return parts;
}

}  // namespace

void bind_hash_map(nb::module_& m) {
    nb::class_<HashMap> table(m, "HashMap",
                              "A hash table. A HashSet is one without value columns.");
    table.def("__init__", &construct, nb::arg("init_capacity"), nb::arg("key"), nb::arg("values"),
              nb::arg("device"), nb::arg("seed").none() = nb::none());
    bind_adding(table);
    table
        .def(
            "reserve",
            [](HashMap& self, std::int64_t rows) {
                without_gil([&] { self.reserve(Capacity{rows}); });
            },
            nb::arg("capacity"))
        .def("shrink_to_fit", [](HashMap& self) { without_gil([&] { self.shrink_to_fit(); }); })
        .def(
            "to",
            [](HashMap const& self, std::string const& device) {
                return without_gil([&] { return self.to(Device::parse(device)); });
            },
            nb::arg("device"), "A copy on another device, with the same buffer indices.")
        .def_static("from_items", &from_items, nb::arg("keys"), nb::arg("values"))
        .def_static(
            "memory_for",
            [](std::int64_t capacity, ElementSpec const& key,
               std::vector<ElementSpec> const& values) {
                return HashMap::memory_for(Capacity{capacity}, to_element(key),
                                           to_elements(values));
            },
            nb::arg("capacity"), nb::arg("key"), nb::arg("values"))
        .def_static("from_parts", &from_parts, nb::arg("keys"), nb::arg("values"),
                    nb::arg("buf_indices"));
    bind_readers(table);
    bind_listings(table);
    bind_storage(table);
    m.def("unique", &unique_rows, nb::arg("array"), nb::arg("index"), nb::arg("inverse"),
          nb::arg("counts"), "[distinct rows], then index, inverse and counts if requested.");
}

}  // namespace tensorhash::bindings
