// Binds the methods that several tables share.
#pragma once

#include "table_in.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::bindings {

template <class Map>
Tensor value_tensor(Map const& self, std::int64_t column) {
    auto const columns = static_cast<std::int64_t>(self.value_elements().size());
    if (column < 0 || column >= columns) {
        throw IndexError("value_buffer_id: expected 0 <= value_buffer_id < " +
                         std::to_string(columns) + ", got " + std::to_string(column));
    }
    return self.value_tensor(static_cast<std::size_t>(column));
}

template <class Map>
nb::typed<nb::dict, nb::str, nb::int_> memory_usage(Map const& self) {
    MemoryUsage const usage = without_gil([&] { return self.memory_usage(); });
    nb::dict bytes;
    bytes["keys"] = usage.keys;
    bytes["values"] = usage.values;
    bytes["index"] = usage.index;
    bytes["bookkeeping"] = usage.bookkeeping;
    bytes["total"] = usage.total();
    return bytes;
}

/// Binds the verbs that add keys to a table that grows.
template <class Map>
void bind_adding(nb::class_<Map>& table) {
    using Columns = std::vector<Tensor>;
    table
        .def(
            "insert",
            [](Map& self, nb::handle keys, Arrays const& values) {
                return to_pair(keys_and_values(self, keys, values,
                                               [&](Tensor const& rows, Columns const& columns) {
                                                   return self.insert(rows, columns);
                                               }));
            },
            nb::arg("keys"), nb::arg("values"))
        .def(
            "insert_or_assign",
            [](Map& self, nb::handle keys, Arrays const& values) {
                return to_pair(keys_and_values(self, keys, values,
                                               [&](Tensor const& rows, Columns const& columns) {
                                                   return self.insert_or_assign(rows, columns);
                                               }));
            },
            nb::arg("keys"), nb::arg("values"))
        .def(
            "accumulate",
            [](Map& self, nb::handle keys, Arrays const& values,
               std::vector<std::string> const& reduce) {
                return to_pair(keys_and_values(
                    self, keys, values, [&](Tensor const& rows, Columns const& columns) {
                        return self.accumulate(rows, columns, to_reduces(reduce));
                    }));
            },
            nb::arg("keys"), nb::arg("values"), nb::arg("reduce"))
        .def(
            "activate",
            [](Map& self, nb::handle keys) {
                Tensor const rows = key_rows(self, keys);
                return to_pair(without_gil([&] { return self.activate(rows); }));
            },
            nb::arg("keys"));
}

template <class Map>
void bind_readers(nb::class_<Map>& table) {
    table
        .def(
            "find",
            [](Map const& self, nb::handle keys) {
                Tensor const rows = key_rows(self, keys);
                return to_pair(without_gil([&] { return self.find(rows); }));
            },
            nb::arg("keys"))
        .def(
            "contains",
            [](Map const& self, nb::handle keys) {
                Tensor const rows = key_rows(self, keys);
                return without_gil([&] { return self.contains(rows); });
            },
            nb::arg("keys"))
        .def(
            "erase",
            [](Map& self, nb::handle keys) {
                Tensor const rows = key_rows(self, keys);
                return without_gil([&] { return self.erase(rows); });
            },
            nb::arg("keys"))
        .def(
            "get",
            [](Map const& self, nb::handle keys, Arrays const& defaults) {
                Tensor const rows = key_rows(self, keys);
                std::vector<Tensor> const otherwise =
                    to_tensors(defaults, "default", self.value_elements());
                return without_gil([&] { return self.get(rows, otherwise); });
            },
            nb::arg("keys"), nb::arg("defaults"));
}

template <class Map>
void bind_listings(nb::class_<Map>& table) {
    table
        .def("active_buf_indices",
             [](Map const& self) { return without_gil([&] { return self.active_buf_indices(); }); })
        .def("keys", [](Map const& self) { return without_gil([&] { return self.keys(); }); })
        .def("items",
             [](Map const& self) -> std::pair<Tensor, std::vector<Tensor>> {
                 Items both = without_gil([&] { return self.items(); });
                 return {std::move(both.keys), std::move(both.values)};
             })
        .def("key_tensor",
             [](Map const& self) { return without_gil([&] { return self.key_tensor(); }); })
        .def("value_tensor", &value_tensor<Map>, nb::arg("column"))
        .def("size", [](Map const& self) { return without_gil([&] { return self.size(); }); })
        .def("capacity",
             [](Map const& self) { return without_gil([&] { return self.capacity(); }); })
        .def_prop_ro("key_element", [](Map const& self) { return to_spec(self.key_element()); })
        .def_prop_ro("value_elements",
                     [](Map const& self) { return to_specs(self.value_elements()); })
        .def_prop_ro("device", [](Map const& self) { return to_string(self.device()); })
        .def("memory_usage", &memory_usage<Map>)
        .def("validate", [](Map const& self) { without_gil([&] { self.validate(); }); });
}

/// Files and images, for every class that has them.
template <class Saved>
void bind_files(nb::class_<Saved>& saved) {
    saved
        .def(
            "save",
            [](Saved const& self, nb::bytes const& file_name) {
                std::string const path = path_of(file_name);
                without_gil([&] { self.save(path); });
            },
            nb::arg("file_name"))
        .def_static(
            "load",
            [](nb::bytes const& file_name, std::optional<std::uint64_t> max_bytes) {
                std::string const path = path_of(file_name);
                return without_gil([&] { return Saved::load(path, max_bytes); });
            },
            nb::arg("file_name"), nb::arg("max_bytes").none())
        .def("to_bytes",
             [](Saved const& self) { return without_gil([&] { return self.to_bytes(); }); })
        .def_static(
            "from_bytes",
            [](nb::handle bytes) {
                Tensor const image = to_tensor(bytes, "bytes");
                return without_gil([&] { return Saved::from_bytes(image, kNoLimit); });
            },
            nb::arg("bytes"));
}

template <class Map>
void bind_storage(nb::class_<Map>& table) {
    table.def("clear", [](Map& self) { without_gil([&] { self.clear(); }); })
        .def("compact", [](Map& self) { return without_gil([&] { return self.compact(); }); })
        .def("clone", [](Map const& self) { return without_gil([&] { return self.clone(); }); });
    bind_files(table);
}

}  // namespace tensorhash::bindings
