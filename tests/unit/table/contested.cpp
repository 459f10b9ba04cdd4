// Rows of one key in several chunks of an erase: whichever chunk was first, they end as if erased
// in order.
#include "table/contested.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

namespace step = tensorhash::step;
using tensorhash::index::BucketIndex;
using tensorhash::runtime::Chunks;
using tensorhash::table::ContestedRows;
using tensorhash::table::ErasedBatch;

constexpr std::size_t kEntries = 9000;
constexpr std::size_t kChunk = 2048;
constexpr std::uint64_t kSeed = 5;

/// An index of entries 0 to kEntries - 1, and one batch that erases. Key number i is the same in
/// all of them; those from kEntries on are absent.
class Erasure {
public:
    Erasure(std::uint32_t width, std::vector<std::uint32_t> numbers)
        : width_(width), numbers_(std::move(numbers)), entries_(keys_of(sequence())),
          keys_(keys_of(numbers_)), chunks_{rows(), kChunk, (rows() + kChunk - 1) / kChunk},
          positions_(rows()), buf_indices_(rows()), mask_(rows()), taken_(chunks_.count),
          index_({width, 0}, BucketIndex::buckets_for({width, 0}, kEntries), kSeed) {
        std::vector<std::uint32_t> positions(kEntries), buf_indices(kEntries);
        std::vector<unsigned char> mask(kEntries);
        index_.claim(entries_.data(),
                     {entries_.data(), 0, positions.data(), buf_indices.data(), mask.data()}, 0,
                     kEntries);
    }

    std::size_t rows() const { return numbers_.size(); }
    std::size_t chunks() const { return chunks_.count; }
    BucketIndex& index() { return index_; }
    ErasedBatch batch() { return {entries_.data(), view(0), chunks_, taken_}; }

    void erase(std::size_t chunk) {
        std::size_t const count = chunks_.end(chunk) - chunks_.begin(chunk);
        index_.erase(entries_.data(), view(chunks_.begin(chunk)), Chunks{count, count, 1},
                     std::span(taken_).subspan(chunk, 1));
    }
    /// As if another thread read the slots before this chunk released them: the index holds the
    /// entries again, and the rows still say that they took them.
    void put_back(std::size_t chunk) {
        std::vector<std::uint32_t> list(chunks_.end(chunk) - chunks_.begin(chunk));
        std::iota(list.begin(), list.end(), static_cast<std::uint32_t>(chunks_.begin(chunk)));
        auto const& loops = tensorhash::cpu::index_loops(width_, 0);
        auto const index = index_.view(entries_.data());
        loops.put_back(index, view(0), {list.data(), list.size()});
        for (std::uint32_t const row : list) {  // as before the erase: with the entry's ticket
            if (mask_[row] == 0) continue;
            if (width_ <= 8) {
                auto* const buckets = static_cast<step::NarrowBucket*>(index.buckets);
                buckets[positions_[row] >> 3].tickets[positions_[row] & 7] =
                    step::to_ticket(buf_indices_[row]);
            } else {
                auto* const buckets = static_cast<step::WideBucket*>(index.buckets);
                std::uint64_t& slot = buckets[positions_[row] >> 3].slots[positions_[row] & 7];
                slot = slot >> 32 << 32 | step::to_ticket(buf_indices_[row]);
            }
        }
    }

    void expect_as_if_in_order() {
        Erasure in_order(width_, numbers_);
        std::vector<bool> gone(kEntries);
        for (std::size_t chunk = 0; chunk < chunks(); ++chunk) in_order.erase(chunk);
        for (std::size_t row = 0; row < rows(); ++row) {
            bool const first = numbers_[row] < kEntries && !gone[numbers_[row]];
            if (first) gone[numbers_[row]] = true;
            ASSERT_EQ(mask_[row], first ? 1 : 0) << row;
            ASSERT_EQ(buf_indices_[row], first ? numbers_[row] : 0xffffffffu) << row;
        }
        EXPECT_EQ(index_.count_entries(),
                  kEntries - static_cast<std::size_t>(std::count(gone.begin(), gone.end(), true)));
        EXPECT_EQ(index_.room(), in_order.index_.room());  // as many erased slots
    }

private:
    static std::vector<std::uint32_t> sequence() {
        std::vector<std::uint32_t> numbers(kEntries);
        std::iota(numbers.begin(), numbers.end(), 0u);
        return numbers;
    }
    std::vector<unsigned char> keys_of(std::vector<std::uint32_t> const& numbers) const {
        std::vector<unsigned char> keys(numbers.size() * width_);
        for (std::size_t row = 0; row < numbers.size(); ++row)
            std::memcpy(&keys[row * width_], &numbers[row], sizeof(numbers[row]));
        return keys;
    }
    step::BatchView view(std::size_t row) {
        return {keys_.data() + row * width_, kEntries, positions_.data() + row,
                buf_indices_.data() + row, mask_.data() + row};
    }

