// The bound BoundedHashMap: as HashMap, with scores in and evicted rows out.
#include "tensorhash/bounded_map.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "optimizer.hpp"
#include "table_methods.hpp"

namespace tensorhash::bindings {
namespace {

using Rows = std::tuple<Tensor, std::vector<Tensor>, Tensor>;  // keys, values, scores
using Result = std::tuple<Tensor, Tensor, Rows>;

Result to_result(Admitted&& admitted) {
    Evicted& gone = admitted.evicted;
    return {std::move(admitted.indices), std::move(admitted.mask),
            Rows{std::move(gone.keys), std::move(gone.values), std::move(gone.scores)}};
}

Tensor to_scores(nb::object const& scores) {
    return scores.is_none() ? Tensor() : to_tensor(scores, "scores", Dtype::Int64);
}

void construct(BoundedHashMap* self, std::int64_t max_capacity, ElementSpec const& key,
               std::vector<ElementSpec> const& values, std::string const& eviction,
               std::string const& device) {
    std::vector<Element> elements = to_elements(values);
    Eviction const how = eviction_from_name(eviction);
    without_gil([&] {
        new (self) BoundedHashMap(Capacity{max_capacity}, to_element(key), std::move(elements), how,
                                  Device::parse(device));
    });
}

Result accumulate(BoundedHashMap& self, nb::handle keys, Arrays const& values,
                  std::vector<std::string> const& reduce, nb::object scores) {
    Tensor const rows = key_rows(self, keys);
    std::vector<Tensor> const columns = to_tensors(values, "values", self.value_elements());
    std::vector<Reduce> const reductions = to_reduces(reduce);
    Tensor const ranks = to_scores(scores);
    return to_result(
        without_gil([&] { return self.accumulate(rows, columns, reductions, ranks); }));
}

Result activate(BoundedHashMap& self, nb::handle keys, nb::object scores) {
    Tensor const rows = key_rows(self, keys);
    Tensor const ranks = to_scores(scores);
    return to_result(without_gil([&] { return self.activate(rows, ranks); }));
}

std::vector<Tensor> get_and_touch(BoundedHashMap& self, nb::handle keys, Arrays const& defaults,
                                  nb::object scores) {
    Tensor const rows = key_rows(self, keys);
    std::vector<Tensor> const otherwise = to_tensors(defaults, "default", self.value_elements());
    Tensor const ranks = to_scores(scores);
    return without_gil([&] { return self.get_and_touch(rows, otherwise, ranks); });
}

}  // namespace

void bind_bounded_map(nb::module_& m) {
    nb::class_<BoundedHashMap> table(m, "BoundedHashMap", "A table that evicts.");
    table
        .def("__init__", &construct, nb::arg("max_capacity"), nb::arg("key"), nb::arg("values"),
             nb::arg("eviction"), nb::arg("device"))
        .def("accumulate", &accumulate, nb::arg("keys"), nb::arg("values"), nb::arg("reduce"),
             nb::arg("scores").none())
        .def("activate", &activate, nb::arg("keys"), nb::arg("scores").none())
        .def("get_and_touch", &get_and_touch, nb::arg("keys"), nb::arg("defaults"),
             nb::arg("scores").none())
        .def("scores",
             [](BoundedHashMap const& self) { return without_gil([&] { return self.scores(); }); })
        .def("clock",
             [](BoundedHashMap const& self) { return without_gil([&] { return self.clock(); }); })
        .def_prop_ro("eviction", [](BoundedHashMap const& self) {
            return self.eviction() == Eviction::Lru ? "lru" : "score";
        });
    bind_readers(table);
    bind_listings(table);
    bind_storage(table);
    m.def("update", &update_table<BoundedHashMap>, nb::arg("table"), nb::arg("keys"),
          nb::arg("gradients"), nb::arg("optimizer"), nb::arg("missing"), nb::arg("duplicates"),
          nb::arg("initial").none());
}

}  // namespace tensorhash::bindings
