// Binds the coordinate tables. Methods take Python arrays, release the GIL while the core works,
// and return bound tensors.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "array_in.hpp"
#include "bindings.hpp"
#include "tensorhash/coords/packed_hash_table.hpp"
#include "tensorhash/coords/torch_hash_table.hpp"

namespace tensorhash::bindings {
namespace {

using coords::CoordKey;
using coords::CoordTable;
using coords::CoordTableBase;
using coords::PackedHashTable;
using coords::PackedHashTable128;
using coords::SearchMode;
using coords::TorchHashTable;

std::optional<Capacity> to_capacity(std::optional<std::int64_t> rows) {
    return rows ? std::optional(Capacity{*rows}) : std::nullopt;
}

/// Calls a method that has no arguments, without the GIL.
template <auto Method, class Table>
auto without_arguments(Table const& self) {
    return without_gil([&] { return (self.*Method)(); });
}

void insert(CoordTableBase& self, nb::handle coords) {
    Tensor const rows = to_tensor(coords, "coords");
    without_gil([&] { self.insert(rows); });
}

Tensor search(CoordTableBase const& self, nb::handle query, int mode) {
    Tensor const rows = to_tensor(query, "query");
    return without_gil([&] { return self.search(rows, static_cast<SearchMode>(mode)); });
}

Tensor batched_search(CoordTableBase const& self, nb::handle queries, nb::handle offsets) {
    Tensor const rows = to_tensor(queries, "queries");
    Tensor const by = to_tensor(offsets, "offsets");
    return without_gil([&] { return self.batched_search(rows, by); });
}

void expand_with_offsets(CoordTableBase& self, nb::handle base_rows, nb::handle offsets) {
    Tensor const base = to_tensor(base_rows, "base");
    Tensor const by = to_tensor(offsets, "offsets");
    without_gil([&] { self.expand_with_offsets(base, by); });
}

char const* key_name(CoordTableBase const& self) {
    switch (self.key()) {
        case CoordKey::Packed64:
            return "packed64";
        case CoordKey::Packed128:
            return "packed128";
        default:
            return "wide";
    }
}

void bind_base(nb::module_& m) {
    using Base = CoordTableBase;
    nb::class_<Base>(m, "CoordTableBase", "The common base of the coordinate tables.")
        .def("insert", &insert, nb::arg("coords"))
        .def("search", &search, nb::arg("query"), nb::arg("mode"))
        .def("expand_with_offsets", &expand_with_offsets, nb::arg("base"), nb::arg("offsets"))
        .def("batched_search", &batched_search, nb::arg("queries"), nb::arg("offsets"))
        .def("clear", [](Base& self) { without_gil([&] { self.clear(); }); })
        .def("grow_on_demand", [](Base& self) { without_gil([&] { self.grow_on_demand(); }); })
        .def("grows", &without_arguments<&Base::grows, Base>)
        .def("vector_keys", &without_arguments<&Base::vector_keys, Base>)
        .def("unique_index", &without_arguments<&Base::unique_index, Base>)
        .def("keys_tensor", &without_arguments<&Base::keys_tensor, Base>)
        .def("values_tensor", &without_arguments<&Base::values_tensor, Base>)
        .def("capacity", &without_arguments<&Base::capacity, Base>)
        .def("num_entries", &without_arguments<&Base::num_entries, Base>)
        .def("num_distinct", &without_arguments<&Base::num_distinct, Base>)
        .def("key_dim", &without_arguments<&Base::key_dim, Base>)
        .def_prop_ro("device", [](Base const& self) { return to_string(self.device()); })
        .def("use_double_hash", &Base::use_double_hash)
        .def("key", &key_name);
}

void bind_packed(nb::module_& m) {
    nb::class_<PackedHashTable, CoordTableBase>(m, "PackedHashTable")
        .def(
            "__init__",
            [](PackedHashTable* self, std::optional<std::int64_t> capacity,
               std::string const& device, bool use_double_hash) {
                without_gil([&] {
                    new (self) PackedHashTable(to_capacity(capacity), Device::parse(device),
                                               use_double_hash);
                });
            },
            nb::arg("capacity").none(), nb::arg("device"), nb::arg("use_double_hash"));
    nb::class_<CoordTable, CoordTableBase>(m, "CoordTable")
        .def(
            "__init__",
            [](CoordTable* self, std::optional<std::int64_t> capacity, std::string const& device,
               bool use_double_hash, std::optional<int> key_dim,
               std::optional<std::uint64_t> seed) {
                without_gil([&] {
                    new (self) CoordTable(to_capacity(capacity), Device::parse(device),
                                          use_double_hash, key_dim, seed);
                });
            },
            nb::arg("capacity").none(), nb::arg("device"), nb::arg("use_double_hash"),
            nb::arg("key_dim").none(), nb::arg("seed").none() = nb::none());
    nb::class_<PackedHashTable128, CoordTableBase>(m, "PackedHashTable128")
        .def(
            "__init__",
            [](PackedHashTable128* self, std::optional<std::int64_t> capacity,
               std::string const& device, std::optional<int> key_dim) {
                without_gil([&] {
                    new (self)
                        PackedHashTable128(to_capacity(capacity), Device::parse(device), key_dim);
                });
            },
            nb::arg("capacity").none(), nb::arg("device"), nb::arg("key_dim").none());
}

void bind_torch_readers(nb::class_<TorchHashTable>& table) {
    table
        .def(
            "search",
            [](TorchHashTable const& self, nb::handle search_keys) {
                Tensor const rows = to_tensor(search_keys, "search_keys");
                return without_gil([&] { return self.search(rows); });
            },
            nb::arg("search_keys"))
        .def("vector_keys", &without_arguments<&TorchHashTable::vector_keys, TorchHashTable>)
        .def("unique_index", &without_arguments<&TorchHashTable::unique_index, TorchHashTable>)
        .def("table_kvs", &without_arguments<&TorchHashTable::table_kvs, TorchHashTable>)
        .def("grows", &TorchHashTable::grows)
        .def("capacity", &without_arguments<&TorchHashTable::capacity, TorchHashTable>)
        .def("num_entries", &without_arguments<&TorchHashTable::num_entries, TorchHashTable>)
        .def("num_distinct", &without_arguments<&TorchHashTable::num_distinct, TorchHashTable>)
        .def("key_dim", &without_arguments<&TorchHashTable::key_dim, TorchHashTable>)
        .def_prop_ro("device", [](TorchHashTable const& self) { return to_string(self.device()); });
}

void bind_torch(nb::module_& m) {
    nb::class_<TorchHashTable> table(m, "TorchHashTable");
    table
        .def(
            "__init__",
            [](TorchHashTable* self, std::int64_t capacity, std::string const& device) {
                without_gil(
                    [&] { new (self) TorchHashTable(Capacity{capacity}, Device::parse(device)); });
            },
            nb::arg("capacity"), nb::arg("device"))
        .def_static(
            "from_keys",
            [](nb::handle vec_keys, std::optional<std::int64_t> capacity,
               std::string const& device) {
                Tensor const rows = to_tensor(vec_keys, "vec_keys");
                return without_gil([&] {
                    return TorchHashTable::from_keys(rows, to_capacity(capacity),
                                                     Device::parse(device));
                });
            },
            nb::arg("vec_keys"), nb::arg("capacity").none(), nb::arg("device"))
        .def_static(
            "restore",
            [](nb::handle vec_keys, std::int64_t capacity, bool grows) {
                Tensor const rows = to_tensor(vec_keys, "vec_keys");
                return without_gil(
                    [&] { return TorchHashTable::restore(rows, Capacity{capacity}, grows); });
            },
            nb::arg("vec_keys"), nb::arg("capacity"), nb::arg("grows"))
        .def(
            "insert",
            [](TorchHashTable& self, nb::handle vec_keys) {
                Tensor const rows = to_tensor(vec_keys, "vec_keys");
                without_gil([&] { self.insert(rows); });
            },
            nb::arg("vec_keys"));
    bind_torch_readers(table);
}

}  // namespace

void bind_coords_tables(nb::module_& m) {
    bind_base(m);
    bind_packed(m);
    bind_torch(m);
}

}  // namespace tensorhash::bindings
