// Memory and growth of a WordTable.
#include "cpu/word_numbers.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tensorhash::cpu {
namespace {

constexpr std::size_t kMinBuckets = 16;
constexpr std::size_t kWordsPerBucket = 4;

}  // namespace

/// An empty table for `expected` words, two per bucket. Keeps memory that is large enough.
void WordNumbers::size_table(std::size_t expected) {
    std::size_t const buckets = std::bit_ceil(std::max(kMinBuckets, expected / 2 + 1));
    std::size_t const limit = 3 * buckets;
    std::size_t const slots = kWordsPerBucket * buckets;
    if (slots_.bytes() < slots * (8 + 4)) slots_ = runtime::Block(slots * (8 + 4));
    if (lists_.bytes() < limit * (8 + 4)) lists_ = runtime::Block(limit * (8 + 4));
    auto* const words = reinterpret_cast<std::uint64_t*>(slots_.data());
    auto* const listed = reinterpret_cast<std::uint64_t*>(lists_.data());
    std::memset(words, 0, slots * 8);
    table_ = {words,
              reinterpret_cast<std::uint32_t*>(words + slots),
              buckets - 1,
              listed,
              reinterpret_cast<std::uint32_t*>(listed + limit),
              0,
              static_cast<std::uint32_t>(std::min<std::size_t>(limit, kNoWord - 1)),
              kNoWord};
}

void WordNumbers::reset(std::size_t expected) { size_table(expected); }

void WordNumbers::grow() {
    WordTable const old = table_;
    runtime::Block const old_lists = std::move(lists_);
    lists_ = runtime::Block();
    size_table(std::size_t{old.limit} * 2);
    std::copy_n(old.listed, old.count, table_.listed);
    std::copy_n(old.first_rows, old.count, table_.first_rows);
    table_.count = old.count;
    table_.zero = old.zero;
    loops_->refill(table_);
}

std::size_t WordNumbers::number(std::uint64_t const* words, std::uint32_t const* rows,
                                std::uint32_t first_row, std::size_t count, std::uint32_t* numbers,
                                std::size_t most) {
    std::size_t done = 0;
    while (done < count) {
        std::uint32_t const limit = table_.limit;
        table_.limit = static_cast<std::uint32_t>(std::min<std::size_t>(limit, most));
        done += loops_->number(table_, words + done, rows != nullptr ? rows + done : nullptr,
                               first_row + static_cast<std::uint32_t>(done), count - done,
                               numbers + done);
        table_.limit = limit;
        if (done == count || table_.count >= most) break;
        grow();
    }
    return done;
}

void WordNumbers::look_up(std::uint64_t const* words, std::size_t count,
                          std::uint32_t* numbers) const {
    loops_->look_up(table_, words, count, numbers);
}

}  // namespace tensorhash::cpu
