// GroupBy: a table numbers the keys of all batches, and the states of their groups grow with it.
#include <algorithm>
#include <optional>

#include "data/nunique.hpp"
#include "data/reduce.hpp"
#include "data/values.hpp"
#include "map/arguments.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/data/group_by.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/hash_map.hpp"

namespace tensorhash::data {
namespace {

Plan plan_of(std::vector<StreamColumn> const& columns) {
    std::vector<Element> elements;
    std::vector<Plan::Wanted> wanted;
    for (auto const& [what, values, argument] : columns) {
        if (what == Aggregate::Count) {
            wanted.push_back({what, kNoColumn});
            continue;
        }
        check_values_element(values, what, argument);
        wanted.push_back({what, elements.size()});
        elements.push_back(values);
    }
    return {elements, wanted};
}

std::size_t nunique_width(Plan const& plan) {
    std::size_t width = 0;
    for (Output const& output : plan.outputs()) {
        width += output.what == Aggregate::NUnique ? output.width() : 0;
    }
    return width;
}

}  // namespace

struct GroupBy::Impl {
    std::vector<StreamColumn> columns;
    Plan plan;
    HashMap keys;          // buffer index = group; the value is its first row
    std::size_t room = 0;  // groups that the states have memory for
    States states;
    std::vector<DistinctValues> distinct;  // of all NUnique outputs
    std::int64_t rows = 0;

    Impl(Element key, std::vector<StreamColumn> wanted)
        : columns(std::move(wanted)), plan(plan_of(columns)),
          keys(Capacity{0}, std::move(key), {{Dtype::Int64, {}}}), states(new_states(plan, 0)),
          distinct(nunique_width(plan)) {}

    std::size_t groups() const { return static_cast<std::size_t>(keys.size()); }

    /// States with room for `count` groups. The old ones stay as they are.
    States grown_states(std::size_t count) const {
        States larger = new_states(plan, count);
        for (std::size_t i = 0; i < states.size(); ++i) {
            std::copy_n(static_cast<std::uint64_t const*>(states[i].data()),
                        groups() * plan.folds()[i].ops().words,
                        static_cast<std::uint64_t*>(larger[i].data()));
        }
        return larger;
    }

    /// Makes room for `added` more groups, before anything else changes.
    void reserve(std::size_t added) {
        std::size_t const needed = groups() + added;
        if (needed > room) {
            std::size_t const more = std::max(needed, 2 * room);
            states = grown_states(more);
            room = more;
        }
        keys.reserve(Capacity{static_cast<std::int64_t>(needed)});
    }

    std::vector<Tensor> check(std::vector<Tensor> const& values, std::size_t count) const {
        if (values.size() != columns.size()) {
            throw ValueError("values: expected " + std::to_string(columns.size()) +
                             " arrays, one per column, got " + std::to_string(values.size()));
        }
        std::vector<Tensor> checked;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (columns[i].what == Aggregate::Count) continue;
            std::string const& argument = columns[i].name;
            map::CheckedBatch batch = map::check_batch(values[i], columns[i].values, argument);
            checked.push_back(check_values(values[i], count, argument));
            if (checked.back().rank() > 1) checked.back() = std::move(batch.tensor);
        }
        return checked;
    }

    /// Adds the pairs of a batch to all sets, or to copies of them.
    void add_distinct(std::vector<Column> const& batch, std::uint32_t const* groups,
                      std::size_t count) {
        std::size_t at = 0;
        for (Output const& output : plan.outputs()) {
            if (output.what != Aggregate::NUnique) continue;
            for (std::size_t i = 0; i < output.width(); ++i) {
                distinct[at++].add(batch[output.first_column + i], groups, count);
            }
        }
    }
};

GroupBy::GroupBy(Element key, std::vector<StreamColumn> columns)
    : impl_(std::make_unique<Impl>(std::move(key), std::move(columns))) {}
GroupBy::GroupBy(GroupBy&&) noexcept = default;
GroupBy& GroupBy::operator=(GroupBy&&) noexcept = default;
GroupBy::~GroupBy() = default;

