// PtxQueue: a device::Queue on the PTX interpreter. Everything happens at once. A race is a failure
// of the test that owns the queue.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "device/queue.hpp"
#include "device/segments.hpp"
#include "ptx/interpreter.hpp"

namespace th_test {

class PtxQueue {
public:
    struct Event {
        std::uint64_t number = 0;
    };

    explicit PtxQueue(th_ptx::Options options = {}, std::uint32_t most_blocks = 3,
                      std::uint32_t threads = 64)
        : device_(th_ptx::program_of_file(TH_BODIES_PTX), options, most_blocks, threads) {}
    ~PtxQueue() {
        for (std::string const& race : device_.races()) ADD_FAILURE() << "race: " << race;
    }
    PtxQueue(PtxQueue const&) = delete;
    PtxQueue& operator=(PtxQueue const&) = delete;

    std::uint64_t launches = 0;
    std::uint64_t read_backs = 0;
    std::uint64_t allocations = 0;
    std::uint64_t failing_allocation = ~0ull;  // this one throws std::bad_alloc

    std::size_t live_allocations() { return device_.memory().live_allocations(); }

    void* allocate(std::size_t bytes) {
        if (allocations++ == failing_allocation) {
            throw std::bad_alloc();
        }
        return device_.memory().allocate(bytes);
    }
    void release(void* p) { device_.memory().release(p); }
    void fill(void* to, int byte, std::size_t bytes) { device_.memory().fill(to, byte, bytes); }
    void copy(void* to, void const* from, std::size_t bytes, tensorhash::device::Copy kind) {
        switch (kind) {
            case tensorhash::device::Copy::In:
                return device_.memory().write(to, from, bytes);
            case tensorhash::device::Copy::Out:
                return device_.memory().read(to, from, bytes);
            default:
                return device_.memory().copy(to, from, bytes);
        }
    }
    void read_back(void* to, void const* from, std::size_t bytes) {
        ++read_backs;
        device_.memory().read(to, from, bytes);
    }

    /// A device error fails the test but is not thrown: the caller may be noexcept.
    template <class Body>
    void launch(std::uint64_t rows, Body const& body) {
        ++launches;
        try {
            device_.launch(rows, body);
        } catch (th_ptx::PtxError const& error) {
            ADD_FAILURE() << error.what();
        }
    }

    template <class Argument>
    void launch_kernel(std::string const& name, std::uint64_t rows, Argument const& argument) {
        device_.launch_kernel(name, rows, argument);
    }

    template <class Count>
    void scan(Count* counts, std::uint64_t size, Count* total) {
        using Scan = tensorhash::device::ScanCounts<Count>;
        launch(Scan::kThreads, Scan{counts, total, size});
    }
    std::size_t sort_bytes(std::uint64_t) { return 0; }
    void sort_pairs(std::uint32_t* keys, std::uint32_t* values, std::uint64_t size, int bits,
                    void* = nullptr, std::size_t = 0) {
        std::uint32_t const mask = bits >= 32 ? ~0u : (1u << bits) - 1;
        std::vector<std::uint32_t> order(size), read_keys(size), read_values(size);
        device_.memory().read(read_keys.data(), keys, size * sizeof *keys);
        device_.memory().read(read_values.data(), values, size * sizeof *values);
        for (std::uint32_t i = 0; i < size; ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return (read_keys[a] & mask) < (read_keys[b] & mask);
        });
        auto const write_sorted = [&](std::uint32_t* to, std::vector<std::uint32_t> const& from) {
            std::vector<std::uint32_t> sorted;
            for (std::uint32_t const i : order) sorted.push_back(from[i]);
            device_.memory().write(to, sorted.data(), size * sizeof *to);
        };
        write_sorted(keys, read_keys);
        write_sorted(values, read_values);
    }
    /// Streams only have names here. Work is done at once, so a test pins the waits.
    std::uintptr_t current = 0;
    std::vector<std::uint64_t> waits;

    std::uintptr_t stream() const { return current; }
    Event record() { return {++events_}; }
    void wait(Event event) { waits.push_back(event.number); }

private:
    th_ptx::Interpreter device_;
    std::uint64_t events_ = 0;
};

static_assert(tensorhash::device::Queue<PtxQueue>);

}  // namespace th_test
