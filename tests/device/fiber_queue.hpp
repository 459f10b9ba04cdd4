// FiberQueue: the simplest Queue. Everything happens at once, in host memory; launches run on
// fibers. It counts what a test wants to pin.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <typeindex>
#include <utility>
#include <vector>

#include "device/queue.hpp"
#include "device/segments.hpp"
#include "emulate/fibers.hpp"

namespace th_test {

/// The bodies that the FiberQueues of this process have run, each with their seeds.
inline std::map<std::type_index, std::set<std::uint64_t>>& bodies_that_ran() {
    static std::map<std::type_index, std::set<std::uint64_t>> seeds;
    return seeds;
}

class FiberQueue {
public:
    struct Event {
        std::uint64_t number = 0;
    };

    explicit FiberQueue(tensorhash::emulate::Options options = {}, std::uint32_t most_blocks = 3,
                        std::uint32_t threads = 64)
        : seed_(options.seed), options_(options), most_blocks_(most_blocks), threads_(threads) {}

    std::uint64_t launches = 0;
    std::uint64_t read_backs = 0;
    std::uint64_t allocations = 0;
    std::uint64_t failing_allocation = ~0ull;  // this one throws std::bad_alloc

    std::size_t live_allocations() const { return sizes_.size(); }

    void* allocate(std::size_t bytes) {
        if (allocations++ == failing_allocation) {
            throw std::bad_alloc();
        }
        void* const p = ::operator new(bytes, kAlign);
        std::memset(p, 0xa5, bytes);
        sizes_[p] = bytes;
        return p;
    }
    void release(void* p) noexcept {
        sizes_.erase(p);
        ::operator delete(p, kAlign);
    }
    void fill(void* to, int byte, std::size_t bytes) { std::memset(to, byte, bytes); }
    void copy(void* to, void const* from, std::size_t bytes, tensorhash::device::Copy) {
        if (bytes != 0) {
            std::memcpy(to, from, bytes);
        }
    }
    void read_back(void* to, void const* from, std::size_t bytes) {
        ++read_backs;
        copy(to, from, bytes, tensorhash::device::Copy::Out);
    }

    template <class Body>
    void launch(std::uint64_t rows, Body const& body) {
        ++launches;
        if (rows != 0) bodies_that_ran()[typeid(Body)].insert(seed_);
        options_.seed += 0x9e3779b97f4a7c15ull;
        tensorhash::emulate::run_body(rows, body, options_, most_blocks_, threads_);
    }

    template <class Count>
    void scan(Count* counts, std::uint64_t size, Count* total) {
        launch(tensorhash::device::ScanCounts<Count>::kThreads,
               tensorhash::device::ScanCounts<Count>{counts, total, size});
    }
    std::size_t sort_bytes(std::uint64_t) { return 0; }
    void sort_pairs(std::uint32_t* keys, std::uint32_t* values, std::uint64_t size, int bits,
                    void* = nullptr, std::size_t = 0) {
        std::uint32_t const mask = bits >= 32 ? ~0u : (1u << bits) - 1;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs(size);
        for (std::uint64_t i = 0; i < size; ++i) {
            pairs[i] = {keys[i], values[i]};
        }
        std::stable_sort(pairs.begin(), pairs.end(), [&](auto const& a, auto const& b) {
            return (a.first & mask) < (b.first & mask);
        });
        for (std::uint64_t i = 0; i < size; ++i) {
            keys[i] = pairs[i].first;
            values[i] = pairs[i].second;
        }
    }
    /// Streams only have names here. Work is done at once, so a test pins the waits.
    std::uintptr_t current = 0;
    std::vector<std::uint64_t> waits;

    std::uintptr_t stream() const { return current; }
    Event record() { return {++events_}; }
    void wait(Event event) { waits.push_back(event.number); }

private:
    static constexpr std::align_val_t kAlign{256};

    std::uint64_t seed_;
    tensorhash::emulate::Options options_;
    std::uint32_t most_blocks_;
    std::uint32_t threads_;
    std::uint64_t events_ = 0;
    std::map<void*, std::size_t> sizes_;
};

static_assert(tensorhash::device::Queue<FiberQueue>);

}  // namespace th_test
