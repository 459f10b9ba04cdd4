// Tensors on a device: the host cannot touch its memory, and its work runs only when awaited.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "support/emulated.hpp"
#include "support/fixtures.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/dlpack.hpp"
#include "tensorhash/elements.hpp"

namespace th_test {
namespace {

using tensorhash::Device;
using tensorhash::DeviceError;
using tensorhash::Stream;
using tensorhash::StreamScope;
using tensorhash::ValueError;

constexpr int kSeeds = 20;

Tensor counting(std::int64_t rows, std::int64_t columns) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(rows * columns));
    std::iota(numbers.begin(), numbers.end(), 1);
    return Tensor::from(numbers, {rows, columns});
}

std::vector<std::int32_t> numbers_of(Tensor const& tensor) {
    Tensor const here = tensor.to(Device{}).contiguous();
    auto const span = here.as<std::int32_t>();
    return {span.begin(), span.end()};
}

Stream new_stream(Device device) { return {device, emulated_devices().make_stream(device.id)}; }

TEST(DeviceTensor, goes_to_a_device_and_back) {
    Device const device = emu(0);
    Tensor const host = counting(3, 4);
    Tensor const there = host.to(device);
    EXPECT_EQ(there.device(), device);
    EXPECT_EQ(there.shape(), host.shape());
    EXPECT_EQ(there.dtype(), Dtype::Int32);
    EXPECT_EQ(numbers_of(there), numbers_of(host));
    EXPECT_EQ(there.to(device).data(), there.data());
    EXPECT_EQ(host.to(Device{}).data(), host.data());
}

TEST(DeviceTensor, the_host_array_may_change_as_soon_as_it_was_copied) {
    Tensor host = counting(2, 2);
    Tensor const there = host.to(emu(0));
    host.as_mutable<std::int32_t>()[0] = 99;
    EXPECT_EQ(numbers_of(there)[0], 1);
}

TEST(DeviceTensor, zeros_clone_and_contiguous_run_on_the_device_without_waiting) {
    Device const device = emu(0);
    Tensor const there = counting(3, 4).to(device);
    std::size_t const before = emulated_devices().pending(0);
    Tensor const zeros = Tensor::zeros({5}, Dtype::Int32, device);
    Tensor const columns = Tensor::borrow_strided(const_cast<void*>(there.data()), {4, 3}, {4, 16},
                                                  Dtype::Int32, true, there.owner(), device);
    Tensor const turned = columns.contiguous();
    Tensor const copy = there.clone();
    EXPECT_GT(emulated_devices().pending(0), before);
    EXPECT_TRUE(turned.is_contiguous());
    EXPECT_EQ(numbers_of(zeros), std::vector<std::int32_t>(5, 0));
    EXPECT_EQ(numbers_of(turned),
              (std::vector<std::int32_t>{1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12}));
    EXPECT_EQ(numbers_of(columns), numbers_of(turned));
    EXPECT_EQ(numbers_of(copy), numbers_of(there));
}

TEST(DeviceTensor, empty_arrays_are_ordinary) {
    Tensor const none = Tensor::zeros({0, 3}, Dtype::Float32, emu(1));
    EXPECT_EQ(none.clone().to(emu(0)).to(Device{}).shape(), (Shape{0, 3}));
}

TEST(DeviceTensor, host_access_is_refused_with_a_sentence) {
    Tensor const there = counting(1, 2).to(emu(0));
    try {
        (void)there.as<std::int32_t>();
        FAIL();
    } catch (DeviceError const& error) {
        EXPECT_STREQ(error.what(),
                     "tensor: expected memory of the CPU, got memory of \"emu:0\"; copy it "
                     "with .cpu(), in C++ to()");
    }
    HashMap map = int64_map();
    Tensor const keys = Tensor::zeros({2, 1}, Dtype::Int64, emu(0));
    std::string const text = message_of<DeviceError>([&] { (void)map.find(keys); });
    EXPECT_TRUE(text.starts_with("keys: expected memory of the CPU")) << text;
}

