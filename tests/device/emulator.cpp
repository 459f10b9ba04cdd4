// The fiber emulator itself: legal programs give the right results, and what no GPU promises to
// survive is an error that says what happened.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "device/counters.hpp"
#include "device/grid.hpp"
#include "emulate/fibers.hpp"

namespace th_test {
namespace {

using tensorhash::device::sync_block;
using tensorhash::device::Thread;
using tensorhash::device::Tile;
using tensorhash::device::Warp;
using tensorhash::emulate::Grid;
using tensorhash::emulate::KernelError;
using tensorhash::emulate::Options;
using tensorhash::emulate::run_grid;
namespace host = tensorhash::device::host;

template <class Body>
void run(Grid grid, Body const& body, Options const& options = {}) {
    run_grid(grid, 0, [&](void*) { body(); }, options);
}

/// The error of a kernel; empty if there is none.
template <class Body>
std::string error_of(Grid grid, Body const& body, Options const& options = {}) {
    try {
        run(grid, body, options);
    } catch (KernelError const& error) {
        return error.what();
    }
    return "";
}

TEST(Emulator, runs_every_thread_of_the_grid_once) {
    std::vector<int> times(7 * 96, 0);
    run({7, 96}, [&] {
        EXPECT_EQ(Thread::blocks(), 7u);
        EXPECT_EQ(Thread::block_size(), 96u);
        ++times[Thread::in_grid()];
    });
    EXPECT_EQ(times, std::vector<int>(7 * 96, 1));
}

TEST(Emulator, an_empty_grid_does_nothing) {
    run({0, 32}, [] { FAIL(); });
    run({1, 0}, [] { FAIL(); });
}

TEST(Emulator, ballot_has_one_bit_per_lane_of_the_tile) {
    run({1, 64}, [] {
        EXPECT_EQ(Warp::ballot(Warp::rank() % 3 == 0), 0x49249249u);
        EXPECT_EQ(Tile<8>::ballot(Tile<8>::rank() == 5), 1u << 5);
        EXPECT_EQ(Tile<1>::ballot(true), 1u);
    });
}

TEST(Emulator, shuffle_reads_another_lane_of_the_tile) {
    run({1, 64}, [] {
        std::uint32_t const mine = Thread::in_block() * 10;
        EXPECT_EQ(Tile<4>::shuffle(mine, 2), (Thread::in_block() / 4 * 4 + 2) * 10);
        std::uint64_t const wide = (std::uint64_t{1} << 40) + Thread::in_block();
        EXPECT_EQ(Warp::shuffle(wide, 31u),
                  (std::uint64_t{1} << 40) + Thread::in_block() / 32 * 32 + 31);
    });
}

TEST(Emulator, sum_is_over_the_tile) {
    run({1, 64}, [] {
        EXPECT_EQ(Warp::sum(1), 32u);
        EXPECT_EQ(Tile<8>::sum(Tile<8>::rank()), 28u);
    });
}

TEST(Emulator, the_barrier_waits_for_the_whole_block) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        std::vector<std::uint32_t> written(96, 0);
        std::vector<std::uint32_t> seen(96, 0);
        run({1, 96},
            [&] {
                std::uint32_t const me = Thread::in_block();
                host::switch_point();
                written[me] = me + 1;
                sync_block();
                seen[me] = written[95 - me];
            },
            {.seed = seed, .switch_one_in = 1});
        for (std::uint32_t i = 0; i < 96; ++i) {
            EXPECT_EQ(seen[i], 96 - i);
        }
    }
}

TEST(Emulator, shared_memory_belongs_to_a_block_and_nothing_has_been_written_to_it) {
    std::vector<unsigned char> first(3, 0);
    std::vector<unsigned char> last(3, 0);
    run_grid({3, 32}, 32,
             [&](void* shared) {
                 auto* const bytes = static_cast<unsigned char*>(shared);
                 if (Thread::in_block() == 0) {
                     first[Thread::block()] = bytes[7];
                     bytes[7] = static_cast<unsigned char>(Thread::block());
                 }
                 sync_block();
                 if (Thread::in_block() == 31) {
                     last[Thread::block()] = bytes[7];
                 }
             },
             {});
    EXPECT_EQ(first, (std::vector<unsigned char>{0xcd, 0xcd, 0xcd}));
    EXPECT_EQ(last, (std::vector<unsigned char>{0, 1, 2}));
}

/// The order in which threads pass a switch point.
std::vector<std::uint64_t> order_of(Options const& options) {
    std::vector<std::uint64_t> order;
    run(
        {2, 64},
        [&] {
            for (int i = 0; i < 4; ++i) {
                host::switch_point();
                order.push_back(Thread::in_grid());
            }
        },
        options);
    return order;
}

TEST(Emulator, a_seed_repeats_the_order_and_another_seed_changes_it) {
    EXPECT_EQ(order_of({.seed = 3}), order_of({.seed = 3}));
    std::set<std::vector<std::uint64_t>> orders;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        orders.insert(order_of({.seed = seed}));
    }
    EXPECT_EQ(orders.size(), 20u);
}

