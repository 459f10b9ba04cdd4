// Blocks of memory: aligned, zeroed when asked, also when they were used before; moves and copies of bytes.
#include "runtime/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "contract/support.hpp"

namespace th_test {
namespace {

using tensorhash::runtime::Block;
using tensorhash::runtime::Fill;

/// Compares with itself, one byte on: memcmp, because a loop over megabytes takes a sanitizer long.
bool holds_only(Block const& block, std::size_t bytes, unsigned char byte) {
    if (bytes == 0) return true;
    return block.data()[0] == byte && std::memcmp(block.data(), block.data() + 1, bytes - 1) == 0;
}

std::vector<std::size_t> sizes() {
    return {0,        1,
            63,       64,
            65,       4096,
            100000,   (1u << 20) - 1,
            1u << 20, (1u << 20) + 1,
            3u << 20, (5u << 20) + 12345};
}

TEST(Memory, blocks_are_aligned_and_large_enough) {
    for (std::size_t bytes : sizes())
        for (Fill fill : {Fill::None, Fill::Zero}) {
            Block block(bytes, fill);
            EXPECT_NE(block.data(), nullptr);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 64, 0u);
            EXPECT_GE(block.bytes(), bytes);
            std::memset(block.data(), 0xab, bytes);
            EXPECT_TRUE(holds_only(block, bytes, 0xab));
        }
}

TEST(Memory, a_zeroed_block_is_zero_though_its_memory_was_used_before) {
    for (std::size_t bytes : sizes())
        for (int round = 0; round < 4; ++round) {
            Block block(bytes, Fill::Zero);
            ASSERT_TRUE(holds_only(block, bytes, 0)) << bytes << " round " << round;
            std::memset(block.data(), 0xcd, block.bytes());
        }
}

TEST(Memory, a_block_goes_back_to_where_it_came_from) {
    // Just below a megabyte rounding crosses the border between heap and mapped memory. What is large enough to be
    // mapped begins on a page, as heap memory of that size does not: it has its header there.
    for (std::size_t below = 0; below < 200; ++below) {
        Block block((1u << 20) - below, Fill::None);
        if (block.bytes() >= 1u << 20) {
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 4096, 0u) << below;
        }
    }
}

TEST(Memory, moving_hands_the_memory_over) {
    Block a(1000, Fill::Zero);
    unsigned char* data = a.data();
    Block b(std::move(a));
    EXPECT_EQ(b.data(), data);
    Block c(2u << 20, Fill::Zero);
    c = std::move(b);
    EXPECT_EQ(c.data(), data);
    Block nothing;
    EXPECT_EQ(nothing.bytes(), 0u);
}

TEST(Memory, what_nobody_has_is_bad_alloc) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers stop at huge allocations";
#endif
    EXPECT_THROW(Block(std::size_t{1} << 60), std::bad_alloc);
    EXPECT_THROW(Block(static_cast<std::size_t>(-1)), std::bad_alloc);
    EXPECT_THROW(Block(static_cast<std::size_t>(-1) - 100, Fill::Zero), std::bad_alloc);
}

TEST(Memory, threads_may_take_and_give_back_at_once) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t i = 0; i < 30; ++i) {
                std::size_t bytes = (1u << 20) + (i * 7919 % 5) * 300000;
                Block block(bytes, i % 2 ? Fill::Zero : Fill::None);
                if (i % 2) wrong += !holds_only(block, 4096, 0);
                std::memset(block.data(), t + 1, bytes);
                wrong += !holds_only(block, bytes, static_cast<unsigned char>(t + 1));
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
}

TEST(Memory, copy_and_zero_in_parallel) {
    for (int n : {1, 2, 8}) {
        Threads limit(n);
        for (std::size_t bytes : sizes()) {
            std::vector<unsigned char> from(bytes + 1, 7), to(bytes + 1, 1);
            for (std::size_t i = 0; i < bytes; i += 1 + bytes / 5000)
                from[i] = static_cast<unsigned char>(i * 31 >> 3);
            tensorhash::runtime::copy_bytes(to.data(), from.data(), bytes);
            EXPECT_TRUE(bytes == 0 || std::memcmp(from.data(), to.data(), bytes) == 0);
            EXPECT_EQ(to[bytes], 1) << "nothing beyond the end is touched";
            tensorhash::runtime::zero_bytes(to.data(), bytes);
            EXPECT_TRUE(bytes == 0 ||
                        (to[0] == 0 && std::memcmp(to.data(), to.data() + 1, bytes - 1) == 0));
            EXPECT_EQ(to[bytes], 1);
        }
    }
}

}  // namespace
}  // namespace th_test
