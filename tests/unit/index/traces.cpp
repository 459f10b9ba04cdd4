// The traces that keys leave in lines they go past: never missing, or a key would be lost; and only in full lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "cpu/engine.hpp"
#include "runtime/memory.hpp"
#include "tensorhash/step/probe.hpp"

namespace th_test {
namespace {

namespace cpu = tensorhash::cpu;
namespace kernel = tensorhash::kernel;

static_assert(
    !kernel::kBoundedWalks);  // the CPU's walks rely on an empty slot and pay for no bound

/// An index so full that many keys leave their home line, driven by hand. `Reader` says which layout.
template <class Reader>
class FullIndex {
public:
    using Index = typename kernel::IndexOf<Reader, kernel::Sole>::type;
    static constexpr std::uint32_t kWidth = Reader::kNarrow ? 8 : 12;
    using Line = std::conditional_t<Reader::kNarrow, kernel::NarrowLine, kernel::WideLine>;

    FullIndex(std::size_t lines, bool shared)
        : lines_(lines), run_(cpu::kernels(kWidth, 0)), write_(shared ? run_.shared : run_.sole),
          memory_(lines * 64, tensorhash::runtime::Fill::Zero), keys_(4 * slots() * kWidth) {}

    Index index() { return Index(view()); }
    std::size_t slots() const { return lines_ * Line::kLanes; }
    std::size_t live() const {
        return static_cast<std::size_t>(std::count(is_live_.begin(), is_live_.end(), true));
    }

    /// An index must keep an empty slot, where walks end: makes tombstones empty if they are too many for these rows.
    void make_room(std::size_t rows) {
        std::size_t erased = 0;
        for (std::uint64_t line = 0; line < lines_; ++line)
            erased +=
                static_cast<std::size_t>(__builtin_popcount(index().read_slots(line).erased()));
        if (live() + erased + rows >= slots()) place_anew();
        ASSERT_LT(live() + rows, slots());
    }

    std::uint64_t taken_again() const { return taken_again_; }

    /// Every key comes twice, and the later rows are claimed first: the earlier ones must join them and win.
    void insert_new(std::size_t rows) {
        ASSERT_NO_FATAL_FAILURE(make_room(rows));
        std::vector<unsigned char> keys = random_keys(rows);
        keys.insert(keys.end(), keys.begin(), keys.end());
        Answers out(2 * rows);
        auto const batch = out.batch(keys, top_);
        auto const claimed = write_.claim(view(), batch, rows, 2 * rows);
        ASSERT_EQ(claimed.claimed, rows);
        taken_again_ += claimed.from_erased;
        ASSERT_EQ(write_.claim(view(), batch, 0, rows).claimed, 0u);
        ASSERT_EQ(run_.settle(view(), batch, 0, 2 * rows), rows);
        run_.publish(view(), batch, 0, 2 * rows, 0, nullptr, 0);
        std::copy_n(keys.begin(), rows * kWidth, keys_.begin() + top_ * kWidth);
        top_ += static_cast<std::uint32_t>(rows);
        is_live_.resize(top_, true);
    }

    /// As a batch that fails half way.
    void insert_and_take_back(std::size_t rows) {
        ASSERT_NO_FATAL_FAILURE(make_room(rows));
        std::vector<unsigned char> const keys = random_keys(rows);
        Answers out(rows);
        auto const batch = out.batch(keys, top_);
        ASSERT_EQ(write_.claim(view(), batch, 0, rows).claimed, rows);
        ASSERT_EQ(write_.release_claims(view(), batch, 0, rows).released, rows);
    }

    /// Every second key.
    void erase_half() {
        std::vector<unsigned char> keys;
        for (std::uint32_t number = 0; number < top_; number += 2) {
            if (is_live_[number]) {
                keys.insert(keys.end(), &keys_[number * kWidth], &keys_[(number + 1) * kWidth]);
                is_live_[number] = false;
            }
        }
        std::size_t const rows = keys.size() / kWidth;
        Answers out(rows);
        run_.locate(view(), out.batch(keys, top_), 0, rows);
        auto const count = write_.release_found(view(), out.batch(keys, top_), 0, rows);
        ASSERT_EQ(count.released, rows);
    }

    void place_anew() {
        std::memset(memory_.data(), 0, lines_ * 64);
        std::vector<std::uint64_t> bits(top_ / 64 + 1);
        for (std::uint32_t number = 0; number < top_; ++number) {
            bits[number / 64] |= std::uint64_t{is_live_[number]} << (number % 64);
        }
        write_.place(view(), {bits.data(), 0, top_});
    }

