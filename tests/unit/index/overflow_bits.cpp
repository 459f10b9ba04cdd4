// Overflow bits of buckets: a missing one would lose a key, and only full buckets may have them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "cpu/engine.hpp"
#include "cpu/settle.hpp"
#include "runtime/memory.hpp"
#include "tensorhash/step/find.hpp"

namespace th_test {
namespace {

namespace cpu = tensorhash::cpu;
namespace step = tensorhash::step;

static_assert(!step::kBoundedProbes);  // CPU probes end at an empty slot and have no bound

/// An index so full that many keys leave their home bucket, driven directly. `Reader` sets the
/// layout.
template <class Reader>
class FullIndex {
public:
    using Index = typename step::IndexOf<Reader, step::Exclusive>::type;
    static constexpr std::uint32_t kWidth = Reader::kNarrow ? 8 : 12;
    using Bucket = std::conditional_t<Reader::kNarrow, step::NarrowBucket, step::WideBucket>;

    FullIndex(std::size_t buckets, bool shared)
        : buckets_(buckets), run_(cpu::index_loops(kWidth, 0)),
          write_(shared ? run_.shared : run_.exclusive),
          memory_(buckets * 64, tensorhash::runtime::Fill::Zero), keys_(4 * slots() * kWidth) {}

    Index index() { return Index(view()); }
    std::size_t slots() const { return buckets_ * Bucket::kLanes; }
    std::size_t live() const {
        return static_cast<std::size_t>(std::count(is_live_.begin(), is_live_.end(), true));
    }

    /// Probes end at an empty slot, so the index must keep one: rebuilds the index if erased
    /// slots leave too few empty ones for these rows.
    void keep_an_empty_slot(std::size_t rows) {
        std::size_t erased = 0;
        for (std::uint64_t bucket = 0; bucket < buckets_; ++bucket)
            erased +=
                static_cast<std::size_t>(__builtin_popcount(index().read_slots(bucket).erased()));
        if (live() + erased + rows >= slots()) place_anew();
        ASSERT_LT(live() + rows, slots());
    }

    std::uint64_t taken_again() const { return taken_again_; }

    /// Every key comes twice. The later rows are claimed first; the earlier rows must join and win.
    void insert_new(std::size_t rows) {
        ASSERT_NO_FATAL_FAILURE(keep_an_empty_slot(rows));
        std::vector<unsigned char> keys = random_keys(rows);
        keys.insert(keys.end(), keys.begin(), keys.end());
        Answers out(2 * rows);
        auto const batch = out.batch(keys, top_);
        auto const claimed = write_.claim(view(), batch, rows, 2 * rows);
        ASSERT_EQ(claimed.claimed, rows);
        taken_again_ += claimed.from_erased;
        ASSERT_EQ(write_.claim(view(), batch, 0, rows).claimed, 0u);
        tensorhash::cpu::settle(batch, 0, 2 * rows);
        for (std::size_t row = 0; row < 2 * rows; ++row)
            ASSERT_EQ(out.mask[row], row < rows ? 1 : 0);
        run_.publish(view(), batch, 0, 2 * rows, 0, nullptr, 0);
        std::copy_n(keys.begin(), rows * kWidth, keys_.begin() + top_ * kWidth);
        top_ += static_cast<std::uint32_t>(rows);
        is_live_.resize(top_, true);
    }

    /// Like a batch that fails half way.
    void insert_and_take_back(std::size_t rows) {
        ASSERT_NO_FATAL_FAILURE(keep_an_empty_slot(rows));
        std::vector<unsigned char> const keys = random_keys(rows);
        Answers out(rows);
        auto const batch = out.batch(keys, top_);
        ASSERT_EQ(write_.claim(view(), batch, 0, rows).claimed, rows);
        ASSERT_EQ(write_.release_claims(view(), batch, 0, rows).released, rows);
    }

    /// Erases every second key.
    void erase_half() {
        std::vector<unsigned char> keys;
        for (std::uint32_t buf_index = 0; buf_index < top_; buf_index += 2) {
            if (is_live_[buf_index]) {
                keys.insert(keys.end(), &keys_[buf_index * kWidth],
                            &keys_[(buf_index + 1) * kWidth]);
                is_live_[buf_index] = false;
            }
        }
        std::size_t const rows = keys.size() / kWidth;
        Answers out(rows);
        auto const count = write_.erase(view(), out.batch(keys, top_), 0, rows);
        ASSERT_EQ(count.released, rows);
    }

    void place_anew() {
        std::memset(memory_.data(), 0, buckets_ * 64);
        std::vector<std::uint64_t> bits(top_ / 64 + 1);
        for (std::uint32_t buf_index = 0; buf_index < top_; ++buf_index) {
            bits[buf_index / 64] |= std::uint64_t{is_live_[buf_index]} << (buf_index % 64);
        }
        write_.place(view(), {bits.data(), 0, top_});
    }