TEST(DeviceTensor, copies_between_two_devices_wait_for_both_streams) {
    for (int seed = 1; seed <= kSeeds; ++seed) {
        emulated_devices().set_seed(static_cast<std::uint64_t>(seed));
        Tensor there;
        {
            Tensor const first = counting(8, 8).to(emu(0));
            there = first.clone().to(emu(1));  // the clone is freed before the copy has run
        }
        EXPECT_EQ(there.device(), emu(1));
        EXPECT_EQ(numbers_of(there), numbers_of(counting(8, 8)));
    }
}

TEST(DeviceTensor, work_on_another_stream_waits_for_the_tensor) {
    Device const device = emu(0);
    for (int seed = 1; seed <= kSeeds; ++seed) {
        emulated_devices().set_seed(static_cast<std::uint64_t>(seed));
        Stream const first = new_stream(device);
        Stream const second = new_stream(device);
        Tensor made;
        {
            StreamScope const scope(first);
            made = counting(4, 4).to(device);
        }
        StreamScope const scope(second);
        Tensor const copy = made.clone();
        made = Tensor();  // freed on the first stream, but not before the second has read it
        EXPECT_EQ(numbers_of(copy), numbers_of(counting(4, 4)));
    }
}

// Each thread has a default stream of its own, and all of them have the same handle.
TEST(DeviceTensor, work_of_another_thread_holds_the_memory) {
    Device const device = emu(0);
    auto& memory = tensorhash::memory_of(device, "device");
    for (int seed = 1; seed <= kSeeds; ++seed) {
        emulated_devices().set_seed(static_cast<std::uint64_t>(seed));
        Tensor made = counting(4, 4).to(device);
        Tensor copy;
        std::thread([&] { copy = made.clone(); }).join();
        std::size_t const held = emulated_devices().live(0);
        made = Tensor();
        memory.synchronize(current_stream(device));  // the memory is free: the copy has been made
        EXPECT_LT(emulated_devices().live(0), held);
        Tensor const next = Tensor::zeros({4, 4}, Dtype::Int32, device);
        EXPECT_EQ(numbers_of(next), std::vector<std::int32_t>(16, 0));
        EXPECT_EQ(numbers_of(copy), numbers_of(counting(4, 4))) << "seed " << seed;
    }
}

TEST(DeviceTensor, another_thread_may_drop_a_tensor_that_both_threads_read) {
    Device const device = emu(0);
    for (int seed = 1; seed <= kSeeds; ++seed) {
        emulated_devices().set_seed(static_cast<std::uint64_t>(seed));
        Tensor made = counting(4, 4).to(device);
        Tensor const first = made.clone();
        Tensor second;
        std::thread([&] {
            second = made.clone();
            made = Tensor();
        }).join();
        EXPECT_EQ(numbers_of(first), numbers_of(counting(4, 4))) << "seed " << seed;
        EXPECT_EQ(numbers_of(second), numbers_of(counting(4, 4))) << "seed " << seed;
    }
}

std::vector<std::int32_t> rows_with_zeros(std::size_t begin, std::size_t end) {
    std::vector<std::int32_t> numbers = numbers_of(counting(4, 4));
    std::fill(numbers.begin() + static_cast<std::ptrdiff_t>(4 * begin),
              numbers.begin() + static_cast<std::ptrdiff_t>(4 * end), 0);
    return numbers;
}

/// Writes zeros in a thread of its own, which ends before its work has run.
void write_zeros_elsewhere(Tensor& to) {
    std::thread([&] { assign(to, Tensor::zeros(to.shape(), Dtype::Int32, to.device())); }).join();
}

