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

/// Converts the arguments of a verb that adds keys, and calls verb(keys, values, scores) without
/// the GIL.
template <class Map, class Verb>
AdmittedRows call_adding(Map& self, nb::handle keys, Arrays const& values, nb::object const& scores,
                         Verb&& verb) {
    Tensor const rows = key_rows(self, keys);
    std::vector<Tensor> const columns = to_tensors(values, "values", self.value_elements());
    Tensor const ranks = to_scores(scores);
    return to_rows(without_gil([&] { return verb(rows, columns, ranks); }));
}

/// Binds the methods that only tables with eviction have. On a table that may be bounded or not,
/// the `scores` argument selects the overload.
template <class Map>
void bind_evicting(nb::class_<Map>& table) {
    using Columns = std::vector<Tensor>;
    table
        .def(
            "insert",
            [](Map& self, nb::handle keys, Arrays const& values, nb::object scores) {
                return call_adding(
                    self, keys, values, scores,
                    [&](Tensor const& rows, Columns const& columns, Tensor const& ranks) {
                        return self.insert(rows, columns, ranks);
                    });
            },
            nb::arg("keys"), nb::arg("values"), nb::arg("scores").none())
        .def(
            "insert_or_assign",
            [](Map& self, nb::handle keys, Arrays const& values, nb::object scores) {
                return call_adding(
                    self, keys, values, scores,
                    [&](Tensor const& rows, Columns const& columns, Tensor const& ranks) {
                        return self.insert_or_assign(rows, columns, ranks);
                    });
            },
            nb::arg("keys"), nb::arg("values"), nb::arg("scores").none())
        .def(
            "accumulate",
            [](Map& self, nb::handle keys, Arrays const& values,
               std::vector<std::string> const& reduce, nb::object scores) {
                std::vector<Reduce> const reductions = to_reduces(reduce);
                return call_adding(
                    self, keys, values, scores,
                    [&](Tensor const& rows, Columns const& columns, Tensor const& ranks) {
                        return self.accumulate(rows, columns, reductions, ranks);
                    });
            },
            nb::arg("keys"), nb::arg("values"), nb::arg("reduce"), nb::arg("scores").none())
        .def(
            "activate",
            [](Map& self, nb::handle keys, nb::object scores) {
                Tensor const rows = key_rows(self, keys);
                Tensor const ranks = to_scores(scores);
                return to_rows(without_gil([&] { return self.activate(rows, ranks); }));
            },
            nb::arg("keys"), nb::arg("scores").none())
        .def("get_and_touch", &get_and_touch<Map>, nb::arg("keys"), nb::arg("defaults"),
             nb::arg("scores").none())
        .def("scores", [](Map const& self) { return without_gil([&] { return self.scores(); }); })
        .def("clock", [](Map const& self) { return without_gil([&] { return self.clock(); }); });
}

}  // namespace tensorhash::bindings
