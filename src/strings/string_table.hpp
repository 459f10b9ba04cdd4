// The table of a StringIndex: strings in one arena, numbered in order of insertion, found through
// open addressing. No lock and no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "strings/string_hash.hpp"

namespace tensorhash::strings {

/// A string of a batch with what the table needs of it.
struct Query {
    std::string_view string;
    Head head;
    std::uint64_t hash;
};

inline constexpr std::uint32_t kNoString = 0xffffffffu;
/// A table holds at most this many strings.
inline constexpr std::size_t kMostStrings = 0x7fffffffu;

class StringTable {
public:
    explicit StringTable(step::HashSecret const& secret) : secret_(secret) {}

    std::size_t size() const noexcept { return entries_.size(); }
    std::size_t bytes() const noexcept { return arena_.size(); }
    std::uint64_t memory() const noexcept;
    step::HashSecret const& secret() const noexcept { return secret_; }

    Query query(std::string_view string) const noexcept {
        Head const head = head_of(string);
        return {string, head, hash_of(string, head, secret_)};
    }
    /// Fetches the slot of a string into cache, then what the slot points at.
    void prefetch_slot(Query const& query) const noexcept;
    void prefetch_entry(Query const& query) const noexcept;

    /// The number of the string, or kNoString.
    std::uint32_t find(Query const& query) const noexcept;
    /// The number of the string; a new one gets the next number. Grows. Throws std::bad_alloc or
    /// ValueError and changes nothing.
    std::uint32_t insert(Query const& query);

    /// Makes room, so that inserting `strings` more with `bytes` bytes allocates nothing.
    void reserve(std::size_t strings, std::size_t bytes);

    std::string_view string(std::size_t number) const noexcept {
        Entry const& entry = entries_[number];
        return {arena_.data() + entry.begin, entry.size};
    }
    std::uint64_t hash(std::size_t number) const noexcept { return entries_[number].hash; }

private:
    /// 40 bytes: most lookups read one entry and no other memory.
    struct Entry {
        Head head;
        std::uint64_t hash;
        std::uint64_t begin;
        std::uint64_t size;
    };
    /// Half of the hash, and the number plus one; 0 is empty.
    struct Slot {
        std::uint32_t tag;
        std::uint32_t number;
    };

    static std::uint32_t tag_of(std::uint64_t hash) noexcept {
        return static_cast<std::uint32_t>(hash >> 32);
    }
    bool equals(Entry const& entry, Query const& query) const noexcept;
    void place(std::uint64_t hash, std::uint32_t number) noexcept;
    void grow_slots(std::size_t strings);

    step::HashSecret secret_;
    std::vector<Slot> slots_ = std::vector<Slot>(16);
    std::size_t mask_ = 15;
    std::vector<Entry> entries_;
    std::vector<char> arena_;
};

}  // namespace tensorhash::strings
