// Numbers of words that are found with one comparison: the words of a group are shifted until no
// two words share a slot. For one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cpu/group_engine.hpp"
#include "runtime/memory.hpp"

namespace tensorhash::cpu {

class DirectWords {
public:
    /// Room for `most` words. No later call allocates.
    DirectWords(std::size_t expected, std::size_t most);

    /// Adds a word. A few words find no slot: recall() never has them.
    void add(std::uint64_t word, std::uint32_t number);
    /// Word i in the order of add().
    std::uint32_t number(std::size_t i) const noexcept { return numbers_[i]; }
    void renumber(std::size_t i, std::uint32_t number) noexcept;

    std::size_t count() const noexcept { return count_; }
    /// Fills in the numbers before the first word without a slot. Returns their count.
    std::size_t recall(std::uint64_t const* words, std::size_t count,
                       std::uint32_t* numbers) const {
        return loops_->recall(table_, words, count, numbers);
    }

private:
    static constexpr std::uint32_t kNone = 0xffffffffu;

    void clear(std::size_t slots) noexcept;
    void place(std::uint32_t i) noexcept;
    bool write(std::uint32_t i) noexcept;
    bool write_group(std::uint32_t first) noexcept;
    void empty_group(std::uint32_t first, std::uint32_t end) noexcept;
    bool holds(std::uint32_t i) const noexcept;

    GroupLoops const* loops_ = &group_loops();
    std::size_t most_slots_;
    runtime::Block memory_;
    DirectTable table_{};
    std::size_t count_ = 0;
    // Of each word, in the order of add():
    std::uint64_t* words_;
    std::uint32_t* numbers_;
    std::uint32_t* next_;                       // in its group
    std::array<std::uint32_t, kShifts> first_;  // of each group
};

}  // namespace tensorhash::cpu
