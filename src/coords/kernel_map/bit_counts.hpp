// For each bit of a word, counts the words that have it set.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tensorhash::coords {

/// Adds sixteen words at a time, at about five operations per word.
class BitCounts {
public:
    void add(std::uint64_t const (&w)[16]) {
        std::uint64_t twos[8];
        std::uint64_t fours[4];
        std::uint64_t eights[2];
        for (std::size_t i = 0; i < 8; ++i) twos[i] = add_up(ones_, w[2 * i], w[2 * i + 1]);
        for (std::size_t i = 0; i < 4; ++i) fours[i] = add_up(twos_, twos[2 * i], twos[2 * i + 1]);
        for (std::size_t i = 0; i < 2; ++i)
            eights[i] = add_up(fours_, fours[2 * i], fours[2 * i + 1]);
        spread(add_up(eights_, eights[0], eights[1]), 16);
    }
    std::array<std::int64_t, 64> const& finish() {
        spread(std::exchange(ones_, 0), 1);
        spread(std::exchange(twos_, 0), 2);
        spread(std::exchange(fours_, 0), 4);
        spread(std::exchange(eights_, 0), 8);
        return counts_;
    }

private:
    /// sum + a + b for each bit: sum keeps the low digit, the carry is returned.
    static std::uint64_t add_up(std::uint64_t& sum, std::uint64_t a, std::uint64_t b) {
        std::uint64_t const half = sum ^ a;
        std::uint64_t const carry = (sum & a) | (half & b);
        sum = half ^ b;
        return carry;
    }
    void spread(std::uint64_t bits, std::int64_t each) {
        for (; bits != 0; bits &= bits - 1) {
            counts_[static_cast<std::size_t>(std::countr_zero(bits))] += each;
        }
    }

    std::uint64_t ones_ = 0;
    std::uint64_t twos_ = 0;
    std::uint64_t fours_ = 0;
    std::uint64_t eights_ = 0;
    std::array<std::int64_t, 64> counts_{};
};

}  // namespace tensorhash::coords
