// Open addressing with linear probing, at most half full.
#include "strings/string_table.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "tensorhash/error.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::strings {

std::uint64_t StringTable::memory() const noexcept {
    return buckets_.capacity() * sizeof(Bucket) + entries_.capacity() * sizeof(Entry) +
           arena_.capacity();
}

void StringTable::place(std::uint64_t hash, std::uint32_t number) noexcept {
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
        Bucket& bucket = buckets_[at];
        if (std::uint32_t const empty = slots_with(bucket, 0); empty != 0) {
            std::uint32_t const slot = step::lowest_bit(empty);
            bucket.tags[slot] = tag_of(hash);
            bucket.numbers[slot] = number;
            return;
        }
    }
}

/// Buckets for this many strings in all, at most half full.
void StringTable::grow_buckets(std::size_t strings) {
    std::size_t const needed = std::bit_ceil(std::max<std::size_t>(2 * strings / kSlots, 1));
    if (needed <= buckets_.size()) return;
    runtime::BlockVector<Bucket> larger(needed);
    buckets_.swap(larger);
    mask_ = needed - 1;
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (i + kAhead < entries_.size()) prefetch_bucket(entries_[i + kAhead].hash);
        place(entries_[i].hash, static_cast<std::uint32_t>(i));
    }
}

void StringTable::reserve(std::size_t strings, std::size_t bytes) {
    // Growth at least doubles, so that many small batches cost no more than a large one.
    auto const grown = [](auto const& list, std::size_t more) {
        return list.size() + more <= list.capacity()
                   ? list.capacity()
                   : std::max(list.size() + more, 2 * list.capacity());
    };
    if (size() + strings > kMostStrings) {
        throw ValueError("strings: expected at most " + std::to_string(kMostStrings) +
                         " distinct strings, got " + std::to_string(size() + strings));
    }
    entries_.reserve(grown(entries_, strings));
    arena_.reserve(grown(arena_, bytes));
    grow_buckets(entries_.size() + strings);
}

/// A string that the table does not have.
std::uint32_t StringTable::add(Query const& query) {
    reserve(1, query.string.size());
    auto const number = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({query.head, query.hash, arena_.size(), query.string.size()});
    arena_.insert(arena_.end(), query.string.begin(), query.string.end());
    place(query.hash, number);
    return number;
}

}  // namespace tensorhash::strings