namespace {

/// int64 [n]: first, first + 1, ...
Tensor row_numbers(std::int64_t first, std::size_t count) {
    Tensor out = Tensor::empty(with_rows(count, {}), Dtype::Int64);
    auto* const rows = static_cast<std::int64_t*>(out.data());
    for (std::size_t i = 0; i < count; ++i) rows[i] = first + static_cast<std::int64_t>(i);
    return out;
}

std::uint32_t const* groups_in(Located const& located) {
    return reinterpret_cast<std::uint32_t const*>(located.indices.data());
}

/// How many of the keys are new to the table.
std::size_t count_new(HashMap const& table, Tensor const& keys) {
    Tensor const found = table.contains(keys);
    std::span<bool const> const mask = found.as<bool>();
    return static_cast<std::size_t>(std::count(mask.begin(), mask.end(), false));
}

}  // namespace

void GroupBy::update(Tensor const& keys, std::vector<Tensor> const& values) {
    Impl& self = *impl_;
    KeyRows const rows = check_keys(keys, self.keys.key_element(), "keys");
    std::vector<Tensor> const checked = self.check(values, rows.rows);
    std::vector<Column> const columns = columns_of_all(checked);
    Tensor const numbers = row_numbers(self.rows, rows.rows);
    self.reserve(count_new(self.keys, rows.tensor));
    Located const located = self.keys.insert(rows.tensor, {numbers});
    self.add_distinct(columns, groups_in(located), rows.rows);
    add_numbered(self.plan, columns, groups_in(located), rows.rows, self.rows, self.states);
    self.rows += static_cast<std::int64_t>(rows.rows);
}

void GroupBy::merge(GroupBy const& other) { merge(other, other.impl_->keys.keys()); }

void GroupBy::merge(GroupBy const& other, Tensor const& keys) {
    Impl& self = *impl_;
    Impl const& from = *other.impl_;
    auto const same = [](StreamColumn const& a, StreamColumn const& b) {
        return a.what == b.what && a.values == b.values;
    };
    if (self.keys.key_element() != from.keys.key_element() ||
        !std::equal(self.columns.begin(), self.columns.end(), from.columns.begin(),
                    from.columns.end(), same)) {
        throw ValueError("other: expected a stream with the same keys and columns");
    }
    if (&self == &from) {
        throw ValueError("other: expected another stream, got this one");
    }
    KeyRows const rows = check_keys(keys, self.keys.key_element(), "keys");
    if (rows.rows != from.groups()) {
        throw ValueError("keys: expected " + std::to_string(from.groups()) +
                         " rows, one per group of other, got " + std::to_string(rows.rows));
    }
    Tensor first_rows = from.keys.items().values[0];
    for (std::int64_t& row : first_rows.as_mutable<std::int64_t>()) row += self.rows;
    self.reserve(count_new(self.keys, rows.tensor));
    Located const located = self.keys.insert(rows.tensor, {first_rows});
    for (std::size_t i = 0; i < self.distinct.size(); ++i) {
        self.distinct[i].merge(from.distinct[i], groups_in(located));
    }
    for (std::size_t i = 0; i < self.states.size(); ++i) {
        self.plan.folds()[i].ops().merge(
            static_cast<std::uint64_t*>(self.states[i].data()), groups_in(located),
            static_cast<std::uint64_t const*>(from.states[i].data()), from.groups(), self.rows);
    }
    self.rows += from.rows;
}

Groups GroupBy::result() const {
    Impl const& self = *impl_;
    std::size_t const groups = self.groups();
    Items items = self.keys.items();
    States const copies = self.grown_states(groups);
    Groups out{std::move(items.keys), std::move(items.values[0]), {}};
    std::span<DistinctValues const> distinct = self.distinct;
    for (Output const& output : self.plan.outputs()) {
        if (output.what != Aggregate::NUnique) {
            out.columns.push_back(self.plan.finish(output, copies, groups));
            continue;
        }
        out.columns.push_back(count_distinct(distinct.first(output.width()), output, groups));
        distinct = distinct.subspan(output.width());
    }
    return out;
}

std::int64_t GroupBy::rows() const noexcept { return impl_->rows; }
std::int64_t GroupBy::groups() const { return impl_->keys.size(); }

}  // namespace tensorhash::data