    /// Every live key is where it should be, and each bucket that it probed past has the overflow
    /// bit of its class.
    void expect_overflow_bits_on_every_probe() {
        Answers out(top_);
        auto const batch = out.batch(keys_, top_);
        std::size_t away = 0;
        for (std::uint32_t buf_index = 0; buf_index < top_; ++buf_index) {
            std::uint64_t const hash = index().hash(keys_.data(), buf_index);
            step::Match const found = step::find(index(), hash, batch, buf_index);
            ASSERT_EQ(found.buf_index, is_live_[buf_index] ? buf_index : step::kNotFound);
            if (!is_live_[buf_index]) continue;
            std::uint64_t const at = found.position >> 3;
            for (std::uint64_t bucket = index().home(hash); bucket != at;
                 bucket = (bucket + 1) % buckets_, ++away)
                EXPECT_TRUE(!has_overflow_bits(bucket) ||
                            (index().overflow_bits(bucket) >> Bucket::class_of(hash) & 1) != 0);
        }
        EXPECT_GE(
            away,
            buckets_ / 16);  // else nothing was tested; 2 or 4 buckets may have none by chance
    }

    /// A bucket with an empty slot has no overflow bits: no key had to leave it.
    void expect_overflow_bits_in_full_buckets_only() {
        for (std::uint64_t bucket = 0; bucket < buckets_; ++bucket) {
            if (index().read_slots(bucket).empty() != 0) {
                EXPECT_FALSE(has_any_overflow(bucket)) << bucket;
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

    /// Counts erased slots in buckets with overflow bits, or in those without. Leaves out buckets
    /// that cannot have any.
    std::size_t erased_slots(bool in_overflowed_buckets) {
        std::size_t count = 0;
        for (std::uint64_t bucket = 0; bucket < buckets_; ++bucket) {
            if (has_overflow_bits(bucket) && has_any_overflow(bucket) == in_overflowed_buckets)
                count += static_cast<std::size_t>(
                    __builtin_popcount(index().read_slots(bucket).erased()));
        }
        return count;
    }

private:
    struct Answers {
        std::vector<std::uint32_t> positions, buf_indices;
        std::vector<unsigned char> mask;
        explicit Answers(std::size_t rows) : positions(rows), buf_indices(rows), mask(rows) {}
        step::BatchView batch(std::vector<unsigned char> const& keys, std::uint32_t base) {
            return {keys.data(), base, positions.data(), buf_indices.data(), mask.data()};
        }
    };

    step::IndexView view() { return {memory_.data(), buckets_, keys_.data(), kWidth, 0}; }
    std::vector<unsigned char> random_keys(std::size_t rows) {
        std::vector<unsigned char> keys(rows * kWidth);
        std::generate(keys.begin(), keys.end(),
                      [&] { return static_cast<unsigned char>(random_()); });
        return keys;
    }
    static bool has_overflow_bits(std::uint64_t bucket) {
        return !Reader::kNarrow || step::NarrowBucket::has_overflow_bits(bucket);
    }
    bool has_any_overflow(std::uint64_t bucket) {
        return has_overflow_bits(bucket) && index().overflow_bits(bucket) != 0;
    }

    std::size_t buckets_;
    cpu::IndexLoops const& run_;
    cpu::IndexLoops::Writers const& write_;
    tensorhash::runtime::Block memory_;
    std::vector<unsigned char> keys_;
    std::vector<bool> is_live_;
    std::uint32_t top_ = 0;
    std::uint64_t taken_again_ = 0;
    std::mt19937_64 random_{7};
};

template <class Reader>
class OverflowBits : public ::testing::Test {
public:
    static void expect_sound(FullIndex<Reader>& full) {
        full.expect_overflow_bits_on_every_probe();
        full.expect_overflow_bits_in_full_buckets_only();
        full.expect_no_strangers();
    }
};
using Readers = ::testing::Types<step::Narrow8, step::Wide12>;
TYPED_TEST_SUITE(OverflowBits, Readers);

TYPED_TEST(OverflowBits, mark_every_bucket_that_a_key_probed_past_through_erase_and_insert) {
    for (std::size_t const buckets : {2u, 4u, 64u})
        for (bool const shared : {false, true}) {
            SCOPED_TRACE(std::to_string(buckets) +
                         (shared ? " buckets, shared" : " buckets, exclusive"));
            FullIndex<TypeParam> full(buckets, shared);
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
            EXPECT_GE(full.taken_again(), buckets / 64);  // 2 or 4 buckets may have none by chance
            full.place_anew();
            this->expect_sound(full);
        }
}

TYPED_TEST(OverflowBits, are_all_that_keeps_erased_slots_from_becoming_empty) {
    FullIndex<TypeParam> full(64, false);
    full.insert_new(full.slots() * 8 / 10);
    full.erase_half();
    EXPECT_GT(full.erased_slots(true), 0u);
    EXPECT_EQ(full.erased_slots(false), 0u);
}

}  // namespace
}  // namespace th_test
