// Binds ShardedHashMap: HashMap's methods and those on shards. A policy may be a Python function.
#include "tensorhash/sharded/sharded_map.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "evicted_out.hpp"
#include "optimizer.hpp"
#include "table_methods.hpp"

namespace tensorhash::bindings {
namespace {

using Names = std::vector<std::string>;

/// A policy written in Python. Any thread may copy or destroy it. Each copy owns a reference,
/// because the garbage collector counts references.
class PythonRoute {
public:
    explicit PythonRoute(nb::object function) : function_(std::move(function)) {}
    PythonRoute(PythonRoute&& other) noexcept : function_(std::move(other.function_)) {}
    PythonRoute(PythonRoute const& other) {
        nb::gil_scoped_acquire gil;
        function_ = other.function_;
    }
    PythonRoute& operator=(PythonRoute const&) = delete;
    ~PythonRoute() {
        if (!function_.is_valid()) return;
        nb::gil_scoped_acquire gil;
        function_.reset();
    }

    void operator()(Tensor const& keys, int shards, std::span<std::int32_t> shard) const {
        nb::gil_scoped_acquire gil;
        nb::object const function = function_;  // keeps it alive while it runs
        if (!function.is_valid()) throw ValueError("policy: the garbage collector has freed it");
        Tensor const given = to_tensor(function(keys, shards), "policy", Dtype::Int32).contiguous();
        auto const answers = given.as<std::int32_t>();
        if (answers.size() != shard.size()) {
            throw ValueError("policy: expected " + std::to_string(shard.size()) + " shards, got " +
                             std::to_string(answers.size()));
        }
        std::copy(answers.begin(), answers.end(), shard.begin());
    }
    nb::handle function() const { return function_; }
    /// Drops the function. For tp_clear, which has the GIL and an unreachable table.
    void forget() const { nb::object const last = std::move(function_); }

private:
    mutable nb::object function_;
};

/// The bound table's policy if it is a Python function, else null.
PythonRoute const* python_route(PyObject* self) {
    if (!nb::inst_ready(self)) return nullptr;
    return nb::inst_ptr<ShardedHashMap>(self)->policy().route.target<PythonRoute>();
}

// A policy that refers to the table's owner makes a reference cycle. The collector sees it only
// through tp_traverse.
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (PythonRoute const* const route = python_route(self)) Py_VISIT(route->function().ptr());
    return 0;
}

int forget_policy(PyObject* self) {
    if (PythonRoute const* const route = python_route(self)) route->forget();
    return 0;
}

PyType_Slot collector_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(&forget_policy)},
    {0, nullptr},
};

/// "hash", "mod", or (name, function). The function takes a bound tensor of keys and the number of
/// shards, and returns int32 [N].
ShardPolicy to_policy(nb::handle policy) {
    if (nb::isinstance<nb::str>(policy)) return policy_from_name(nb::cast<std::string>(policy));
    auto const [name, function] = nb::cast<std::pair<std::string, nb::object>>(policy);
    return {name, PythonRoute(function)};
}

std::vector<Device> to_devices(Names const& names) {
    std::vector<Device> devices;
    for (std::string const& name : names) devices.push_back(Device::parse(name));
    return devices;
}

void construct(ShardedHashMap* self, std::int64_t init_capacity, ElementSpec const& key,
               std::vector<ElementSpec> const& values, Names const& devices, nb::handle policy,
               std::optional<std::uint64_t> seed) {
    std::vector<Element> elements = to_elements(values);
    ShardPolicy rule = to_policy(policy);
    without_gil([&] {
        new (self) ShardedHashMap(Capacity{init_capacity}, to_element(key), std::move(elements),
                                  to_devices(devices), std::move(rule), seed);
    });
}

ShardedHashMap make_bounded(std::int64_t max_capacity, ElementSpec const& key,
                            std::vector<ElementSpec> const& values, std::string const& eviction,
                            Names const& devices, nb::handle policy,
                            std::optional<std::uint64_t> seed) {
    std::vector<Element> elements = to_elements(values);
    Bound const bound{Capacity{max_capacity}, eviction_from_name(eviction)};
    ShardPolicy rule = to_policy(policy);
    return without_gil([&] {
        return ShardedHashMap(bound, to_element(key), std::move(elements), to_devices(devices),
                              std::move(rule), seed);
    });
}