TEST(DeviceTensor, a_view_shows_what_another_thread_writes_to_the_tensor_and_the_reverse) {
    Device const device = emu(0);
    for (int seed = 1; seed <= kSeeds; ++seed) {
        emulated_devices().set_seed(static_cast<std::uint64_t>(seed));
        Tensor whole = counting(4, 4).to(device);
        Tensor middle = whole.view({2, 4}, {16, 4}, 16);
        write_zeros_elsewhere(middle);
        EXPECT_EQ(numbers_of(whole), rows_with_zeros(1, 3)) << "seed " << seed;
        Tensor other = counting(4, 4).to(device);
        Tensor const first = other.view({1, 4}, {16, 4}, 0);
        write_zeros_elsewhere(other);
        EXPECT_EQ(numbers_of(first), std::vector<std::int32_t>(4, 0)) << "seed " << seed;
    }
}

/// Work before a read, so that a write could overtake it.
void queue_work(Device device) {
    for (int i = 0; i < 8; ++i) {
        (void)Tensor::zeros({1}, Dtype::Int8, device);
    }
}

TEST(DeviceTensor, a_write_waits_for_the_reads_of_other_threads) {
    Device const device = emu(0);
    for (int seed = 1; seed <= kSeeds; ++seed) {
        emulated_devices().set_seed(static_cast<std::uint64_t>(seed));
        Tensor made = counting(4, 4).to(device);
        synchronize(device);
        Tensor copy;
        std::thread([&] {
            queue_work(device);
            copy = made.view({4, 4}, {16, 4}, 0).clone();
        }).join();
        assign(made, Tensor::zeros({4, 4}, Dtype::Int32, device));
        EXPECT_EQ(numbers_of(copy), rows_with_zeros(0, 0)) << "seed " << seed;
        EXPECT_EQ(numbers_of(made), rows_with_zeros(0, 4)) << "seed " << seed;
    }
}

TEST(DeviceTensor, a_write_of_another_thread_waits_for_the_reads_of_this_one) {
    Device const device = emu(0);
    for (int seed = 1; seed <= kSeeds; ++seed) {
        emulated_devices().set_seed(static_cast<std::uint64_t>(seed));
        Tensor made = counting(4, 4).to(device);
        synchronize(device);
        queue_work(device);
        Tensor const copy = made.clone();
        write_zeros_elsewhere(made);
        EXPECT_EQ(numbers_of(copy), rows_with_zeros(0, 0)) << "seed " << seed;
        EXPECT_EQ(numbers_of(made), rows_with_zeros(0, 4)) << "seed " << seed;
    }
}

TEST(DeviceTensor, a_write_waits_for_the_reads_of_other_streams) {
    Device const device = emu(0);
    for (int seed = 1; seed <= kSeeds; ++seed) {
        emulated_devices().set_seed(static_cast<std::uint64_t>(seed));
        Tensor made = counting(4, 4).to(device);
        Tensor copy;
        {
            StreamScope const scope(new_stream(device));
            copy = made.clone();
        }
        {
            StreamScope const scope(new_stream(device));
            assign(made, Tensor::zeros({4, 4}, Dtype::Int32, device));
        }
        EXPECT_EQ(numbers_of(copy), rows_with_zeros(0, 0)) << "seed " << seed;
        EXPECT_EQ(numbers_of(made), rows_with_zeros(0, 4)) << "seed " << seed;
    }
}

// The device closes freed pages: a late write to them is a fault.
TEST(DeviceTensor, memory_is_freed_after_the_writes_and_reads_of_other_threads) {
    Device const device = emu(0);
    for (int seed = 1; seed <= kSeeds; ++seed) {
        emulated_devices().set_seed(static_cast<std::uint64_t>(seed));
        Tensor made = counting(4, 4).to(device);
        Tensor view = made.view({2, 4}, {16, 4}, 16);
        write_zeros_elsewhere(view);
        made = view = Tensor();
        synchronize(device);

        Tensor read = counting(4, 4).to(device);
        Tensor copy;
        std::thread([&] { copy = read.view({4, 4}, {16, 4}, 0).clone(); }).join();
        read = Tensor();
        synchronize(device);
        EXPECT_EQ(numbers_of(copy), rows_with_zeros(0, 0)) << "seed " << seed;
    }
}

