// Shared by the bindings of tables that evict: scores as an argument, evicted rows as a result.
#pragma once

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "table_in.hpp"
#include "tensorhash/bounded_map.hpp"

namespace tensorhash::bindings {

using EvictedRows = std::tuple<Tensor, std::vector<Tensor>, Tensor>;  // keys, values, scores
using AdmittedRows = std::tuple<Tensor, Tensor, EvictedRows>;         // indices, mask, evicted

inline AdmittedRows to_rows(Admitted&& admitted) {
    Evicted& gone = admitted.evicted;
    return {std::move(admitted.indices), std::move(admitted.mask),
            EvictedRows{std::move(gone.keys), std::move(gone.values), std::move(gone.scores)}};
}

inline Tensor to_scores(nb::object const& scores) {
    return scores.is_none() ? Tensor() : to_tensor(scores, "scores", Dtype::Int64);
}

inline char const* eviction_name(Eviction eviction) {
    return eviction == Eviction::Lru ? "lru" : "score";
}

template <class Map>
std::vector<Tensor> get_and_touch(Map& self, nb::handle keys, Arrays const& defaults,
                                  nb::object scores) {
    Tensor const rows = key_rows(self, keys);
    std::vector<Tensor> const otherwise = to_tensors(defaults, "default", self.value_elements());
    Tensor const ranks = to_scores(scores);
    return without_gil([&] { return self.get_and_touch(rows, otherwise, ranks); });
}

/// Binds the methods that only tables with eviction have. `Add` takes keys, values, one reduction
/// per column and scores.
template <auto Add, class Map>
void bind_evicting(nb::class_<Map>& table) {
    table
        .def(
            "accumulate",
            [](Map& self, nb::handle keys, Arrays const& values,
               std::vector<std::string> const& reduce, nb::object scores) {
                Tensor const rows = key_rows(self, keys);
                std::vector<Tensor> const columns =
                    to_tensors(values, "values", self.value_elements());
                std::vector<Reduce> const reductions = to_reduces(reduce);
                Tensor const ranks = to_scores(scores);
                return to_rows(
                    without_gil([&] { return (self.*Add)(rows, columns, reductions, ranks); }));
            },
            nb::arg("keys"), nb::arg("values"), nb::arg("reduce"), nb::arg("scores").none())
        .def("get_and_touch", &get_and_touch<Map>, nb::arg("keys"), nb::arg("defaults"),
             nb::arg("scores").none())
        .def("scores", [](Map const& self) { return without_gil([&] { return self.scores(); }); })
        .def("clock", [](Map const& self) { return without_gil([&] { return self.clock(); }); });
}

}  // namespace tensorhash::bindings
