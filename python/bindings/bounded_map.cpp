// Binds BoundedHashMap: HashMap's methods with scores as an argument and evicted rows as a result.
#include "tensorhash/bounded_map.hpp"

#include <nanobind/stl/optional.h>

#include "evicted_out.hpp"
#include "optimizer.hpp"
#include "table_methods.hpp"

namespace tensorhash::bindings {
namespace {

void construct(BoundedHashMap* self, std::int64_t max_capacity, ElementSpec const& key,
               std::vector<ElementSpec> const& values, std::string const& eviction,
               std::string const& device, std::optional<std::uint64_t> seed) {
    std::vector<Element> elements = to_elements(values);
    Eviction const how = eviction_from_name(eviction);
    without_gil([&] {
        new (self) BoundedHashMap(Capacity{max_capacity}, to_element(key), std::move(elements), how,
                                  Device::parse(device), seed);
    });
}

}  // namespace

void bind_bounded_map(nb::module_& m) {
    nb::class_<BoundedHashMap> table(m, "BoundedHashMap",
                                     "A hash table with a maximum size. It evicts entries.");
    table
        .def("__init__", &construct, nb::arg("max_capacity"), nb::arg("key"), nb::arg("values"),
             nb::arg("eviction"), nb::arg("device"), nb::arg("seed").none() = nb::none())
        .def_prop_ro("eviction",
                     [](BoundedHashMap const& self) { return eviction_name(self.eviction()); });
    bind_evicting(table);
    bind_readers(table);
    bind_listings(table);
    bind_storage(table);
    m.def("update", &update_table<BoundedHashMap>, nb::arg("table"), nb::arg("keys"),
          nb::arg("gradients"), nb::arg("optimizer"), nb::arg("missing"), nb::arg("duplicates"),
          nb::arg("initial").none());
}

}  // namespace tensorhash::bindings
