// EmulatedMachine: the fiber emulator in place of a GPU. It runs the same program to its report,
// but its times mean nothing, so none are taken.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device/fiber_queue.hpp"

namespace th_gpu {

class EmulatedMachine {
public:
    using Queue = th_test::FiberQueue;
    static constexpr bool kMeasures = false;
    static constexpr char const* kPrimitives = "the emulator";

    explicit EmulatedMachine(int) : queue_(in_order()) {}

    Queue& queue() { return queue_; }
    std::vector<std::pair<std::string, std::string>> describe() const {
        return {{"device", "emulated: one fiber per thread on the CPU"}};
    }
    std::uint64_t cache_bytes() const { return 1 << 14; }
    std::uint64_t memory_bytes() const { return 1 << 20; }

    template <class Work>
    double seconds(Work const& work) {
        work();
        return 0;
    }

private:
    /// The schedule is another test's business: threads run one after the other.
    static tensorhash::emulate::Options in_order() {
        return {.switch_one_in = 0, .nap_one_in = 0, .budget = std::uint64_t{1} << 40};
    }

    Queue queue_;
};

}  // namespace th_gpu