    std::uint32_t width_;
    std::vector<std::uint32_t> numbers_;
    std::vector<unsigned char> entries_, keys_;
    Chunks chunks_;
    std::vector<std::uint32_t> positions_, buf_indices_;
    std::vector<unsigned char> mask_;
    std::vector<std::uint64_t> taken_;
    BucketIndex index_;
};

std::vector<std::uint32_t> random_numbers(std::size_t rows, std::uint32_t end) {
    std::mt19937 random(3);
    std::uniform_int_distribution<std::uint32_t> below(0, end - 1);
    std::vector<std::uint32_t> numbers(rows);
    for (std::uint32_t& number : numbers) number = below(random);
    return numbers;
}

std::vector<std::uint32_t> distinct_numbers(std::size_t rows, std::uint32_t end) {
    std::vector<std::uint32_t> numbers(end);
    std::iota(numbers.begin(), numbers.end(), 0u);
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(4));
    numbers.resize(rows);
    return numbers;
}

class Contested : public ::testing::TestWithParam<std::tuple<std::uint32_t, int>> {
protected:
    static std::uint32_t width() { return std::get<0>(GetParam()); }

private:
    Threads threads_{std::get<1>(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(Widths, Contested,
                         ::testing::Combine(::testing::Values(8u, 12u), ::testing::Values(1, 2, 8)),
                         [](auto const& param_info) {
                             return "bytes" + std::to_string(std::get<0>(param_info.param)) +
                                    "_threads" + std::to_string(std::get<1>(param_info.param));
                         });

TEST_P(Contested, keys_that_a_later_chunk_took_go_to_their_first_rows) {
    // Keys once to four times, half of them absent.
    Erasure batch(width(), random_numbers(20'000, 2 * kEntries));
    for (std::size_t chunk = batch.chunks(); chunk-- > 0;) batch.erase(chunk);
    tensorhash::runtime::Block memory(ContestedRows::bytes(batch.rows()));
    ContestedRows contested(memory, batch.rows());
    ASSERT_TRUE(contested.choose_missed(batch.index(), batch.batch()));
    contested.decide(batch.index(), batch.batch());
    batch.expect_as_if_in_order();
}

TEST_P(Contested, one_key_that_a_later_chunk_took_is_found_among_many) {
    std::vector<std::uint32_t> numbers = distinct_numbers(12'000, 2 * kEntries);
    auto const present = [](std::uint32_t number) { return number < kEntries; };
    auto const first = std::find_if(numbers.begin(), numbers.end(), present);
    numbers.back() = *first;
    Erasure batch(width(), numbers);
    for (std::size_t chunk = batch.chunks(); chunk-- > 0;) batch.erase(chunk);
    tensorhash::runtime::Block memory(ContestedRows::bytes(batch.rows()));
    ContestedRows contested(memory, batch.rows());
    ASSERT_TRUE(contested.choose_missed(batch.index(), batch.batch()));
    contested.decide(batch.index(), batch.batch());
    batch.expect_as_if_in_order();
}

TEST_P(Contested, entries_that_two_rows_took_go_to_the_first) {
    std::vector<std::uint32_t> numbers = random_numbers(3 * kChunk, kEntries + 1000);
    std::copy_n(numbers.begin(), kChunk, numbers.begin() + kChunk);
    Erasure batch(width(), numbers);
    batch.erase(0);
    batch.put_back(0);
    batch.erase(1);
    batch.erase(2);
    tensorhash::runtime::Block memory(ContestedRows::bytes(batch.rows()));
    ContestedRows contested(memory, batch.rows());
    contested.choose_all(batch.batch());
    contested.decide(batch.index(), batch.batch());
    batch.expect_as_if_in_order();
}

TEST_P(Contested, absent_keys_and_keys_of_one_row_leave_nothing_to_decide) {
    for (std::uint32_t const end : {9000u, 9001u, 18'000u}) {  // few or many absent keys
        Erasure batch(width(), distinct_numbers(9000, end));
        for (std::size_t chunk = batch.chunks(); chunk-- > 0;) batch.erase(chunk);
        tensorhash::runtime::Block memory(ContestedRows::bytes(batch.rows()));
        ContestedRows contested(memory, batch.rows());
        EXPECT_FALSE(contested.choose_missed(batch.index(), batch.batch()));
        batch.expect_as_if_in_order();
    }
}

}  // namespace
}  // namespace th_test
