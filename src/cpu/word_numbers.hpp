// Numbers distinct words in order of first occurrence, with room that grows. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/group_engine.hpp"
#include "runtime/memory.hpp"

namespace tensorhash::cpu {

class WordNumbers {
public:
    /// Forgets all words. The next `expected` distinct ones need no growth.
    void reset(std::size_t expected);

    /// numbers[i] = the number of words[i]; a new word lists its row: rows[i], or first_row + i
    /// without `rows`. Stops at the first new word once there are `most`. Returns the rows done.
    std::size_t number(std::uint64_t const* words, std::uint32_t const* rows,
                       std::uint32_t first_row, std::size_t count, std::uint32_t* numbers,
                       std::size_t most = SIZE_MAX);
    /// numbers[i] = the number of words[i], or kNoWord.
    void look_up(std::uint64_t const* words, std::size_t count, std::uint32_t* numbers) const;

    std::size_t count() const noexcept { return table_.count; }
    /// The word of each number.
    std::span<std::uint64_t const> words() const noexcept { return {table_.listed, table_.count}; }
    /// The row of each number.
    std::span<std::uint32_t const> rows() const noexcept {
        return {table_.first_rows, table_.count};
    }

private:
    void size_table(std::size_t expected);
    void grow();

    GroupLoops const* loops_ = &group_loops();
    runtime::Block slots_;
    runtime::Block lists_;
    WordTable table_{};
};

}  // namespace tensorhash::cpu
