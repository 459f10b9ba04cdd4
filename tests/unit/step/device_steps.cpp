// The device form of the steps, run on the host: aligned key loads, word pairs, fetch-max, bounded
// probes. Switch points let a test act as another thread between two accesses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace th_test {
namespace {

/// Called before each access of `Shared` with the number of accesses before it.
thread_local std::function<void(int)> on_switch;
thread_local int switches = 0;

void switch_point() {
    int const before = switches++;
    if (on_switch) on_switch(before);
}

}  // namespace
}  // namespace th_test

#define TH_DEVICE_STEPS 1
#define TH_SWITCH_POINT() ::th_test::switch_point()
#include "tensorhash/step/erase.hpp"
#include "tensorhash/step/find.hpp"
#include "tensorhash/step/insert.hpp"

namespace th_test {
namespace {

namespace step = tensorhash::step;
using step::Exclusive;
using step::Shared;

static_assert(step::kBoundedProbes);

/// Counts accesses and calls `act` before each one, until it is destroyed.
class Switches {
public:
    explicit Switches(std::function<void(int)> act = {}) {
        switches = 0;
        on_switch = std::move(act);
    }
    ~Switches() { on_switch = {}; }
    int count() const { return switches; }
};

std::vector<unsigned char> random_bytes(std::size_t count, std::uint64_t seed = 7) {
    std::mt19937_64 random(seed);
    std::vector<unsigned char> bytes(count);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<unsigned char>(random()); });
    return bytes;
}

// --- keys

/// Rows of keys at an odd multiple of the required alignment: no load may assume more.
template <class Reader>
class BarelyAligned {
public:
    BarelyAligned(std::size_t rows, std::size_t bytes) : memory_(rows * bytes + 64) {
        auto const at = reinterpret_cast<std::uintptr_t>(memory_.data());
        first_ = (at + 31) / 16 * 16 + Reader::kAlign - at;
        auto const keys = random_bytes(rows * bytes);
        std::copy(keys.begin(), keys.end(), data());
    }
    unsigned char* data() { return memory_.data() + first_; }

private:
    std::vector<unsigned char> memory_;
    std::size_t first_ = 0;
};

template <class Reader>
void expect_narrow_words(std::uint32_t bytes) {
    constexpr std::size_t kRows = 100;
    BarelyAligned<Reader> keys(kRows, bytes);
    Reader const reader({bytes, 0});
    for (std::size_t row = 0; row < kRows; ++row) {
        std::uint64_t word = 0;
        std::memcpy(&word, keys.data() + row * bytes, bytes);
        EXPECT_EQ(reader.word(keys.data(), row), word) << row;
    }
}

TEST(DeviceSteps, narrow_keys_are_the_words_in_memory) {
    expect_narrow_words<step::Narrow8>(8);
    expect_narrow_words<step::Narrow4>(4);
    for (std::uint32_t const bytes : {1u, 2u, 3u, 5u, 6u, 7u})
        expect_narrow_words<step::NarrowAny>(bytes);
}

/// The reader for any width loads byte by byte; the others must agree with it.
template <class Reader>
void expect_wide_keys() {
    constexpr std::size_t kRows = 100;
    constexpr std::uint32_t kBytes = Reader::kBytes;
    BarelyAligned<Reader> keys(kRows, kBytes);
    BarelyAligned<Reader> others(1, kBytes);
    Reader const reader({kBytes, 0});
    step::WideAny const any({kBytes, 0});
    step::HashSecret const secret = step::secret_of(3);
    for (std::size_t row = 0; row < kRows; ++row) {
        unsigned char* const key = keys.data() + row * kBytes;
        EXPECT_EQ(reader.hash(key, secret), any.hash(key, secret)) << row;
        std::copy_n(key, kBytes, others.data());
        EXPECT_TRUE(reader.equal(key, others.data()));
        others.data()[row % kBytes] ^= static_cast<unsigned char>(1u << row % 8);
        EXPECT_FALSE(reader.equal(key, others.data())) << row;
    }
}

TEST(DeviceSteps, wide_keys_hash_and_compare_like_byte_by_byte) {
    expect_wide_keys<step::Wide12>();
    expect_wide_keys<step::Wide16>();
}

// --- memory

TEST(DeviceSteps, a_pair_is_two_words) {
    alignas(16) std::uint64_t const words[] = {1, 2, 3, 4};
    for (std::size_t const at : {0u, 2u}) {
        step::WordPair const shared = Shared::load_pair(words + at);
        step::WordPair const exclusive = Exclusive::load_pair(words + at);
        EXPECT_EQ(shared.first, words[at]);
        EXPECT_EQ(shared.second, words[at + 1]);
        EXPECT_EQ(exclusive.first, words[at]);
        EXPECT_EQ(exclusive.second, words[at + 1]);
    }
}