    /// Every live key is where it says, and of its class there is a trace in every line on the way there.
    void expect_traces_on_every_way() {
        Answers out(top_);
        auto const batch = out.batch(keys_, top_);
        run_.locate(view(), batch, 0, top_);
        std::size_t away = 0;
        for (std::uint32_t number = 0; number < top_; ++number) {
            ASSERT_EQ(out.mask[number], is_live_[number] ? 1 : 0);
            if (!is_live_[number]) continue;
            ASSERT_EQ(out.numbers[number], number);
            std::uint64_t const hash = index().hash(keys_.data(), number);
            std::uint64_t const at = out.positions[number] >> 3;
            for (std::uint64_t line = hash % lines_; line != at; line = (line + 1) % lines_, ++away)
                EXPECT_TRUE(!keeps_traces(line) ||
                            (index().traces(line) >> Line::class_of(hash) & 1) != 0);
        }
        EXPECT_GE(away,
                  lines_ / 16);  // else nothing was tested; chance may have it so in 2 or 4 lines
    }

    /// A line with room has no trace: nobody had a reason to go past.
    void expect_traces_in_full_lines_only() {
        for (std::uint64_t line = 0; line < lines_; ++line) {
            if (index().read_slots(line).empty() != 0) {
                EXPECT_FALSE(has_any_trace(line)) << line;
            }
        }
    }

    void expect_no_strangers() {
        std::size_t const rows = 5000;
        std::vector<unsigned char> const keys = random_keys(rows);
        Answers out(rows);
        run_.find(view(), out.batch(keys, top_), 0, rows);
        EXPECT_EQ(std::count(out.mask.begin(), out.mask.end(), 0), std::ptrdiff_t{rows});
    }

    /// Erased slots of lines that keep traces, and have some or none.
    std::size_t erased_slots(bool in_traced_lines) {
        std::size_t count = 0;
        for (std::uint64_t line = 0; line < lines_; ++line) {
            if (keeps_traces(line) && has_any_trace(line) == in_traced_lines)
                count +=
                    static_cast<std::size_t>(__builtin_popcount(index().read_slots(line).erased()));
        }
        return count;
    }

private:
    struct Answers {
        std::vector<std::uint32_t> positions, numbers;
        std::vector<unsigned char> mask;
        explicit Answers(std::size_t rows) : positions(rows), numbers(rows), mask(rows) {}
        kernel::BatchView batch(std::vector<unsigned char> const& keys, std::uint32_t base) {
            return {keys.data(), base, positions.data(), numbers.data(), mask.data()};
        }
    };

    kernel::IndexView view() { return {memory_.data(), lines_ - 1, keys_.data(), kWidth, 0}; }
    std::vector<unsigned char> random_keys(std::size_t rows) {
        std::vector<unsigned char> keys(rows * kWidth);
        std::generate(keys.begin(), keys.end(),
                      [&] { return static_cast<unsigned char>(random_()); });
        return keys;
    }
    static bool keeps_traces(std::uint64_t line) {
        return !Reader::kNarrow || kernel::NarrowLine::keeps_traces(line);
    }
    bool has_any_trace(std::uint64_t line) {
        return keeps_traces(line) && index().traces(line) != 0;
    }

    std::size_t lines_;
    cpu::Kernels const& run_;
    cpu::Kernels::Writers const& write_;
    tensorhash::runtime::Block memory_;
    std::vector<unsigned char> keys_;
    std::vector<bool> is_live_;
    std::uint32_t top_ = 0;
    std::uint64_t taken_again_ = 0;
    std::mt19937_64 random_{7};
};

template <class Reader>
class Traces : public ::testing::Test {
public:
    static void expect_sound(FullIndex<Reader>& full) {
        full.expect_traces_on_every_way();
        full.expect_traces_in_full_lines_only();
        full.expect_no_strangers();
    }
};
using Readers = ::testing::Types<kernel::Narrow8, kernel::Wide12>;
TYPED_TEST_SUITE(Traces, Readers);

TYPED_TEST(Traces, lie_on_the_way_of_every_key_whatever_was_erased_and_inserted_since) {
    for (std::size_t const lines : {2u, 4u, 64u})
        for (bool const shared : {false, true}) {
            SCOPED_TRACE(std::to_string(lines) + (shared ? " lines, shared" : " lines, sole"));
            FullIndex<TypeParam> full(lines, shared);
            std::size_t const most = full.slots() * 3 / 4;
            ASSERT_NO_FATAL_FAILURE(full.insert_new(most));
            this->expect_sound(full);
            for (int round = 0; round < 4; ++round) {
                ASSERT_NO_FATAL_FAILURE(full.erase_half());
                this->expect_sound(full);
                ASSERT_NO_FATAL_FAILURE(full.insert_and_take_back(full.slots() / 10));
                this->expect_sound(full);
                ASSERT_NO_FATAL_FAILURE(full.insert_new(most - full.live()));
                this->expect_sound(full);
            }
            EXPECT_GE(full.taken_again(), lines / 64);  // chance may have none in 2 or 4 lines
            full.place_anew();
            this->expect_sound(full);
        }
}

TYPED_TEST(Traces, keep_erased_slots_from_becoming_empty_and_nothing_else_does) {
    FullIndex<TypeParam> full(64, false);
    full.insert_new(full.slots() * 8 / 10);
    full.erase_half();
    EXPECT_GT(full.erased_slots(true), 0u);
    EXPECT_EQ(full.erased_slots(false), 0u);
}

}  // namespace
}  // namespace th_test
