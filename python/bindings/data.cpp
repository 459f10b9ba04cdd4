// Binds group-by and joins for tensorhash.data.
#include "tensorhash/data.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "table_in.hpp"

namespace tensorhash::bindings {
namespace {

using data::GroupBy;
using data::Groups;
using data::JoinIndex;

using GroupColumns = std::tuple<Tensor, Tensor, std::vector<Tensor>>;

GroupColumns to_columns(Groups&& groups) {
    return {std::move(groups.keys), std::move(groups.first_rows), std::move(groups.columns)};
}

// None stands for no values, as count has none. Labels name the arrays in messages.
std::vector<Tensor> to_values(Arrays const& values, std::vector<std::string> const& labels) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        nb::object const one = values[i];
        tensors.push_back(one.is_none() ? Tensor() : to_tensor(one, labels[i].c_str()));
    }
    return tensors;
}

GroupColumns group_by(nb::handle keys, std::vector<std::string> const& what, Arrays const& values,
                      std::vector<std::string> const& labels) {
    Tensor const rows = to_tensor(keys, "keys");
    std::vector<Tensor> const tensors = to_values(values, labels);
    std::vector<data::Aggregation> wanted;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        wanted.push_back({data::aggregate_from_name(what[i]), tensors[i], labels[i]});
    }
    return without_gil([&] { return to_columns(data::group_by(rows, wanted)); });
}

// (aggregate, element of the values, name of the values)
using StreamSpec = std::tuple<std::string, std::optional<ElementSpec>, std::string>;

void make_stream(GroupBy* self, ElementSpec const& key, std::vector<StreamSpec> const& columns) {
    std::vector<data::StreamColumn> wanted;
    for (auto const& [what, values, label] : columns) {
        wanted.push_back({data::aggregate_from_name(what),
                          values.has_value() ? to_element(*values) : Element{}, label});
    }
    new (self) GroupBy(to_element(key), std::move(wanted));
}

void bind_group_by(nb::module_& m) {
    m.def("group_by", &group_by, nb::arg("keys"), nb::arg("what"), nb::arg("values"),
          nb::arg("labels"), "(keys [G], first rows int64 [G], columns).");
    nb::class_<GroupBy>(m, "GroupBy", "Groups of rows that arrive in batches.")
        .def("__init__", &make_stream, nb::arg("key"), nb::arg("columns"))
        .def(
            "update",
            [](GroupBy& self, nb::handle keys, Arrays const& values,
               std::vector<std::string> const& labels) {
                Tensor const rows = to_tensor(keys, "keys");
                std::vector<Tensor> const tensors = to_values(values, labels);
                without_gil([&] { self.update(rows, tensors); });
            },
            nb::arg("keys"), nb::arg("values"), nb::arg("labels"))
        .def(
            "merge",
            [](GroupBy& self, GroupBy const& other, nb::handle keys) {
                std::optional<Tensor> rows;
                if (!keys.is_none()) rows = to_tensor(keys, "keys");
                without_gil([&] { rows ? self.merge(other, *rows) : self.merge(other); });
            },
            nb::arg("other"), nb::arg("keys").none())
        .def("result",
             [](GroupBy const& self) {
                 return without_gil([&] { return to_columns(self.result()); });
             })
        .def("rows", &GroupBy::rows)
        .def("groups", &GroupBy::groups);
}

void bind_join(nb::module_& m) {
    nb::class_<JoinIndex>(m, "JoinIndex", "The right side of joins.")
        .def(
            "__init__",
            [](JoinIndex* self, nb::handle right) {
                Tensor const rows = to_tensor(right, "right");
                JoinIndex made = without_gil([&] { return JoinIndex(rows); });
                new (self) JoinIndex(std::move(made));
            },
            nb::arg("right"))
        .def(
            "count",
            [](JoinIndex const& self, nb::handle left) {
                Tensor const rows = to_tensor(left, "left", self.key_element().dtype);
                return without_gil([&] { return self.count(rows); });
            },
            nb::arg("left"))
        .def(
            "join",
            [](JoinIndex const& self, nb::handle left, std::string const& how) {
                Tensor const rows = to_tensor(left, "left", self.key_element().dtype);
                data::How const kind = data::how_from_name(how);
                return without_gil([&] {
                    data::JoinedRows joined = self.join(rows, kind);
                    return Pair(std::move(joined.left), std::move(joined.right));
                });
            },
            nb::arg("left"), nb::arg("how"))
        .def(
            "first",
            [](JoinIndex const& self, nb::handle left) {
                Tensor const rows = to_tensor(left, "left", self.key_element().dtype);
                return without_gil([&] { return self.first(rows); });
            },
            nb::arg("left"))
        .def(
            "matches",
            [](JoinIndex const& self, nb::handle left) {
                Tensor const rows = to_tensor(left, "left", self.key_element().dtype);
                return without_gil([&] {
                    data::Matches found = self.matches(rows);
                    return Pair(std::move(found.offsets), std::move(found.rows));
                });
            },
            nb::arg("left"))
        .def("key_element", [](JoinIndex const& self) { return to_spec(self.key_element()); })
        .def("rows", &JoinIndex::rows)
        .def("distinct", &JoinIndex::distinct);
}

}  // namespace

void bind_data(nb::module_& m) {
    bind_group_by(m);
    bind_join(m);
}

}  // namespace tensorhash::bindings
