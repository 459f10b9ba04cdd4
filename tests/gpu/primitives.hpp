// The queue's scan and sort beside serial loops that define their results. On a GPU they are CUB's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "device/array.hpp"
#include "device/queue.hpp"
#include "gpu/rows.hpp"

namespace th_gpu {

template <class Queue, class T>
tensorhash::device::Array<Queue, T> to_device(Queue& queue, std::vector<T> const& host) {
    tensorhash::device::Array<Queue, T> array(queue, host.size());
    queue.copy(array.data(), host.data(), host.size() * sizeof(T), tensorhash::device::Copy::In);
    return array;
}
template <class Queue, class T>
std::vector<T> to_host(Queue& queue, tensorhash::device::Array<Queue, T> const& array) {
    std::vector<T> host(array.size());
    queue.read_back(host.data(), array.data(), host.size() * sizeof(T));
    return host;
}

template <class Count, class Queue>
bool scan_is_right(Queue& queue, std::uint64_t size) {
    std::mt19937_64 random(size);
    std::vector<Count> counts(size);
    for (Count& count : counts) count = static_cast<Count>(random() % 257);
    std::vector<Count> wanted(size);
    std::exclusive_scan(counts.begin(), counts.end(), wanted.begin(), Count{0});
    Count const sum = std::accumulate(counts.begin(), counts.end(), Count{0});
    auto const scanned = to_device(queue, counts);
    tensorhash::device::Array<Queue, Count> total(queue, 1);
    queue.scan(scanned.data(), size, total.data());
    return to_host(queue, scanned) == wanted && to_host(queue, total).front() == sum;
}

template <class Queue>
bool sort_is_right(Queue& queue, std::uint64_t size, int bits) {
    std::mt19937 random(static_cast<std::uint32_t>(size) + static_cast<std::uint32_t>(bits));
    std::vector<std::uint32_t> keys(size);
    // Many keys are equal, so that an unstable sort shows.
    for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(random() % (size / 3 + 1));
    std::uint32_t const low = bits < 32 ? (1u << bits) - 1 : ~0u;
    std::vector<std::uint32_t> order(size);
    std::iota(order.begin(), order.end(), 0u);
    auto const sorted_keys = to_device(queue, keys);
    auto const sorted_rows = to_device(queue, order);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return (keys[a] & low) < (keys[b] & low);
    });
    std::size_t const bytes = queue.sort_bytes(size);
    tensorhash::device::Array<Queue, unsigned char> const scratch(queue, bytes);
    queue.sort_pairs(sorted_keys.data(), sorted_rows.data(), size, bits, scratch.data(), bytes);
    bool right = to_host(queue, sorted_rows) == order;
    auto const got = to_host(queue, sorted_keys);
    for (std::uint64_t i = 0; i < size; ++i) right = right && got[i] == keys[order[i]];
    return right;
}

/// `name` is that of the implementation; `most` limits the sizes.
template <class Queue>
bool check_primitives(Queue& queue, std::string const& name, std::uint64_t most) {
    bool scans = true;
    bool sorts = true;
    for (std::uint64_t const size : {1, 31, 1000, 16384, 16385, 1 << 20, 10'000'000}) {
        if (size > most) continue;
        scans = scans && scan_is_right<std::uint32_t>(queue, size) &&
                scan_is_right<std::uint64_t>(queue, size);
        for (int const bits : {6, 20, 32}) sorts = sorts && sort_is_right(queue, size, bits);
    }
    print_check(name + " scans as the reference loop does", scans);
    print_check(name + " sorts as the reference loop does", sorts);
    return scans && sorts;
}

}  // namespace th_gpu
