// The read-write lock: readers together, writers alone, no thread starves.
#include "runtime/lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace th_test {
namespace {

using tensorhash::runtime::ReadWriteLock;

TEST(ReadWriteLock, a_writer_is_alone_and_readers_see_whole_writes) {
    ReadWriteLock lock;
    std::int64_t a = 0, b = 0;
    std::atomic<int> torn{0};
    std::vector<std::thread> threads;
    for (int w = 0; w < 2; ++w)
        threads.emplace_back([&] {
            for (int i = 0; i < 2000; ++i) {
                std::unique_lock guard(lock);
                ++a;
                ++b;
            }
        });
    for (int r = 0; r < 4; ++r)
        threads.emplace_back([&] {
            for (int i = 0; i < 2000; ++i) {
                std::shared_lock guard(lock);
                torn += a != b;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(torn.load(), 0);
    EXPECT_EQ(a, 4000);
}

TEST(ReadWriteLock, readers_are_inside_together) {
    ReadWriteLock lock;
    std::atomic<int> inside{0};
    auto read = [&] {
        std::shared_lock guard(lock);
        ++inside;
        while (inside.load() < 3) std::this_thread::yield();
    };
    std::thread one(read), two(read), three(read);
    one.join();
    two.join();
    three.join();
    EXPECT_EQ(inside.load(), 3);
}

/// Keeps `n` threads repeating `busy` until `once` is done.
template <class Busy, class Once>
void while_others(int n, Busy busy, Once once) {
    std::atomic<bool> stop{false};
    std::atomic<int> started{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < n; ++i)
        threads.emplace_back([&] {
            ++started;
            while (!stop.load()) busy();
        });
    while (started.load() < n) std::this_thread::yield();
    once();
    stop = true;
    for (std::thread& thread : threads) thread.join();
}

// If a thread starves, the test's time limit ends these two.
TEST(ReadWriteLock, a_stream_of_readers_does_not_starve_a_writer) {
    ReadWriteLock lock;
    int written = 0;
    auto read = [&] {
        std::shared_lock guard(lock);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    };
    while_others(4, read, [&] {
        for (int i = 0; i < 20; ++i) {
            std::unique_lock guard(lock);
            ++written;
        }
    });
    EXPECT_EQ(written, 20);
}

TEST(ReadWriteLock, a_stream_of_writers_does_not_starve_a_reader) {
    ReadWriteLock lock;
    int seen = 0;
    auto write = [&] {
        std::unique_lock guard(lock);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    };
    while_others(3, write, [&] {
        for (int i = 0; i < 20; ++i) {
            std::shared_lock guard(lock);
            ++seen;
        }
    });
    EXPECT_EQ(seen, 20);
}

}  // namespace
}  // namespace th_test
