// The host's part of a device table: how often it waits, what a failed allocation leaves, and how a
// corrupt index is reported.
#include "device/lives.hpp"

namespace th_test {
namespace {

using tensorhash::device::Core;
using tensorhash::device::Results;

/// A table of 8-byte keys with its batch memory.
struct Fixture {
    FiberQueue queue{{.seed = 3, .switch_one_in = 0, .nap_one_in = 0}};
    Core<FiberQueue> core;
    OnDevice<std::uint32_t> indices{queue, 1000};
    OnDevice<unsigned char> mask{queue, 1000};

    explicit Fixture(std::uint64_t capacity) : core(queue, {8, 0}, capacity, 7) {}

    OnDevice<unsigned char> keys(std::uint64_t begin, std::uint64_t end) {
        std::vector<std::uint64_t> numbers;
        for (std::uint64_t i = begin; i < end; ++i) {
            numbers.push_back(i);
        }
        return {queue, numbers.data(), numbers.size() * 8};
    }
    Results out() { return {indices.data(), mask.data()}; }
    void insert(std::uint64_t begin, std::uint64_t end) {
        core.insert(keys(begin, end).data(), static_cast<std::uint32_t>(end - begin), out());
    }
    std::vector<std::uint32_t> find(std::uint64_t begin, std::uint64_t end) {
        core.find(keys(begin, end).data(), static_cast<std::uint32_t>(end - begin), out());
        auto found = indices.read();
        found.resize(end - begin);
        return found;
    }
    /// Read-backs of a call.
    template <class Call>
    std::uint64_t waits(Call const& call) {
        std::uint64_t const before = queue.read_backs;
        call();
        return queue.read_backs - before;
    }
};

TEST(HostPart, find_and_insert_into_a_table_with_room_never_wait) {
    Fixture table(1000);
    EXPECT_EQ(table.waits([&] {
        for (std::uint64_t i = 0; i < 10; ++i) {
            table.insert(i * 100, i * 100 + 100);
        }
        table.find(0, 1000);
    }),
              0u);
    EXPECT_EQ(table.core.capacity(), 1000u);
}

TEST(HostPart, insert_and_erase_have_seven_launches_and_find_has_one) {
    Fixture table(100);
    auto const keys = table.keys(0, 50);
    auto const launches = [&](auto const& call) {
        std::uint64_t const before = table.queue.launches;
        call();
        return table.queue.launches - before;
    };
    EXPECT_EQ(launches([&] { table.core.insert(keys.data(), 50, table.out()); }), 7u);
    EXPECT_EQ(launches([&] { table.core.find(keys.data(), 50, table.out()); }), 1u);
    EXPECT_EQ(launches([&] { table.core.erase(keys.data(), 50, table.mask.data()); }), 7u);
}

TEST(HostPart, growth_waits_at_most_three_times) {
    Fixture table(10);
    EXPECT_LE(table.waits([&] { table.insert(0, 500); }), 3u);
    EXPECT_LE(table.waits([&] { table.insert(400, 1000); }), 3u);
    EXPECT_EQ(table.core.capacity(), 1000u);
}

TEST(HostPart, a_new_index_has_no_erased_slots) {
    Fixture table(100);
    table.insert(0, 100);
    table.core.erase(table.keys(0, 90).data(), 90, table.mask.data());
    table.insert(200, 500);
    auto const state = table.core.read_state();
    EXPECT_EQ(state.occupied, state.top - state.free);
    EXPECT_EQ(state.occupied, 310u);
}

TEST(HostPart, rows_that_are_present_do_not_grow_the_table) {
    Fixture table(100);
    table.insert(0, 100);
    EXPECT_LE(table.waits([&] { table.insert(0, 100); }), 2u);
    EXPECT_EQ(table.core.capacity(), 100u);
}

TEST(HostPart, growth_counts_distinct_keys) {
    Fixture table(100);
    std::vector<std::uint64_t> const same(900, 5);
    OnDevice<unsigned char> const keys(table.queue, same.data(), same.size() * 8);
    table.insert(200, 299);
    table.core.insert(keys.data(), 900, table.out());
    EXPECT_EQ(table.core.capacity(), 100u);
    EXPECT_EQ(table.core.read_state().top, 100u);
}

TEST(HostPart, a_failed_allocation_leaves_the_table_unchanged) {
    for (std::uint64_t failing = 0;; ++failing) {
        Fixture table(50);
        table.insert(0, 50);
        auto const keys = table.keys(0, 400);
        std::size_t const held = table.queue.live_allocations();
        table.queue.failing_allocation = table.queue.allocations + failing;
        bool failed = false;
        try {
            table.core.insert(keys.data(), 400, table.out());
        } catch (std::bad_alloc const&) {
            failed = true;
        }
        table.queue.failing_allocation = ~0ull;
        if (!failed) {
            EXPECT_GT(failing, 5u);
            EXPECT_EQ(table.core.capacity(), 400u);
            return;
        }
        EXPECT_EQ(table.queue.live_allocations(), held) << failing;
        EXPECT_EQ(table.core.capacity(), 50u);
        auto const state = table.core.read_state();
        EXPECT_EQ(state.top, 50u);
        EXPECT_EQ(state.claimed, 0u);
        EXPECT_EQ(table.find(49, 51), (std::vector<std::uint32_t>{49, 0xffffffffu}));
        table.insert(0, 400);
        EXPECT_EQ(table.find(399, 400), (std::vector<std::uint32_t>{399}));
    }
}

TEST(HostPart, a_probe_without_end_is_an_error_and_not_a_hang) {
    Fixture table(50);
    table.insert(0, 20);
    // Erased slots everywhere, and all overflow bits: no probe meets an empty slot.
    auto* const buckets = table.core.index().data();
    for (std::uint64_t b = 0; b < table.core.index().buckets(); ++b) {
        for (std::uint64_t& word : buckets[b].words) {
            word = tensorhash::step::NarrowBucket::kErased;
        }
        buckets[b].tickets[tensorhash::step::NarrowBucket::kSpareLane] = ~0u;
    }
    EXPECT_EQ(table.find(100, 101), (std::vector<std::uint32_t>{0xffffffffu}));
    EXPECT_THROW(table.core.read_state(), tensorhash::CorruptTable);
}

TEST(HostPart, a_claim_without_end_is_an_error_and_not_a_hang) {
    Fixture table(50);
    auto* const buckets = table.core.index().data();
    for (std::uint64_t b = 0; b < table.core.index().buckets(); ++b) {
        std::uint64_t number = 1000 * b + 2;
        for (std::uint64_t& word : buckets[b].words) {
            word = number++;
        }
    }
    table.insert(0, 3);
    auto indices = table.indices.read();
    indices.resize(3);
    EXPECT_EQ(indices, (std::vector<std::uint32_t>(3, 0xffffffffu)));
    EXPECT_THROW(table.core.read_state(), tensorhash::CorruptTable);
}

TEST(HostPart, clear_empties_the_table) {
    Fixture table(50);
    table.insert(0, 50);
    table.core.clear();
    EXPECT_EQ(table.core.read_state().top, 0u);
    EXPECT_EQ(table.find(3, 4), (std::vector<std::uint32_t>{0xffffffffu}));
    table.insert(7, 9);
    EXPECT_EQ(table.find(7, 9), (std::vector<std::uint32_t>{0, 1}));
}

}  // namespace
}  // namespace th_test
