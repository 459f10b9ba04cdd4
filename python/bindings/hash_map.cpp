// The bound HashMap: Python arrays in, bound tensors out, the GIL released around the core's work.
#include "tensorhash/hash_map.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "table_in.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::bindings {
namespace {

void construct(HashMap* self, std::int64_t init_capacity, ElementSpec const& key,
               std::vector<ElementSpec> const& values, std::string const& device) {
    std::vector<Element> elements = to_elements(values);
    without_gil([&] {
        new (self) HashMap(Capacity{init_capacity}, to_element(key), std::move(elements),
                           Device::parse(device));
    });
}

// Every batch verb has the same three steps: arrays in, work without the GIL, tensors out.
template <Located (HashMap::*verb)(Tensor const&, std::vector<Tensor> const&)>
Pair keys_and_values(HashMap& self, nb::handle keys, Arrays const& values) {
    Tensor const rows = key_rows(self, keys);
    std::vector<Tensor> const columns = to_tensors(values, "values", self.value_elements());
    return to_pair(without_gil([&] { return (self.*verb)(rows, columns); }));
}

Pair activate(HashMap& self, nb::handle keys) {
    Tensor const rows = key_rows(self, keys);
    return to_pair(without_gil([&] { return self.activate(rows); }));
}

Pair accumulate(HashMap& self, nb::handle keys, Arrays const& values,
                std::vector<std::string> const& reduce) {
    Tensor const rows = key_rows(self, keys);
    std::vector<Tensor> const columns = to_tensors(values, "values", self.value_elements());
    std::vector<Reduce> const reductions = to_reduces(reduce);
    return to_pair(without_gil([&] { return self.accumulate(rows, columns, reductions); }));
}

Pair find(HashMap const& self, nb::handle keys) {
    Tensor const rows = key_rows(self, keys);
    return to_pair(without_gil([&] { return self.find(rows); }));
}

Tensor contains(HashMap const& self, nb::handle keys) {
    Tensor const rows = key_rows(self, keys);
    return without_gil([&] { return self.contains(rows); });
}

Tensor erase(HashMap& self, nb::handle keys) {
    Tensor const rows = key_rows(self, keys);
    return without_gil([&] { return self.erase(rows); });
}

std::vector<Tensor> get(HashMap const& self, nb::handle keys, Arrays const& defaults) {
    Tensor const rows = key_rows(self, keys);
    std::vector<Tensor> const otherwise = to_tensors(defaults, "default", self.value_elements());
    return without_gil([&] { return self.get(rows, otherwise); });
}

std::pair<Tensor, std::vector<Tensor>> items(HashMap const& self) {
    Items both = without_gil([&] { return self.items(); });
    return {std::move(both.keys), std::move(both.values)};
}

Tensor value_tensor(HashMap const& self, std::int64_t column) {
    auto const columns = static_cast<std::int64_t>(self.value_elements().size());
    if (column < 0 || column >= columns) {
        throw IndexError("value_buffer_id: expected 0 <= value_buffer_id < " +
                         std::to_string(columns) + ", got " + std::to_string(column));
    }
    return self.value_tensor(static_cast<std::size_t>(column));
}

nb::typed<nb::dict, nb::str, nb::int_> memory_usage(HashMap const& self) {
    MemoryUsage const usage = without_gil([&] { return self.memory_usage(); });
    nb::dict bytes;
    bytes["keys"] = usage.keys;
    bytes["values"] = usage.values;
    bytes["index"] = usage.index;
    bytes["bookkeeping"] = usage.bookkeeping;
    bytes["total"] = usage.total();
    return bytes;
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

HashMap from_bytes(nb::handle bytes) {
    Tensor const image = to_tensor(bytes, "bytes");
    return without_gil([&] { return HashMap::from_bytes(image); });
}

std::tuple<Tensor, Tensor, Tensor, Tensor> unique_rows(nb::handle array) {
    Tensor const rows = to_tensor(array, "array");
    Unique found = without_gil([&] { return unique(rows); });
    return {std::move(found.rows), std::move(found.index), std::move(found.inverse),
            std::move(found.counts)};
}

void bind_listings(nb::class_<HashMap>& table) {
    table
        .def("active_buf_indices",
             [](HashMap const& self) {
                 return without_gil([&] { return self.active_buf_indices(); });
             })
        .def("keys", [](HashMap const& self) { return without_gil([&] { return self.keys(); }); })
        .def("items", &items)
        .def("key_tensor",
             [](HashMap const& self) { return without_gil([&] { return self.key_tensor(); }); })
        .def("value_tensor", &value_tensor, nb::arg("column"))
        .def("size", [](HashMap const& self) { return without_gil([&] { return self.size(); }); })
        .def("capacity",
             [](HashMap const& self) { return without_gil([&] { return self.capacity(); }); })
        .def_prop_ro("key_element", [](HashMap const& self) { return to_spec(self.key_element()); })
        .def_prop_ro("value_elements",
                     [](HashMap const& self) { return to_specs(self.value_elements()); })
        .def_prop_ro("device", [](HashMap const& self) { return to_string(self.device()); })
        .def("memory_usage", &memory_usage)
        .def("validate", [](HashMap const& self) { without_gil([&] { self.validate(); }); });
}

void bind_storage(nb::class_<HashMap>& table) {
    table
        .def(
            "reserve",
            [](HashMap& self, std::int64_t rows) {
                without_gil([&] { self.reserve(Capacity{rows}); });
            },
            nb::arg("capacity"))
        .def("clear", [](HashMap& self) { without_gil([&] { self.clear(); }); })
        .def("compact", [](HashMap& self) { return without_gil([&] { return self.compact(); }); })
        .def("clone", [](HashMap const& self) { return without_gil([&] { return self.clone(); }); })
        .def(
            "save",
            [](HashMap const& self, nb::bytes const& file_name) {
                std::string const path = path_of(file_name);
                without_gil([&] { self.save(path); });
            },
            nb::arg("file_name"))
        .def_static(
            "load",
            [](nb::bytes const& file_name) {
                std::string const path = path_of(file_name);
                return without_gil([&] { return HashMap::load(path); });
            },
            nb::arg("file_name"))
        .def("to_bytes",
             [](HashMap const& self) { return without_gil([&] { return self.to_bytes(); }); })
        .def_static("from_bytes", &from_bytes, nb::arg("bytes"))
        .def_static("from_items", &from_items, nb::arg("keys"), nb::arg("values"))
        .def_static("from_parts", &from_parts, nb::arg("keys"), nb::arg("values"),
                    nb::arg("buf_indices"));
}

}  // namespace

void bind_hash_map(nb::module_& m) {
    nb::class_<HashMap> table(m, "HashMap",
                              "The table itself; a HashSet is one without value columns.");
    table
        .def("__init__", &construct, nb::arg("init_capacity"), nb::arg("key"), nb::arg("values"),
             nb::arg("device"))
        .def("insert", &keys_and_values<&HashMap::insert>, nb::arg("keys"), nb::arg("values"))
        .def("insert_or_assign", &keys_and_values<&HashMap::insert_or_assign>, nb::arg("keys"),
             nb::arg("values"))
        .def("accumulate", &accumulate, nb::arg("keys"), nb::arg("values"), nb::arg("reduce"))
        .def("activate", &activate, nb::arg("keys"))
        .def("find", &find, nb::arg("keys"))
        .def("contains", &contains, nb::arg("keys"))
        .def("erase", &erase, nb::arg("keys"))
        .def("get", &get, nb::arg("keys"), nb::arg("defaults"));
    bind_listings(table);
    bind_storage(table);
    m.def("unique", &unique_rows, nb::arg("array"),
          "(rows, index, inverse, counts) of the distinct rows.");
}

}  // namespace tensorhash::bindings
