// Blocks of memory: aligned, zeroed on request even if reused; moves and copies of bytes.
#include "runtime/memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "runtime/block_vector.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/memory.hpp"

namespace th_test {
namespace {

using tensorhash::runtime::Block;
using tensorhash::runtime::BlockVector;
using tensorhash::runtime::Fill;

/// Compares the block with itself, shifted by one byte. A loop would be slow under a sanitizer.
bool holds_only(Block const& block, std::size_t bytes, unsigned char byte) {
    if (bytes == 0) return true;
    return block.data()[0] == byte && std::memcmp(block.data(), block.data() + 1, bytes - 1) == 0;
}

std::vector<std::size_t> sizes() {
    return {0,          1,
            63,         64,
            65,         4096,
            100000,     (256u << 10) - 1,
            256u << 10, (256u << 10) + 1,
            3u << 20,   (5u << 20) + 12345};
}

TEST(Memory, blocks_are_aligned_and_large_enough) {
    for (std::size_t bytes : sizes())
        for (Fill fill : {Fill::None, Fill::Committed, Fill::Zero}) {
            Block block(bytes, fill);
            EXPECT_NE(block.data(), nullptr);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 64, 0u);
            EXPECT_GE(block.bytes(), bytes);
            std::memset(block.data(), 0xab, bytes);
            EXPECT_TRUE(holds_only(block, bytes, 0xab));
        }
}

TEST(Memory, a_zeroed_block_is_zero_even_if_its_memory_was_used_before) {
    for (std::size_t bytes : sizes())
        for (int round = 0; round < 4; ++round) {
            Block block(bytes, Fill::Zero);
            ASSERT_TRUE(holds_only(block, bytes, 0)) << bytes << " round " << round;
            std::memset(block.data(), 0xcd, block.bytes());
        }
}

TEST(Memory, a_block_is_zero_from_the_callers_bytes_to_its_end) {
    for (std::size_t bytes : {1000u, 3u << 20, 66u << 20})
        for (std::size_t kept : {0u, 1u, 64u, 777u}) {
            {
                Block used(bytes);
                std::memset(used.data(), 0xcd, used.bytes());
            }
            Block const block(bytes, Fill::Zero, kept);
            EXPECT_EQ(block.data()[kept], 0);
            EXPECT_EQ(
                std::memcmp(block.data() + kept, block.data() + kept + 1, block.bytes() - kept - 1),
                0);
        }
}

TEST(Memory, bytes_are_copied_and_cleared_within_and_past_the_cache) {
    constexpr std::size_t most = (65u << 20) + 100;
    Block from(most);
    for (std::size_t i = 0; i < most; i += 8) {
        std::uint64_t const word = i * 0x9e3779b97f4a7c15u;
        std::memcpy(from.data() + i, &word, std::min<std::size_t>(8, most - i));
    }
    Block to(most);
    for (int n : looped_thread_counts())
        for (std::size_t bytes : {std::size_t{0}, std::size_t{5}, std::size_t{3} << 20,
                                  std::size_t{65} << 20, (std::size_t{65} << 20) + 7}) {
            if (bytes == std::size_t{65} << 20 && !runs_in_full()) continue;
            for (std::size_t at : {0u, 16u, 33u}) {
                Threads limit(n);
                std::memset(to.data(), 0xab, most);
                tensorhash::runtime::copy_bytes(to.data() + at, from.data() + 3, bytes);
                EXPECT_EQ(std::memcmp(to.data() + at, from.data() + 3, bytes), 0);
                EXPECT_EQ(to.data()[at + bytes], 0xab);
                EXPECT_TRUE(at == 0 || to.data()[at - 1] == 0xab);
                tensorhash::runtime::zero_bytes(to.data() + at, bytes);
                EXPECT_TRUE(bytes == 0 || to.data()[at] == 0);
                EXPECT_TRUE(bytes == 0 ||
                            std::memcmp(to.data() + at, to.data() + at + 1, bytes - 1) == 0);
                EXPECT_EQ(to.data()[at + bytes], 0xab);
            }
        }
}

TEST(Memory, a_block_goes_back_to_where_it_came_from) {
    // Just below 256 KiB, rounding crosses the border between heap and mapped memory. A mapped
    // block starts on a page; a heap block of that size does not, because its header is there.
    for (std::size_t below = 0; below < 200; ++below) {
        Block block((256u << 10) - below, Fill::None);
        if (block.bytes() >= 256u << 10) {
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

TEST(Memory, an_impossible_size_is_bad_alloc) {
#if TH_TEST_SANITIZED
    GTEST_SKIP() << "sanitizers stop at huge allocations";
#endif
    EXPECT_THROW(Block(std::size_t{1} << 60), std::bad_alloc);
    EXPECT_THROW(Block(static_cast<std::size_t>(-1)), std::bad_alloc);
    EXPECT_THROW(Block(static_cast<std::size_t>(-1) - 100, Fill::Zero), std::bad_alloc);
}

TEST(Memory, threads_may_allocate_and_free_at_once) {
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

TEST(Memory, growing_keeps_the_contents_and_adds_zeros) {
    for (int n : {1, 2, 8}) {
        Threads limit(n);
        tensorhash::release_memory();
        Block block(3u << 20, Fill::Zero);
        std::vector<unsigned char> before(block.bytes());
        for (std::size_t i = 0; i < before.size(); ++i)
            before[i] = static_cast<unsigned char>(i * 31 >> 7);
        std::memcpy(block.data(), before.data(), before.size());
        ASSERT_TRUE(block.grow((5u << 20) + 123));
        EXPECT_GE(block.bytes(), (5u << 20) + 123);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 64, 0u);
        EXPECT_EQ(std::memcmp(block.data(), before.data(), before.size()), 0);
        std::vector<unsigned char> const zeros(block.bytes() - before.size(), 0);
        EXPECT_EQ(std::memcmp(block.data() + before.size(), zeros.data(), zeros.size()), 0);
        std::memset(block.data() + before.size(), 0xee, zeros.size());

        block.shrink(before.size());
        EXPECT_EQ(block.bytes(), before.size());
        EXPECT_EQ(std::memcmp(block.data(), before.data(), before.size()), 0);
        if (block.grow(9u << 20)) {  // older Linux only remaps memory that was mapped at once
            EXPECT_EQ(std::memcmp(block.data(), before.data(), before.size()), 0);
            EXPECT_EQ(std::memcmp(block.data() + before.size(), zeros.data(), zeros.size()), 0);
        }
        EXPECT_TRUE(block.grow(1)) << "there is room for that";
    }
}

TEST(Memory, a_block_that_cannot_grow_stays_as_it_was) {
    Block small(1000, Fill::Zero);
    unsigned char const* const data = small.data();
    EXPECT_FALSE(small.grow(4u << 20)) << "heap memory is not ours to move";
    EXPECT_EQ(small.data(), data);
    EXPECT_EQ(small.bytes(), 1024u);
#if !TH_TEST_SANITIZED
    Block large(2u << 20, Fill::Zero);
    std::size_t const before = large.bytes();  // a reused block may be a little larger
    std::memset(large.data(), 7, before);
    EXPECT_THROW(large.grow(std::size_t{1} << 60), std::bad_alloc);
    EXPECT_EQ(large.bytes(), before);
    EXPECT_TRUE(holds_only(large, before, 7));
#endif
}

TEST(Memory, release_frees_exactly_the_kept_memory) {
    tensorhash::release_memory();
    EXPECT_EQ(tensorhash::release_memory(), 0u);
    {
        Block a(3u << 20), b(5u << 20), on_the_heap(1000);
    }
    EXPECT_EQ(tensorhash::release_memory(), 8u << 20);
    EXPECT_EQ(tensorhash::release_memory(), 0u);
    Block used(3u << 20, Fill::Zero);
    EXPECT_EQ(tensorhash::release_memory(), 0u) << "a block in use is not kept";
    EXPECT_TRUE(holds_only(used, used.bytes(), 0));
}

TEST(Memory, a_freed_block_is_reused_for_about_the_same_size) {
    tensorhash::release_memory();
    void const* four = nullptr;
    void const* five = nullptr;
    {
        Block a(4u << 20), b(5u << 20);
        four = a.data();
        five = b.data();
    }
    Block much_smaller(3u << 20);
    EXPECT_NE(much_smaller.data(), four);
    Block fits(4u << 20), fits_well_enough(4u << 20);
    EXPECT_EQ(fits.data(), four) << "the nearest in size";
    EXPECT_EQ(fits_well_enough.data(), five);
}

TEST(Memory, large_blocks_do_not_evict_small_kept_blocks) {
    // These blocks are never touched, so they only take addresses.
    tensorhash::release_memory();
    std::size_t const limit = std::min<std::size_t>(
        std::size_t{1} << 30, static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                                  static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 16);
    std::size_t const large = limit / 3 / 4096 * 4096;
    void const* data = nullptr;
    {
        Block small(2u << 20);
        data = small.data();
    }
    {
        Block a(large), b(large), c(large), d(large), too_large(limit);
    }
    Block small(2u << 20);
    EXPECT_EQ(small.data(), data);
    EXPECT_LE(tensorhash::release_memory(), limit / 4 * 3);
}

TEST(Memory, raw_memory_can_be_adopted_again) {
    tensorhash::release_memory();
    for (std::size_t bytes : sizes()) {
        Block block(bytes, Fill::None);
        unsigned char* const data = block.data();
        Block::Raw const raw = block.release();
        EXPECT_EQ(block.data(), nullptr);
        EXPECT_EQ(raw.data, data);
        EXPECT_GE(raw.bytes, bytes);
        std::memset(raw.data, 1, raw.bytes);
        Block const again = Block::adopt(raw);
        EXPECT_EQ(again.data(), data);
    }
    EXPECT_GT(tensorhash::release_memory(), 0u);
}

TEST(Memory, a_vector_gives_back_the_whole_block_that_it_took) {
    // Also just below 256 KiB, where rounding crosses the border between heap and mapped memory.
    for (std::size_t below = 0; below < 300; ++below) {
        BlockVector<char> const chars((256u << 10) - below, 'a');
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(chars.data()) % 64, 0u);
        EXPECT_EQ(std::count(chars.begin(), chars.end(), 'a'), (256 << 10) - std::ptrdiff_t(below));
    }
    tensorhash::release_memory();
    {
        Block larger(10u << 20);
    }
    {
        BlockVector<char> const chars(9u << 20);
    }
    EXPECT_EQ(tensorhash::release_memory(), 10u << 20);
    BlockVector<char> none;
    EXPECT_THROW(none.reserve(none.max_size()), std::bad_alloc);
    EXPECT_EQ(none.capacity(), 0u);
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
