// Growth: all new memory is allocated before the table changes.
#include <algorithm>
#include <memory>
#include <string>

#include "table/limits.hpp"
#include "table/table.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::table {
namespace {

// From this capacity on, a table that doubles grows to all the entries that its buckets serve.
constexpr std::uint64_t kRoundedFrom = std::uint64_t{1} << 18;

}  // namespace

void fail_too_many(std::uint64_t entries) {
    throw ValueError("keys: a table holds at most " + std::to_string(kMaxEntries) +
                     " entries, this batch needs at least " + std::to_string(entries));
}

/// The column with room for growth.capacity rows. Fresh memory is expensive, so a block without
/// views is extended; a block with views must stay where it is and is copied.
Column Table::enlarged(Column const& column, Growth& growth) const {
    runtime::Block& block = *column.block;
    if (column.block.use_count() == 1) {
        // Another thread may just have dropped the last view. Releasing a reference of our own
        // synchronizes with that release, so its writes are visible here.
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

/// The number of buckets is a power of two. A large table grows to all the entries that they serve.
/// Otherwise the next doubling could end just above that and double the buckets for little gain.
/// The largest index serves more than capacity_of() says, hence the max.
std::uint64_t grown_capacity(step::KeyFormat format, std::uint64_t capacity, std::uint64_t needed) {
    if (needed <= capacity) {
        return capacity;
    }
    std::uint64_t grown = std::max(2 * capacity, needed);
    if (needed <= 2 * capacity && grown >= kRoundedFrom) {
        grown = std::max(grown,
                         BucketIndex::capacity_of(format, BucketIndex::buckets_for(format, grown)));
    }
    return std::min(grown, kMaxEntries);
}

Growth Table::prepare_growth(BucketIndex const& target, std::uint64_t fresh) const {
    std::uint64_t const needed = top_ + fresh;
    if (needed > kMaxEntries) {
        fail_too_many(needed);
    }
    Growth growth;
    growth.capacity = capacity_;
    if (needed > capacity_) {
        growth = grown_to(grown_capacity(format_, capacity_, needed));
    }
    std::uint64_t const buckets = BucketIndex::buckets_for(format_, growth.capacity);
    if (target.buckets() != buckets) {
        growth.index.emplace(format_, buckets, seed(), runtime::Fill::Committed);
    }
    return growth;
}

/// Unused rows read as zeros after growth, also when the block was extended in place.
void Table::clear_unused(Column& old, Column const& grown) const noexcept {
    if (old.block == grown.block) {
        runtime::zero_bytes(old.row(top_), (capacity_ - top_) * old.row_bytes);
    }
}

void Table::adopt(Growth&& growth) noexcept {
    for (runtime::Extension& extension : growth.extensions) {
        static_cast<void>(extension.release());  // the table keeps the new memory
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
    std::uint64_t const buckets = BucketIndex::buckets_for(format_, capacity);
    if (buckets != index_.buckets()) {
        growth.extensions.reserve(growth.extensions.size() + 1);
        if (runtime::Extension extension = index_.extend(buckets)) {
            growth.extensions.push_back(std::move(extension));
            growth.buckets = buckets;
        } else {
            growth.index.emplace(format_, buckets, seed(), runtime::Fill::Committed);
        }
    }
    return growth;
}

void Table::finish_reserve(Growth&& growth) noexcept {
    std::optional<BucketIndex> larger = std::move(growth.index);
    std::uint64_t const buckets = growth.buckets;
    adopt(std::move(growth));
    if (buckets != 0) {
        index_.clear(buckets);
        index_.place(key_buffer(), live_.data(), top_, size());
    } else if (larger) {
        larger->place(key_buffer(), live_.data(), top_, size(), index_);
        index_ = std::move(*larger);
    }
}

void Table::reserve(std::uint64_t capacity) { finish_reserve(prepare_reserve(capacity)); }

}  // namespace tensorhash::table