template <class Access>
void expect_raised() {
    for (std::uint32_t const before : {0u, 5u, 6u, 7u, 0xffffffffu})
        for (std::uint32_t const value : {0u, 5u, 6u, 7u, 0xffffffffu}) {
            std::uint32_t at = before;
            EXPECT_EQ(Access::raise(&at, value), before);
            EXPECT_EQ(at, std::max(before, value));
        }
}

TEST(DeviceSteps, raise_keeps_the_larger_value_and_returns_the_old_one) {
    expect_raised<Shared>();
    expect_raised<Exclusive>();
}

TEST(DeviceSteps, raise_yields_to_a_larger_concurrent_value) {
    std::uint32_t at = 5;
    Switches const another([&](int before) {
        if (before == 1) at = 9;  // after the load, before the exchange
    });
    EXPECT_EQ(Shared::raise(&at, 7), 9u);
    EXPECT_EQ(at, 9u);
}

TEST(DeviceSteps, raise_beats_a_smaller_concurrent_value) {
    std::uint32_t at = 5;
    Switches const another([&](int before) {
        if (before == 1) at = 6;
    });
    EXPECT_EQ(Shared::raise(&at, 7), 6u);
    EXPECT_EQ(at, 7u);
}

TEST(DeviceSteps, raise_by_many_threads_leaves_the_largest) {
    std::uint32_t at = 0;
    std::vector<std::thread> threads;
    for (std::uint32_t first = 0; first < 4; ++first)
        threads.emplace_back([&at, first] {
            std::uint32_t largest = 0;
            for (std::uint32_t i = first; i < 40000; i += 4) {
                std::uint32_t const seen = Shared::raise(&at, i * 7919 % 40009);
                EXPECT_GE(seen, largest);  // the value that others see never falls
                largest = std::max(seen, i * 7919 % 40009);
            }
        });
    for (auto& thread : threads) thread.join();
    std::uint32_t largest = 0;
    for (std::uint32_t i = 0; i < 40000; ++i) largest = std::max(largest, i * 7919 % 40009);
    EXPECT_EQ(at, largest);
}

TEST(DeviceSteps, a_row_that_joins_knows_the_winning_ticket_and_the_one_that_it_overtook) {
    for (step::Ticket const there : {5u, 7u, 9u}) {
        step::Ticket at = there;
        step::Claim const claim = step::joined(16, Shared::raise(&at, 7), 7);
        EXPECT_EQ(at, std::max(there, 7u));
        EXPECT_EQ(claim.position, 16u);
        EXPECT_EQ(claim.buf_index, step::to_buf_index(at));
        EXPECT_EQ(claim.claimed, there < 7 ? step::Claimed::Overtook : step::Claimed::Nothing);
        EXPECT_EQ(claim.overtaken, there == 5 ? step::to_buf_index(5) : step::kNotFound);
    }
}

TEST(DeviceSteps, a_row_that_joins_sees_a_concurrent_ticket) {
    step::Ticket at = step::kNoTicket;
    Switches const another([&](int before) {
        if (before == 1) at = 6;
    });
    step::Claim const claim = step::joined(16, Shared::raise(&at, 7), 7);
    EXPECT_EQ(claim.claimed, step::Claimed::Overtook);
    EXPECT_EQ(claim.overtaken, step::to_buf_index(6));
    EXPECT_EQ(at, 7u);
}

TEST(DeviceSteps, every_shared_access_is_a_switch_point_and_no_other_access_is) {
    alignas(16) std::uint64_t words[2] = {1, 2};
    auto const switches_of = [](auto const& act) {
        Switches const counted;
        act();
        return counted.count();
    };
    std::uint64_t expected = 1;
    std::uint32_t low = 0;
    EXPECT_EQ(switches_of([&] { Shared::load(words); }), 1);
    EXPECT_EQ(switches_of([&] { Shared::load_pair(words); }), 2);
    EXPECT_EQ(switches_of([&] { Shared::store(words, std::uint64_t{1}); }), 1);
    EXPECT_EQ(switches_of([&] { Shared::cas(words, expected, std::uint64_t{1}); }), 1);
    EXPECT_EQ(switches_of([&] { Shared::raise(&low, 3); }), 2);
    EXPECT_EQ(switches_of([&] { Shared::raise(&low, 3); }), 1);  // nothing to exchange
    EXPECT_EQ(switches_of([&] {
                  Exclusive::load(words);
                  Exclusive::load_pair(words);
                  Exclusive::store(words, std::uint64_t{1});
                  Exclusive::cas(words, expected, std::uint64_t{1});
                  Exclusive::raise(&low, 4);
              }),
              0);
}

// --- probes

template <class ReaderType, class AccessType>
struct Kind {
    using Reader = ReaderType;
    using Access = AccessType;
};

/// A small index filled to its last slot, which a sound index never is.
template <class Kind>
class BoundedProbe : public ::testing::Test {
public:
    using Reader = typename Kind::Reader;
    using Index = typename step::IndexOf<Reader, typename Kind::Access>::type;
    using Bucket = std::conditional_t<Reader::kNarrow, step::NarrowBucket, step::WideBucket>;
    static constexpr std::uint32_t kWidth = Reader::kNarrow ? 8 : 12;
    static constexpr std::size_t kBuckets = 4;
    static constexpr std::uint32_t kSlots = kBuckets * Bucket::kLanes;
    static constexpr std::uint32_t kStrangers = 20;  // keys from kSlots on are not in the index