TEST(DeviceTensor, views_stay_inside_of_their_tensor) {
    for (Tensor const& whole : {counting(4, 4), counting(4, 4).to(emu(0))}) {
        Tensor const backwards = whole.view({4}, {-16}, 60);  // the last column
        EXPECT_EQ(numbers_of(backwards), (std::vector<std::int32_t>{16, 12, 8, 4}));
        EXPECT_EQ(numbers_of(backwards.view({2}, {16}, -48)), (std::vector<std::int32_t>{4, 8}));
        EXPECT_EQ(whole.as_read_only().view({1}, {4}, 0).read_only(), true);
        EXPECT_EQ(whole.view({0, 3}, {4, 4}, 1000).data(), whole.data());
        EXPECT_THROW((void)whole.view({1}, {4}, 64), ValueError);
        EXPECT_THROW((void)whole.view({2}, {-4}, 0), ValueError);
        EXPECT_THROW((void)whole.view({4, 5}, {16, 4}, 0), ValueError);
        EXPECT_THROW((void)whole.view({2}, {4, 4}, 0), ValueError);
    }
    EXPECT_EQ(Tensor::zeros({0, 2}, Dtype::Int8, emu(0)).view({2, 0}, {1, 2}, 0).size(), 0);
}

TEST(StreamScope, nests_by_device) {
    Device const zero = emu(0);
    Stream const own{zero};
    EXPECT_EQ(current_stream(zero), own);
    {
        StreamScope const outer({zero, 40});
        StreamScope const other({emu(1), 41});
        EXPECT_EQ(current_stream(zero).handle, 40u);
        StreamScope const inner({zero, 42});
        EXPECT_EQ(current_stream(zero).handle, 42u);
        EXPECT_EQ(current_stream(emu(1)).handle, 41u);
    }
    EXPECT_EQ(current_stream(zero), own);
}

TEST(DeviceTensor, memory_is_freed_when_the_last_tensor_is_gone) {
    Device const device = emu(1);
    auto& memory = tensorhash::memory_of(device, "device");
    memory.synchronize(current_stream(device));
    std::size_t const before = emulated_devices().live(1);
    {
        Tensor const one = Tensor::zeros({100}, Dtype::Int8, device);
        Tensor const same = one;
        EXPECT_EQ(emulated_devices().live(1), before + 1);
    }
    memory.synchronize(current_stream(device));
    EXPECT_EQ(emulated_devices().live(1), before);
}

TEST(DeviceTensor, dlpack_carries_the_device_and_the_owner) {
    Device const device = emu(1);
    Tensor const there = counting(2, 3).to(device);
    auto* const managed = there.to_dlpack_versioned();
    EXPECT_EQ(managed->dl_tensor.device.device_type, kDLExtDev);
    EXPECT_EQ(managed->dl_tensor.device.device_id, 1);
    Tensor const again = Tensor::from_dlpack(managed);
    EXPECT_EQ(again.device(), device);
    EXPECT_EQ(again.data(), there.data());
    EXPECT_EQ(numbers_of(again), numbers_of(there));
}

TEST(DeviceTensor, a_forked_child_gets_an_error_and_no_hang) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer follows at most 64 locks, and a fork takes more";
#endif
    Device const device = emu(0);
    Tensor const there = counting(2, 2).to(device);
    pid_t const child = fork();
    if (child == 0) {
        int refused = 0;
        auto const expect_refusal = [&](auto&& call) {
            try {
                call();
            } catch (DeviceError const& error) {
                refused += std::string(error.what()).find("forked") != std::string::npos ? 1 : 0;
            }
        };
        expect_refusal([&] { (void)there.to(Device{}); });
        expect_refusal([&] { (void)there.clone(); });
        expect_refusal([&] { (void)Tensor::zeros({1}, Dtype::Int8, device); });
        _exit(refused);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 3);
    EXPECT_EQ(numbers_of(there)[3], 4);
}

}  // namespace
}  // namespace th_test
