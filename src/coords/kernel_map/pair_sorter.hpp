// Sorts the pairs of one group by their out rows.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "runtime/memory.hpp"

namespace tensorhash::coords {

/// One offset joins an out row with at most one in row. So one place and one bit per row sort a
/// group in one pass.
class PairSorter {
public:
    /// For rows [first, first + rows).
    explicit PairSorter(std::size_t rows, std::size_t first = 0)
        : first_(static_cast<std::uint32_t>(first)), words_((rows + 63) / 64),
          partner_(rows * sizeof(std::int32_t)),
          seen_(words_ * sizeof(std::uint64_t), runtime::Fill::Zero) {}

    /// False if the row was already added.
    bool add(std::int32_t row, std::int32_t partner) {
        std::uint32_t const at = static_cast<std::uint32_t>(row) - first_;
        std::uint64_t& word = seen()[at / 64];
        std::uint64_t const bit = std::uint64_t{1} << (at % 64);
        bool const fresh = (word & bit) == 0;
        partners()[at] = partner;
        word |= bit;
        return fresh;
    }

    /// Writes the pairs that were added, ascending by row, and removes them.
    void flush(std::int32_t* rows, std::int32_t* partners_out) {
        for (std::size_t word = 0; word < words_; ++word) {
            std::uint64_t bits = seen()[word];
            seen()[word] = 0;
            for (; bits != 0; bits &= bits - 1) {
                std::size_t const at = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
                *rows++ = static_cast<std::int32_t>(first_ + at);
                *partners_out++ = partners()[at];
            }
        }
    }

private:
    std::int32_t* partners() { return reinterpret_cast<std::int32_t*>(partner_.data()); }
    std::uint64_t* seen() { return reinterpret_cast<std::uint64_t*>(seen_.data()); }

    std::uint32_t first_;
    std::size_t words_;
    runtime::Block partner_;
    runtime::Block seen_;
};

}  // namespace tensorhash::coords
