// Growing: new memory is allocated before anything of the table changes.
#include <algorithm>
#include <memory>
#include <string>

#include "table/limits.hpp"
#include "table/table.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::table {
namespace {

// From this capacity on a table that doubles takes all the entries that its lines serve.
constexpr std::uint64_t kRoundedFrom = std::uint64_t{1} << 18;

}  // namespace

void fail_too_many(std::uint64_t entries) {
    throw ValueError("keys: a table holds at most " + std::to_string(kMaxEntries) +
                     " entries, this batch would make at least " + std::to_string(entries));
}

/// The column with room for the growth's capacity. Fresh memory is dear: what is there already is kept, unless somebody
/// has a view of it, which must stay where it is.
Column Table::enlarged(Column const& column, Growth& growth) const {
    runtime::Block& block = *column.block;
    if (column.block.use_count() == 1) {
        // Another thread may have let the last view go just now: giving up a share of one's own sees what it wrote.
        std::shared_ptr<runtime::Block>(column.block).reset();
        growth.extensions.reserve(growth.extensions.size() + 1);
        std::size_t const before = block.bytes();
        if (block.grow(growth.capacity * column.row_bytes)) {
            growth.extensions.emplace_back(&block, runtime::Shrink{before});
            return column;
        }
    }
    return copy_column(column, top_, growth.capacity);
}

Growth Table::grown_to(std::uint64_t capacity) const {
    Growth growth;
    growth.capacity = capacity;
    growth.keys = enlarged(keys_, growth);
    for (Column const& column : values_) {
        growth.values.push_back(enlarged(column, growth));
    }
    growth.live = live_;
    growth.live.resize((capacity + 63) / 64, 0);
    return growth;
}

/// The index has a power of two of lines; a large table is rounded up to what they serve, or the next doubling might
/// end just above and double the lines for little. The largest index serves more than
/// that says.
std::uint64_t grown_capacity(KeyLayout layout, std::uint64_t capacity, std::uint64_t needed) {
    if (needed <= capacity) {
        return capacity;
    }
    std::uint64_t grown = std::max(2 * capacity, needed);
    if (needed <= 2 * capacity && grown >= kRoundedFrom) {
        grown = std::max(grown, Index::capacity_of(layout, Index::lines_for(layout, grown)));
    }
    return std::min(grown, kMaxEntries);
}

Growth Table::make_room(Index const& target, std::uint64_t fresh) const {
    std::uint64_t const needed = top_ + fresh;
    if (needed > kMaxEntries) {
        fail_too_many(needed);
    }
    Growth growth;
    growth.capacity = capacity_;
    if (needed > capacity_) {
        growth = grown_to(grown_capacity(layout_, capacity_, needed));
    }
    std::uint64_t const lines = Index::lines_for(layout_, growth.capacity);
    if (target.lines() != lines) {
        growth.index.emplace(layout_, lines, seed(), runtime::Fill::Committed);
    }
    return growth;
}

/// Rows that are nobody's read as zeros after growth, also where the old memory goes on.
void Table::clear_unused(Column& old, Column const& grown) const noexcept {
    if (old.block == grown.block) {
        runtime::zero_bytes(old.row(top_), (capacity_ - top_) * old.row_bytes);
    }
}

void Table::adopt(Growth&& growth) noexcept {
    for (runtime::Extension& extension : growth.extensions) {
        static_cast<void>(extension.release());  // the table keeps the new room
    }
    if (growth.keys) {
        clear_unused(keys_, *growth.keys);
        for (std::size_t i = 0; i < values_.size(); ++i) {
            clear_unused(values_[i], growth.values[i]);
        }
        capacity_ = growth.capacity;
        keys_ = std::move(*growth.keys);
        values_ = std::move(growth.values);
        live_ = std::move(growth.live);
    }
}

Growth Table::prepare_reserve(std::uint64_t capacity) {
    if (capacity > kMaxEntries) {
        throw ValueError("capacity: a table holds at most " + std::to_string(kMaxEntries) +
                         " entries, got " + std::to_string(capacity));
    }
    if (capacity <= capacity_) {
        return {};
    }
    Growth growth = grown_to(capacity);
    std::uint64_t const lines = Index::lines_for(layout_, capacity);
    if (lines != index_.lines()) {
        growth.extensions.reserve(growth.extensions.size() + 1);
        if (runtime::Extension extension = index_.make_room(lines)) {
            growth.extensions.push_back(std::move(extension));
            growth.lines = lines;
        } else {
            growth.index.emplace(layout_, lines, seed(), runtime::Fill::Committed);
        }
    }
    return growth;
}

void Table::finish_reserve(Growth&& growth) noexcept {
    std::optional<Index> larger = std::move(growth.index);
    std::uint64_t const lines = growth.lines;
    adopt(std::move(growth));
    if (lines != 0) {
        index_.clear(lines);
        index_.place(key_buffer(), live_.data(), top_, size());
    } else if (larger) {
        larger->place(key_buffer(), live_.data(), top_, size(), index_);
        index_ = std::move(*larger);
    }
}

void Table::reserve(std::uint64_t capacity) { finish_reserve(prepare_reserve(capacity)); }

}  // namespace tensorhash::table
