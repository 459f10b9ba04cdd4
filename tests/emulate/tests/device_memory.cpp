// The memory of an emulated device: closed to the host, open while the device runs.
#include "emulate/device_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <stdexcept>

namespace th_test {
namespace {

using tensorhash::emulate::DeviceMemory;

constexpr std::size_t kReserved = std::size_t{1} << 24;

unsigned char volatile* bytes_at(void* data) { return static_cast<unsigned char*>(data); }

TEST(DeviceMemoryDeathTest, host_code_that_follows_a_device_pointer_ends) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    DeviceMemory memory(kReserved);
    auto* const data = bytes_at(memory.allocate(100));
    EXPECT_DEATH(data[0] = 1, "");
    memory.open();
    data[0] = 1;
    EXPECT_EQ(data[0], 1);
    EXPECT_DEATH(data[128] = 1, "");  // 100 bytes, rounded up to the alignment
    memory.close();
    EXPECT_DEATH((void)data[0], "");
}

TEST(DeviceMemoryDeathTest, freed_memory_stays_closed_while_the_device_runs) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    DeviceMemory memory(kReserved);
    void* const data = memory.allocate(5000);
    memory.open();
    memory.release(data);
    EXPECT_DEATH(bytes_at(data)[0] = 1, "");
}

TEST(DeviceMemory, is_aligned_and_never_zero_before_it_is_written) {
    DeviceMemory memory(kReserved);
    for (int round = 0; round < 2; ++round) {
        for (std::size_t const size : {0u, 1u, 63u, 64u, 65u, 4096u, 4097u, 100000u}) {
            void* const data = memory.allocate(size);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
            EXPECT_TRUE(memory.contains(data));
            memory.open();
            for (std::size_t i = 0; i < size; ++i) ASSERT_NE(bytes_at(data)[i], 0);
            for (std::size_t i = 0; i < size; ++i) bytes_at(data)[i] = 0;
            memory.close();
            memory.release(data);
        }
    }
    EXPECT_EQ(memory.live(), 0u);
}

TEST(DeviceMemory, refuses_what_it_does_not_have) {
    DeviceMemory memory(kReserved);
    EXPECT_THROW((void)memory.allocate(kReserved), std::bad_alloc);
    EXPECT_THROW((void)memory.allocate(SIZE_MAX), std::bad_alloc);
    void* const data = memory.allocate(10);
    EXPECT_THROW(memory.release(static_cast<unsigned char*>(data) + 1), std::logic_error);
    memory.release(data);
    EXPECT_THROW(memory.release(data), std::logic_error);
    EXPECT_FALSE(memory.contains(&memory));
}

}  // namespace
}  // namespace th_test