/// nullopt if the table is not bounded.
std::optional<std::string> eviction(ShardedHashMap const& self) {
    auto const bound = without_gil([&] { return self.bound(); });
    return bound ? std::optional<std::string>(eviction_name(bound->eviction)) : std::nullopt;
}

Tensor assign(ShardedHashMap& self, nb::handle keys, Arrays const& values) {
    return keys_and_values(self, keys, values,
                           [&](Tensor const& rows, std::vector<Tensor> const& columns) {
                               return self.assign(rows, columns);
                           });
}

Pair insert_into(ShardedHashMap& self, std::size_t shard, nb::handle keys, Arrays const& values) {
    return to_pair(keys_and_values(self, keys, values,
                                   [&](Tensor const& rows, std::vector<Tensor> const& columns) {
                                       return self.insert_into(shard, rows, columns);
                                   }));
}

Tensor shard_of(ShardedHashMap const& self, nb::handle keys) {
    Tensor const rows = key_rows(self, keys);
    return without_gil([&] { return self.shard_of(rows); });
}

using BoundItems = std::pair<Tensor, std::vector<Tensor>>;

BoundItems items(ShardedHashMap const& self, std::optional<std::size_t> shard) {
    Items both = without_gil([&] { return shard ? self.items(*shard) : self.items(); });
    return {std::move(both.keys), std::move(both.values)};
}

ShardedHashMap from_items(nb::handle keys, Arrays const& values, Names const& devices,
                          nb::handle policy) {
    Tensor const rows = to_tensor(keys, "keys");
    std::vector<Tensor> const columns = to_tensors(values, "values");
    ShardPolicy rule = to_policy(policy);
    return without_gil([&] {
        return ShardedHashMap::from_items(rows, columns, to_devices(devices), std::move(rule));
    });
}

std::optional<ShardPolicy> to_optional_policy(nb::handle policy) {
    return policy.is_none() ? std::nullopt : std::optional(to_policy(policy));
}

ShardedHashMap from_bytes(nb::handle bytes, Names const& devices, nb::handle policy) {
    Tensor const image = to_tensor(bytes, "bytes");
    auto rule = to_optional_policy(policy);
    return without_gil([&] {
        return ShardedHashMap::from_bytes(image, to_devices(devices), std::move(rule), kNoLimit);
    });
}

ShardedHashMap load(nb::bytes const& file_name, Names const& devices, nb::handle policy,
                    std::optional<std::uint64_t> max_bytes) {
    std::string const path = path_of(file_name);
    auto rule = to_optional_policy(policy);
    return without_gil([&] {
        return ShardedHashMap::load(path, to_devices(devices), std::move(rule), max_bytes);
    });
}

Names device_names(ShardedHashMap const& self) {
    Names names;
    for (Device const device : self.devices()) names.push_back(to_string(device));
    return names;
}

/// The count of one shard, or of all shards if none is given.
template <std::int64_t (ShardedHashMap::*One)(std::size_t) const,
          std::int64_t (ShardedHashMap::*All)() const>
std::int64_t count(ShardedHashMap const& self, std::optional<std::size_t> shard) {
    return without_gil([&] { return shard ? (self.*One)(*shard) : (self.*All)(); });
}

/// Binds the methods of a bounded table.
void bind_bound(nb::class_<ShardedHashMap>& table) {
    bind_evicting(table);
    table.def_prop_ro("eviction", &eviction)
        .def_static("bounded", &make_bounded, nb::arg("max_capacity"), nb::arg("key"),
                    nb::arg("values"), nb::arg("eviction"), nb::arg("devices"), nb::arg("policy"),
                    nb::arg("seed").none() = nb::none());
}

void bind_shards(nb::class_<ShardedHashMap>& table) {
    table.def("insert_into", &insert_into, nb::arg("shard"), nb::arg("keys"), nb::arg("values"))
        .def("shard_of", &shard_of, nb::arg("keys"))
        .def(
            "shard_on",
            [](ShardedHashMap const& self, std::string const& device) {
                return self.shard_on(Device::parse(device));
            },
            nb::arg("device"))
        .def_prop_ro("devices", &device_names)
        .def_prop_ro("policy", [](ShardedHashMap const& self) { return self.policy().name; })
        .def(
            "key_tensor",
            [](ShardedHashMap const& self, std::size_t shard) { return self.key_tensor(shard); },
            nb::arg("shard"))
        .def(
            "value_tensor",
            [](ShardedHashMap const& self, std::size_t shard, std::size_t column) {
                return self.value_tensor(shard, column);
            },
            nb::arg("shard"), nb::arg("column"));
}

