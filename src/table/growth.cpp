// Growth: all new memory is allocated before the table changes.
#include <algorithm>
#include <memory>

#include "backend/capacities.hpp"
#include "table/limits.hpp"
#include "table/table.hpp"

namespace tensorhash::table {

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

Growth Table::prepare_growth(Insertion const& insertion) const {
    std::uint64_t const needed = top_ + insertion.counts.claimed - insertion.counts.reused;
    if (needed > kMaxEntries) {
        fail_too_many(needed);
    }
    Growth growth;
    growth.capacity = capacity_;
    if (needed > capacity_) {
        growth = grown_to(backend::grown_capacity(capacity_, needed));
    }
    // The index may have grown for rows that turned out to be equal. Growth by one step is kept.
    std::uint64_t const buckets =
        std::max(insertion.buckets_before,
                 BucketIndex::buckets_for(format_, size() + insertion.counts.claimed));
    constexpr std::size_t kBytes = sizeof(step::NarrowBucket);
    if (index_.buckets() > runtime::whole_huge_pages(2 * buckets * kBytes) / kBytes) {
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
        backend::fail_capacity(capacity);
    }
    Growth growth;
    if (capacity > capacity_) {
        growth = grown_to(capacity);
    }
    if (capacity > index_.most_entries()) {
        prepare_index(growth, BucketIndex::buckets_for(format_, capacity));
    }
    return growth;
}

void Table::finish_reserve(Growth&& growth) noexcept {
    std::optional<BucketIndex> other = std::move(growth.index);
    std::uint64_t const buckets = growth.buckets;
    adopt(std::move(growth));
    finish_index(std::move(other), buckets);
}

/// Gets memory for an index of this size: more for the index itself if its pages can move.
void Table::prepare_index(Growth& growth, std::uint64_t buckets) {
    growth.extensions.reserve(growth.extensions.size() + 1);
    runtime::Extension extension;
    if (buckets > index_.buckets()) {
        extension = index_.extend(buckets);
    }
    if (extension) {
        growth.extensions.push_back(std::move(extension));
        growth.buckets = buckets;
    } else {
        growth.index.emplace(format_, buckets, seed(), runtime::Fill::Committed);
    }
}

/// The index gets the size of `other`, or `buckets` buckets if that is not zero.
void Table::finish_index(std::optional<BucketIndex>&& other, std::uint64_t buckets) noexcept {
    if (other) {
        other->place(key_buffer(), live_.data(), top_, size(), index_);
        index_ = std::move(*other);
    } else if (buckets != 0) {
        index_.resize(key_buffer(), live_.data(), top_, size(), buckets);
    }
}

/// Makes the index large enough for this many entries. Without erased slots it may be large enough
/// as it is. An index that would soon be full again grows.
void Table::fit_index(std::uint64_t entries) {
    std::uint64_t const most = index_.most_entries();
    bool const is_enough = entries <= most - most / 8;
    Growth growth;
    prepare_index(growth, index_.grown_for(is_enough ? entries : std::max(entries, most + 1)));
    finish_reserve(std::move(growth));
}

void Table::reserve(std::uint64_t capacity) { finish_reserve(prepare_reserve(capacity)); }

}  // namespace tensorhash::table