    step::IndexView view() { return {buckets_, kBuckets, keys_.data(), kWidth, 0}; }
    Index index() { return Index(view()); }
    std::uint64_t hash(std::uint32_t row) { return index().hash(keys_.data(), row); }
    step::BatchView batch() { return {keys_.data(), kBase, nullptr, nullptr, nullptr}; }
    step::Match find(std::uint32_t row) { return step::find(index(), hash(row), batch(), row); }
    step::Claim claim(std::uint32_t row) { return step::claim(index(), hash(row), batch(), row); }
    bool place(std::uint32_t row) { return step::place(index(), hash(row), row); }

    void fill() {
        for (std::uint32_t row = 0; row < kSlots; ++row) ASSERT_TRUE(place(row)) << row;
    }
    /// No stranger is found, claims a slot or is placed, and the index does not change.
    void expect_no_end() {
        std::vector<unsigned char> const before = bytes();
        for (std::uint32_t row = kSlots; row < kSlots + kStrangers; ++row) {
            EXPECT_EQ(find(row).buf_index, step::kUndecided) << row;
            EXPECT_EQ(claim(row).claimed, step::Claimed::Beyond) << row;
            EXPECT_FALSE(place(row)) << row;
        }
        EXPECT_EQ(bytes(), before);
    }
    void expect_all_found_except(std::uint32_t missing) {
        for (std::uint32_t row = 0; row < kSlots; ++row) {
            if (row == missing) continue;
            EXPECT_EQ(find(row).buf_index, row);
            EXPECT_EQ(claim(row).claimed, step::Claimed::Nothing);
        }
    }
    /// A row in a bucket with overflow bits: if it is erased, its slot stays marked as erased.
    std::uint32_t row_that_leaves_a_tombstone() {
        std::uint32_t row = 0;
        while (index().overflow_bits(find(row).position >> 3) == 0) ++row;
        return row;
    }

protected:
    static constexpr std::uint32_t kBase = 1000;

private:
    std::vector<unsigned char> bytes() const {
        auto const* const first = reinterpret_cast<unsigned char const*>(buckets_);
        return {first, first + sizeof(buckets_)};
    }
    Bucket buckets_[kBuckets] = {};
    std::vector<unsigned char> keys_ = random_bytes((kSlots + kStrangers) * kWidth);
};

using Kinds = ::testing::Types<Kind<step::Narrow8, Exclusive>, Kind<step::Narrow8, Shared>,
                               Kind<step::Wide12, Exclusive>, Kind<step::Wide12, Shared>>;
TYPED_TEST_SUITE(BoundedProbe, Kinds);

TYPED_TEST(BoundedProbe, ends_in_an_index_without_a_free_slot) {
    ASSERT_NO_FATAL_FAILURE(this->fill());
    this->expect_all_found_except(this->kSlots);
    this->expect_no_end();
}

TYPED_TEST(BoundedProbe, ends_if_the_only_free_slot_is_an_erased_one) {
    ASSERT_NO_FATAL_FAILURE(this->fill());
    std::uint32_t const erased = this->row_that_leaves_a_tombstone();
    ASSERT_EQ(step::release(this->index(), this->find(erased).position), step::Released::ToErased);
    this->expect_all_found_except(erased);
    this->expect_no_end();
}

TYPED_TEST(BoundedProbe, finds_the_only_empty_slot_from_every_home_bucket) {
    for (std::uint32_t row = 0; row + 1 < this->kSlots; ++row) ASSERT_TRUE(this->place(row));
    for (std::uint32_t row = this->kSlots; row < this->kSlots + this->kStrangers; ++row)
        EXPECT_EQ(this->find(row).buf_index, step::kNotFound) << row;
    EXPECT_EQ(this->claim(this->kSlots).claimed, step::Claimed::Empty);
    EXPECT_EQ(this->claim(this->kSlots).claimed, step::Claimed::Nothing);
    EXPECT_EQ(this->claim(this->kSlots + 1).claimed, step::Claimed::Beyond);
}

TYPED_TEST(BoundedProbe, ends_in_the_home_bucket_if_it_may_not_leave) {
    ASSERT_NO_FATAL_FAILURE(this->fill());
    for (std::uint32_t row = this->kSlots; row < this->kSlots + this->kStrangers; ++row) {
        auto const comparison = this->index().comparison(this->batch(), row);
        auto const hash = this->hash(row);
        auto const home = this->index().home(hash);
        EXPECT_EQ(step::probe(this->index(), hash, home, comparison, step::ProbeRange::Home).found,
                  step::Found::Unknown);
        EXPECT_FALSE(step::place(this->index(), hash, home, row, step::ProbeRange::Home));
    }
}

}  // namespace
}  // namespace th_test