void bind_shard_listings(nb::class_<ShardedHashMap>& table) {
    table
        .def("active_buf_indices",
             [](ShardedHashMap const& self) {
                 return without_gil([&] { return self.active_buf_indices(); });
             })
        .def("keys",
             [](ShardedHashMap const& self) { return without_gil([&] { return self.keys(); }); })
        .def("items", &items, nb::arg("shard") = nb::none())
        .def("size",
             &count<nb::overload_cast<std::size_t>(&ShardedHashMap::size, nb::const_),
                    nb::overload_cast<>(&ShardedHashMap::size, nb::const_)>,
             nb::arg("shard") = nb::none())
        .def("capacity",
             &count<nb::overload_cast<std::size_t>(&ShardedHashMap::capacity, nb::const_),
                    nb::overload_cast<>(&ShardedHashMap::capacity, nb::const_)>,
             nb::arg("shard") = nb::none())
        .def_prop_ro("key_element",
                     [](ShardedHashMap const& self) { return to_spec(self.key_element()); })
        .def_prop_ro("value_elements",
                     [](ShardedHashMap const& self) { return to_specs(self.value_elements()); })
        .def("memory_usage", &memory_usage<ShardedHashMap>)
        .def("validate", [](ShardedHashMap const& self) { without_gil([&] { self.validate(); }); });
}

void bind_shard_storage(nb::class_<ShardedHashMap>& table) {
    table
        .def(
            "reserve",
            [](ShardedHashMap& self, std::int64_t rows) {
                without_gil([&] { self.reserve(Capacity{rows}); });
            },
            nb::arg("capacity"))
        .def("shrink_to_fit",
             [](ShardedHashMap& self) { without_gil([&] { self.shrink_to_fit(); }); })
        .def("clear", [](ShardedHashMap& self) { without_gil([&] { self.clear(); }); })
        .def("compact",
             [](ShardedHashMap& self) { return without_gil([&] { return self.compact(); }); })
        .def("clone",
             [](ShardedHashMap const& self) { return without_gil([&] { return self.clone(); }); })
        .def(
            "save",
            [](ShardedHashMap const& self, nb::bytes const& file_name) {
                std::string const path = path_of(file_name);
                without_gil([&] { self.save(path); });
            },
            nb::arg("file_name"))
        .def(
            "to_bytes",
            [](ShardedHashMap const& self) { return without_gil([&] { return self.to_bytes(); }); })
        .def_static("load", &load, nb::arg("file_name"), nb::arg("devices"),
                    nb::arg("policy").none(), nb::arg("max_bytes").none())
        .def_static("from_bytes", &from_bytes, nb::arg("bytes"), nb::arg("devices"),
                    nb::arg("policy").none())
        .def_static("from_items", &from_items, nb::arg("keys"), nb::arg("values"),
                    nb::arg("devices"), nb::arg("policy"));
}

}  // namespace

void bind_sharded_map(nb::module_& m) {
    nb::class_<ShardedHashMap> table(m, "ShardedHashMap", "Several tables that act as one.",
                                     nb::type_slots(collector_slots));
    table.def("__init__", &construct, nb::arg("init_capacity"), nb::arg("key"), nb::arg("values"),
              nb::arg("devices"), nb::arg("policy"), nb::arg("seed").none() = nb::none());
    bind_adding(table);
    table.def("assign", &assign, nb::arg("keys"), nb::arg("values"));
    bind_readers(table);
    bind_bound(table);
    bind_shards(table);
    bind_shard_listings(table);
    bind_shard_storage(table);
    m.def("update", &update_table<ShardedHashMap>, nb::arg("table"), nb::arg("keys"),
          nb::arg("gradients"), nb::arg("optimizer"), nb::arg("missing"), nb::arg("duplicates"),
          nb::arg("initial").none());
}

}  // namespace tensorhash::bindings
