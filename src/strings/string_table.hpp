// The table of a StringIndex: strings in one arena, numbered in order of insertion, found through
// open addressing. No lock and no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/block_vector.hpp"
#include "strings/string_probe.hpp"

namespace tensorhash::strings {

/// A table holds at most this many strings.
inline constexpr std::size_t kMostStrings = 0x7fffffffu;

class StringTable {
public:
    explicit StringTable(StringSecret const& secret) : secret_(secret) {}

    std::size_t size() const noexcept { return entries_.size(); }
    std::size_t bytes() const noexcept { return arena_.size(); }
    std::uint64_t memory() const noexcept;
    StringSecret const& secret() const noexcept { return secret_; }

    Query query(std::string_view string) const noexcept { return query(string, head_of(string)); }
    Query query(std::string_view string, Head const& head) const noexcept {
        return {string, head, hash_of(string, head, secret_)};
    }
    /// A string of this table, to look it up in another one with the same secret.
    Query query_of(std::size_t number) const noexcept {
        return {string(number), entries_[number].head, entries_[number].hash};
    }

    /// Valid until the table changes.
    StringTableView view() const noexcept {
        return {buckets_.data(), mask_, entries_.data(), entries_.size(), arena_.data()};
    }
    std::uint64_t hash(std::size_t number) const noexcept { return entries_[number].hash; }
    void prefetch_bucket(std::uint64_t hash) const noexcept {
        strings::prefetch_bucket(view(), hash);
    }
    void prefetch_entry(std::uint64_t hash) const noexcept {
        strings::prefetch_entry(view(), hash);
    }
    /// The number of the string; a new one gets the next number. Grows. Throws std::bad_alloc or
    /// ValueError and changes nothing.
    std::uint32_t insert(Query const& query) {
        std::uint32_t const found = find(view(), query);
        return found != kNoString ? found : add(query);
    }

    /// Makes room, so that inserting `strings` more with `bytes` bytes allocates nothing.
    void reserve(std::size_t strings, std::size_t bytes);

    std::string_view string(std::size_t number) const noexcept {
        Entry const& entry = entries_[number];
        return {arena_.data() + entry.begin, entry.size};
    }

private:
    std::uint32_t add(Query const& query);
    void place(std::uint64_t hash, std::uint32_t number) noexcept;
    void grow_buckets(std::size_t strings);

    StringSecret secret_;
    runtime::BlockVector<Bucket> buckets_ = runtime::BlockVector<Bucket>(1);
    std::size_t mask_ = 0;
    runtime::BlockVector<Entry> entries_;
    runtime::BlockVector<char> arena_;
};

}  // namespace tensorhash::strings