TEST(Emulator, finds_the_lost_update_of_two_blocks) {
    int wrong = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        std::uint32_t sum = 0;
        run({2, 32},
            [&] {
                std::uint32_t const seen = tensorhash::step::Shared::load(&sum);
                tensorhash::step::Shared::store(&sum, seen + 1);
            },
            {.seed = seed});
        wrong += sum != 64 ? 1 : 0;
    }
    EXPECT_EQ(wrong, 10);
}

TEST(Emulator, finds_what_only_a_nap_shows) {
    // Thread 0 publishes in two stores; the others look some rounds later. Without naps thread 0
    // is never that late.
    auto const is_torn = [](Options const& options) {
        std::uint32_t first = 0;
        std::uint32_t second = 0;
        bool torn = false;
        run(
            {1, 64},
            [&] {
                using tensorhash::step::Shared;
                if (Thread::in_block() == 0) {
                    Shared::store(&first, 1u);
                    Shared::store(&second, 1u);
                    return;
                }
                while (Shared::load(&first) == 0) {
                }
                for (int i = 0; i < 8; ++i) {
                    host::switch_point();
                }
                torn |= Shared::load(&second) == 0;
            },
            options);
        return torn;
    };
    int with_naps = 0;
    int without = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        with_naps += is_torn({.seed = seed, .switch_one_in = 1, .nap_one_in = 8}) ? 1 : 0;
        without += is_torn({.seed = seed, .switch_one_in = 1, .nap_one_in = 0}) ? 1 : 0;
    }
    EXPECT_GT(with_naps, 0);
    EXPECT_EQ(without, 0);
}

TEST(Emulator, lanes_of_a_small_tile_may_be_late_for_the_warp) {
    // Half of the warp makes two more calls in tiles of 4 before all 32 lanes meet.
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        run({1, 32},
            [] {
                if (Thread::in_block() < 16) {
                    EXPECT_EQ(Tile<4>::ballot(true), 15u);
                    EXPECT_EQ(Tile<4>::sum(1), 4u);
                }
                EXPECT_EQ(Warp::ballot(true), ~0u);
            },
            {.seed = seed, .switch_one_in = 1});
    }
}

TEST(Emulator, refuses_a_mask_without_the_caller) {
    EXPECT_NE(error_of({1, 32}, [] { host::ballot(1, true); }).find("not in its own mask"),
              std::string::npos);
}

TEST(Emulator, refuses_a_mask_with_a_lane_that_has_returned) {
    auto const body = [] {
        if (Thread::in_block() != 7) {
            Warp::ballot(true);
        }
    };
    // The lane may return before the others call, or while they wait.
    std::string const error = error_of({1, 32}, body);
    EXPECT_TRUE(error.find("has returned") != std::string::npos ||
                error.find("deadlock") != std::string::npos)
        << error;
}

TEST(Emulator, refuses_a_mask_with_a_lane_that_the_block_does_not_have) {
    EXPECT_NE(error_of({1, 16}, [] { Warp::ballot(true); }).find("does not have"),
              std::string::npos);
}

TEST(Emulator, refuses_lanes_that_meet_in_different_calls) {
    auto const body = [] {
        if (Thread::in_block() < 16) {
            Warp::ballot(true);
        } else {
            Warp::sync();
        }
    };
    EXPECT_NE(error_of({1, 32}, body).find("lanes meet in"), std::string::npos);
}

TEST(Emulator, refuses_lanes_that_meet_with_different_masks) {
    auto const body = [] { host::ballot(Thread::in_block() == 0 ? ~0u : ~0u >> 1, true); };
    EXPECT_NE(error_of({1, 31}, body).find("lane"), std::string::npos);
}

TEST(Emulator, a_barrier_that_a_thread_skips_is_a_deadlock) {
    auto const body = [] {
        if (Thread::in_block() != 5) {
            sync_block();
        }
    };
    EXPECT_NE(error_of({1, 64}, body).find("63 wait for the block, 1 have returned"),
              std::string::npos);
}

TEST(Emulator, a_loop_without_end_spends_its_budget) {
    std::uint32_t never = 0;
    auto const body = [&] {
        while (tensorhash::step::Shared::load(&never) == 0) {
        }
    };
    EXPECT_NE(error_of({1, 32}, body, {.budget = 10000}).find("budget of 10000"),
              std::string::npos);
}

TEST(Emulator, works_again_after_an_error) {
    for (int i = 0; i < 3; ++i) {
        EXPECT_NE(error_of({4, 64}, [] { host::ballot(0, true); }), "");
        run({1, 32}, [] { EXPECT_EQ(Warp::sum(2), 64u); });
    }
}

TEST(Emulator, a_lane_outside_the_mask_gives_no_value) {
    run({1, 32}, [] {
        if (Thread::in_block() < 16) {
            EXPECT_EQ(host::shuffle(0xffff, 1, 20), 0xdeadbeefu);
        }
    });
}

}  // namespace
}  // namespace th_test
