// Open addressing with linear probing, at most half full.
#include "strings/string_table.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "tensorhash/error.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::strings {

std::uint64_t StringTable::memory() const noexcept {
    return slots_.capacity() * sizeof(Slot) + entries_.capacity() * sizeof(Entry) +
           arena_.capacity();
}

void StringTable::prefetch_slot(Query const& query) const noexcept {
    step::prefetch(&slots_[query.hash & mask_]);
}

void StringTable::prefetch_entry(Query const& query) const noexcept {
    Slot const slot = slots_[query.hash & mask_];
    if (slot.number == 0 || slot.tag != tag_of(query.hash)) return;
    // Two lines: most entries cross one.
    auto const* const entry = reinterpret_cast<char const*>(&entries_[slot.number - 1]);
    step::prefetch(entry);
    step::prefetch(entry + sizeof(Entry) - 1);
}

bool StringTable::equals(Entry const& entry, Query const& query) const noexcept {
    std::size_t const size = query.string.size();
    if (entry.size != size || !(entry.head == query.head)) return false;
    return size <= kHeadBytes ||
           std::memcmp(arena_.data() + entry.begin + kHeadBytes, query.string.data() + kHeadBytes,
                       size - kHeadBytes) == 0;
}

std::uint32_t StringTable::find(Query const& query) const noexcept {
    for (std::size_t at = query.hash & mask_;; at = (at + 1) & mask_) {
        Slot const slot = slots_[at];
        if (slot.number == 0) return kNoString;
        if (slot.tag == tag_of(query.hash) && equals(entries_[slot.number - 1], query)) {
            return slot.number - 1;
        }
    }
}

void StringTable::place(std::uint64_t hash, std::uint32_t number) noexcept {
    std::size_t at = hash & mask_;
    while (slots_[at].number != 0) at = (at + 1) & mask_;
    slots_[at] = {tag_of(hash), number + 1};
}

/// Room in the slots for this many strings in all.
void StringTable::grow_slots(std::size_t strings) {
    std::size_t const needed = std::bit_ceil(std::max<std::size_t>(2 * strings, 16));
    if (needed <= slots_.size()) return;
    std::vector<Slot> larger(needed);
    slots_.swap(larger);
    mask_ = needed - 1;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
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
    grow_slots(entries_.size() + strings);
}

std::uint32_t StringTable::insert(Query const& query) {
    std::uint32_t const found = find(query);
    if (found != kNoString) return found;
    reserve(1, query.string.size());
    auto const number = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({query.head, query.hash, arena_.size(), query.string.size()});
    arena_.insert(arena_.end(), query.string.begin(), query.string.end());
    place(query.hash, number);
    return number;
}

}  // namespace tensorhash::strings
