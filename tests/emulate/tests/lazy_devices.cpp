// Emulated devices run nothing before something waits, and then streams in any order that events
// allow. So they notice the mistakes of host code that a real device forgives.
#include "emulate/lazy_devices.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace th_test {
namespace {

using tensorhash::emulate::LazyDevices;
using tensorhash::emulate::StreamId;

constexpr int kSeeds = 50;

int* new_int(LazyDevices& devices, int device = 0) {
    return static_cast<int*>(devices.allocate(device, sizeof(int)));
}

int read(LazyDevices& devices, StreamId stream, int const* at) {
    int out = -1;
    devices.put(stream, [&out, at] { out = *at; });
    devices.synchronize(stream);
    return out;
}

TEST(LazyDevices, nothing_runs_before_something_waits) {
    LazyDevices devices(1);
    int ran = 0;
    for (int i = 0; i < 3; ++i) devices.put(0, [&ran, i] { ran = 10 * ran + i; });
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(devices.pending(0), 3u);
    devices.synchronize(0);
    EXPECT_EQ(ran, 12);  // 0, 1, 2 in order
    EXPECT_EQ(devices.pending(0), 0u);
}

/// The second stream adds to what the first wrote. In how many orders is the sum right?
int right_sums(bool with_event) {
    int right = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
        LazyDevices devices(1, static_cast<std::uint64_t>(seed));
        StreamId const first = devices.make_stream(0);
        StreamId const second = devices.make_stream(0);
        int* const number = new_int(devices);
        devices.put(first, [=] { *number = 40; });
        auto const written = devices.record(first);
        if (with_event) devices.wait(second, written);
        devices.put(second, [=] { *number += 2; });
        right += read(devices, second, number) == 42 ? 1 : 0;
    }
    return right;
}

TEST(LazyDevices, an_event_orders_streams_and_its_lack_shows_in_some_seeds) {
    EXPECT_EQ(right_sums(true), kSeeds);
    EXPECT_LT(right_sums(false), kSeeds);
    EXPECT_GT(right_sums(false), 0);
}

TEST(LazyDevices, a_host_buffer_that_is_reused_too_early_gives_a_wrong_result) {
    LazyDevices devices(1);
    int* const number = new_int(devices);
    int staging = 7;
    devices.put(0, [number, &staging] { *number = staging; });
    staging = 8;
    EXPECT_EQ(read(devices, 0, number), 8);
}

TEST(LazyDevices, waiting_for_one_stream_may_leave_another_behind) {
    bool left_behind = false;
    for (int seed = 1; seed <= kSeeds; ++seed) {
        LazyDevices devices(1, static_cast<std::uint64_t>(seed));
        StreamId const other = devices.make_stream(0);
        devices.put(0, [] {});
        devices.put(other, [] {});
        devices.synchronize(0);
        left_behind |= devices.pending(0) > 0;
    }
    EXPECT_TRUE(left_behind);
}

TEST(LazyDevices, memory_is_freed_in_the_order_of_the_stream) {
    LazyDevices devices(1);
    int* const number = new_int(devices);
    devices.put(0, [=] { *number = 3; });
    int out = 0;
    devices.put(0, [=, &out] { out = *number; });
    devices.release(0, number);
    EXPECT_EQ(devices.live(0), 1u);
    devices.synchronize(0);
    EXPECT_EQ(out, 3);
    EXPECT_EQ(devices.live(0), 0u);
}

TEST(LazyDevices, devices_have_their_own_memory_and_copy_to_each_other) {
    for (int seed = 1; seed <= kSeeds; ++seed) {
        LazyDevices devices(2, static_cast<std::uint64_t>(seed));
        int* const here = new_int(devices, 0);
        int* const there = new_int(devices, 1);
        devices.put(0, [=] { *here = 5; });
        devices.wait(1, devices.record(0));
        devices.put_copy(1, 0, [=] { *there = *here; });
        EXPECT_EQ(read(devices, 1, there), 5);
        EXPECT_EQ(devices.live(0), 1u);
        EXPECT_EQ(devices.live(1), 1u);
        EXPECT_EQ(devices.device_of(devices.make_stream(1)), 1);
    }
}

TEST(LazyDevicesDeathTest, work_cannot_touch_the_memory_of_another_device) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "sanitizers report the fault themselves";
#endif
    LazyDevices devices(2);
    int* const here = new_int(devices, 0);
    int* const there = new_int(devices, 1);
    devices.put(1, [=] { *there = *here; });
    EXPECT_DEATH(devices.synchronize(1), "");
}

TEST(LazyDevices, the_same_seed_gives_the_same_order) {
    auto const order = [](std::uint64_t seed) {
        LazyDevices devices(1, seed);
        std::string ran;
        for (StreamId const stream : {0u, devices.make_stream(0), devices.make_stream(0)})
            for (int i = 0; i < 8; ++i)
                devices.put(stream, [&ran, stream] { ran += std::to_string(stream); });
        for (StreamId stream = 0; stream < 3; ++stream) devices.synchronize(stream);
        return ran;
    };
    EXPECT_EQ(order(4), order(4));
    EXPECT_NE(order(4), order(5));
}

TEST(LazyDevices, failed_work_fails_the_device_and_no_other) {
    LazyDevices devices(2);
    int after = 0;
    int* const number = new_int(devices);
    devices.put(0, [] { throw std::runtime_error("out of luck"); });
    devices.put(0, [&after] { after = 1; });
    devices.release(0, number);
    devices.check(0);  // nothing has run yet
    EXPECT_THROW(devices.synchronize(0), std::runtime_error);
    EXPECT_EQ(after, 0);
    EXPECT_EQ(devices.live(0), 0u);
    EXPECT_THROW(devices.check(0), std::runtime_error);
    EXPECT_THROW(devices.synchronize(0), std::runtime_error);
    devices.check(1);
}

TEST(LazyDevices, an_event_that_cannot_happen_is_an_error_and_no_hang) {
    LazyDevices devices(1);
    StreamId const other = devices.make_stream(0);
    auto const mine = devices.record(0);
    auto const its = std::make_shared<tensorhash::emulate::LazyEvent>();
    devices.wait(other, its);
    EXPECT_THROW(devices.synchronize(other), std::runtime_error);
    EXPECT_TRUE(mine->happened);
}

}  // namespace
}  // namespace th_test
