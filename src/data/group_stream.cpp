// GroupBy: a table numbers the keys of all batches, and the states of their groups grow with it. A
// call first finds out what it will change and gets all memory for it. Then nothing can fail.
#include <algorithm>
#include <vector>

#include "data/nunique.hpp"
#include "data/reduce.hpp"
#include "data/values.hpp"
#include "map/arguments.hpp"
#include "runtime/seed.hpp"
#include "tensor/row_numbers.hpp"
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

/// Where the rows of a batch belong, before any of them is added.
struct Placement {
    Tensor groups;      // int32 [rows]; new groups have the numbers that an insertion gives them
    Tensor new_keys;    // the key of each new group
    Tensor first_rows;  // int64: the first row of each new group

    std::uint32_t const* of_rows() const {
        return reinterpret_cast<std::uint32_t const*>(groups.data());
    }
};

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

    /// Finds the group of each row. Changes nothing.
    Placement place(KeyRows const& batch) const;

    /// Prepares the pairs of a batch for all sets.
    std::vector<PreparedPairs> prepare_pairs(std::vector<Column> const& batch,
                                             std::uint32_t const* of_rows, std::size_t count) {
        std::vector<PreparedPairs> pairs;
        for (Output const& output : plan.outputs()) {
            if (output.what != Aggregate::NUnique) continue;
            for (std::size_t i = 0; i < output.width(); ++i) {
                Column const& column = batch[output.first_column + i];
                pairs.push_back(distinct[pairs.size()].prepare(column, of_rows, count));
            }
        }
        return pairs;
    }

    /// Adds the new groups, with the first row of each, then the pairs. If it throws, it did
    /// neither.
    void commit(Tensor const& new_keys, Tensor const& first_rows,
                std::vector<PreparedPairs> pairs) {
        reserve(static_cast<std::size_t>(first_rows.size()));
        keys.insert(new_keys, {first_rows});
        for (PreparedPairs& of_column : pairs) of_column.commit();
    }
};

GroupBy::GroupBy(Element key, std::vector<StreamColumn> columns)
    : impl_(std::make_unique<Impl>(std::move(key), std::move(columns))) {}
GroupBy::GroupBy(GroupBy&&) noexcept = default;
GroupBy& GroupBy::operator=(GroupBy&&) noexcept = default;
GroupBy::~GroupBy() = default;

Placement GroupBy::Impl::place(KeyRows const& batch) const {
    Located found = keys.find(batch.tensor);
    auto const is_found = found.mask.as<bool>();
    Tensor const missing = numbers_where<std::int64_t>(
        is_found.size(), [&](std::size_t row) { return !is_found[row]; });
    auto const missing_rows = missing.as<std::int64_t>();
    KeyRows const absent{gather_rows(batch, missing), batch.element, missing_rows.size()};
    Numbering const added = number_rows(absent, step::secret_of(runtime::new_seed()));

    auto const group_of = found.indices.as_mutable<std::int32_t>();
    for (std::size_t i = 0; i < missing_rows.size(); ++i) {
        group_of[static_cast<std::size_t>(missing_rows[i])] =
            static_cast<std::int32_t>(groups() + added.of_rows()[i]);
    }
    Placement out{std::move(found.indices), gather_rows(absent, added.first_rows),
                  added.first_rows};
    for (std::int64_t& row : out.first_rows.as_mutable<std::int64_t>()) {
        row = missing_rows[static_cast<std::size_t>(row)];
    }
    return out;
}

void GroupBy::update(Tensor const& keys, std::vector<Tensor> const& values) {
    Impl& self = *impl_;
    KeyRows const rows = check_keys(keys, self.keys.key_element(), "keys");
    std::vector<Tensor> const checked = self.check(values, rows.rows);
    std::vector<Column> const columns = columns_of_all(checked);
    Placement placed = self.place(rows);
    for (std::int64_t& row : placed.first_rows.as_mutable<std::int64_t>()) row += self.rows;
    self.commit(placed.new_keys, placed.first_rows,
                self.prepare_pairs(columns, placed.of_rows(), rows.rows));
    add_numbered(self.plan, columns, placed.of_rows(), rows.rows, self.rows, self.states);
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
    Placement placed = self.place(rows);
    Tensor const others = from.keys.items().values[0];
    for (std::int64_t& row : placed.first_rows.as_mutable<std::int64_t>()) {
        row = self.rows + others.as<std::int64_t>()[static_cast<std::size_t>(row)];
    }
    std::vector<PreparedPairs> pairs;
    for (std::size_t i = 0; i < self.distinct.size(); ++i) {
        pairs.push_back(self.distinct[i].prepare(from.distinct[i], placed.of_rows()));
    }
    self.commit(placed.new_keys, placed.first_rows, std::move(pairs));
    for (std::size_t i = 0; i < self.states.size(); ++i) {
        self.plan.folds()[i].ops().merge(
            static_cast<std::uint64_t*>(self.states[i].data()), placed.of_rows(),
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
