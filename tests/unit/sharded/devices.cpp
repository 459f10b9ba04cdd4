// CPU devices: each has its own thread pool, and the pools share the configured number of threads.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "runtime/parallel.hpp"
#include "support/sharded_twin.hpp"

namespace th_test {
namespace {

using tensorhash::runtime::run_on_devices;
using tensorhash::runtime::run_tasks;

class Devices : public OverThreads {};
INSTANTIATE_TEST_SUITE_P(Pools, Devices, ::testing::Values(1, 2, 5, 8, 64), thread_name);

TEST_P(Devices, every_device_runs_its_task_once_and_completes_nested_parallel_work) {
    std::vector<int> const devices{0, 3, 1, 7};
    for (int round = 0; round < 50; ++round) {
        std::vector<std::atomic<int>> runs(devices.size());
        run_on_devices(devices, [&](std::size_t device) {
            run_tasks(10, [&](std::size_t) { ++runs[device]; });
        });
        for (auto& n : runs) ASSERT_EQ(n.load(), 10);
    }
}

TEST_P(Devices, the_configured_threads_are_divided_among_the_devices) {
    std::vector<int> const devices{0, 1, 2};
    std::vector<int> threads(3);
    run_on_devices(devices,
                   [&](std::size_t device) { threads[device] = tensorhash::num_threads(); });
    int const set = GetParam();
    if (set > 3) {
        EXPECT_EQ(std::accumulate(threads.begin(), threads.end(), 0), set);
    } else {
        EXPECT_EQ(threads, (std::vector<int>(3, 1)));
    }
    EXPECT_EQ(tensorhash::num_threads(), set);
}

TEST_P(Devices, the_first_devices_exception_reaches_the_caller_and_the_pools_keep_working) {
    std::vector<int> const devices{0, 1, 2, 3};
    auto const call = [&] {
        run_on_devices(devices, [&](std::size_t device) {
            if (device >= 2) throw std::logic_error("device " + std::to_string(device));
        });
    };
    for (int round = 0; round < 20; ++round) EXPECT_THROW(call(), std::logic_error);
    std::atomic<int> runs{0};
    run_on_devices(devices, [&](std::size_t) { ++runs; });
    EXPECT_EQ(runs.load(), 4);
}

TEST_P(Devices, callers_on_several_threads_share_the_pools) {
    std::vector<int> const devices{0, 1, 2};
    std::vector<std::thread> callers;
    std::atomic<int> wrong{0};
    for (int c = 0; c < 4; ++c)
        callers.emplace_back([&] {
            for (int round = 0; round < 15; ++round) {
                std::atomic<int> runs{0};
                run_on_devices(devices,
                               [&](std::size_t) { run_tasks(7, [&](std::size_t) { ++runs; }); });
                wrong += runs.load() != 21;
            }
        });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong.load(), 0);
}

TEST(DevicesFork, a_child_has_its_own_pools) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer stops at new threads in a forked child";
#endif
    Threads threads(8);
    ShardedHashMap map(Capacity{0}, {Dtype::Int64, {}}, {{Dtype::Int64, {}}}, cpus(3));
    std::vector<std::int64_t> numbers(20000);
    std::iota(numbers.begin(), numbers.end(), 0);
    Tensor const keys = Tensor::from(numbers);
    map.insert(keys, {keys});
    for (int i = 0; i < 5; ++i) {
        pid_t const child = fork();
        if (child == 0) {
            alarm(30);
            auto const again = map.insert(keys, {keys});
            bool const good =
                map.get(keys).at(0).as<std::int64_t>()[19999] == 19999 && !again.mask.as<bool>()[0];
            _exit(good ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
        EXPECT_EQ(map.get(keys).at(0).as<std::int64_t>()[7], 7);
    }
}

TEST(DevicesNames, devices_are_checked) {
    auto const make = [](std::vector<Device> devices) {
        return ShardedHashMap(Capacity{0}, {Dtype::Int64, {}}, {}, std::move(devices));
    };
    EXPECT_THROW(make({}), tensorhash::ValueError);
    EXPECT_THROW(make({{Device::Type::Cpu, 1}, {Device::Type::Cpu, 1}}), tensorhash::ValueError);
    EXPECT_THROW(make({{Device::Type::Cpu, 64}}), tensorhash::ValueError);
    EXPECT_THROW(make({{Device::Type::Cuda, 0}}), tensorhash::DeviceError);
    EXPECT_EQ(
        make({{Device::Type::Cpu, 5}, {Device::Type::Cpu, 2}}).shard_on({Device::Type::Cpu, 2}),
        1u);
    EXPECT_THROW(make(cpus(2)).shard_on({Device::Type::Cpu, 2}), tensorhash::ValueError);
}

}  // namespace
}  // namespace th_test
