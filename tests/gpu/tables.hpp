// Inserts and lookups: with 1, 4 and 8 lanes per row, and through the whole table with its values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/core.hpp"
#include "device/table.hpp"
#include "gpu/primitives.hpp"
#include "gpu/rows.hpp"

namespace th_gpu {

namespace device = tensorhash::device;

/// A table with an index of about this many bytes.
struct TableSize {
    std::string name;
    std::uint64_t index_bytes;

    std::uint32_t rows(tensorhash::step::KeyFormat format) const {
        std::uint64_t const buckets = std::max<std::uint64_t>(index_bytes / 64, 2);
        std::uint64_t const rows = buckets * device::bucket_load(format).entries;
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, 1u << 28));
    }
};

/// Below and above the L2 cache.
template <class Machine>
std::vector<TableSize> table_sizes(Machine const& machine) {
    std::uint64_t const cache = machine.cache_bytes();
    return {{"a quarter of L2", cache / 4},
            {"16 times L2", std::min(cache * 16, machine.memory_bytes() / 16)}};
}

/// `rows` keys that no other batch has. Their order is random to the index.
template <class Queue>
device::Array<Queue, std::uint64_t> make_keys(Queue& queue, std::uint32_t rows,
                                              std::uint32_t key_bytes, std::uint64_t batch) {
    std::uint32_t const words = key_bytes / 8;
    std::vector<std::uint64_t> keys(std::uint64_t{rows} * words);
    for (std::uint64_t i = 0; i < keys.size(); ++i) {
        keys[i] = tensorhash::step::mix(batch << 40 | i);
    }
    return to_device(queue, keys);
}

template <class Queue>
void require_found(Queue& queue, device::Array<Queue, unsigned char> const& mask, bool found) {
    for (unsigned char const one : to_host(queue, mask)) {
        if (one != (found ? 1 : 0)) throw std::runtime_error("a lookup gave a wrong answer");
    }
}

template <std::uint32_t Lanes, class Machine>
void measure_lanes(Machine& machine, TableSize const& size, std::uint32_t key_bytes) {
    using Queue = typename Machine::Queue;
    Queue& queue = machine.queue();
    tensorhash::step::KeyFormat const format{key_bytes, 0};
    std::uint32_t const rows = size.rows(format);
    auto const keys = make_keys(queue, rows, key_bytes, 0);
    auto const others = make_keys(queue, rows, key_bytes, 1);
    device::Array<Queue, std::uint32_t> const indices(queue, rows);
    device::Array<Queue, unsigned char> const mask(queue, rows);
    device::Results const out{indices.data(), mask.data()};
    device::Core<Queue, Lanes> table(queue, format, rows, 1);
    auto const bytes_of = [](auto const& array) {
        return reinterpret_cast<unsigned char const*>(array.data());
    };
    Measured what{Lanes == 1 ? "1 lane" : std::to_string(Lanes) + " lanes",
                  size.name + ", " + std::to_string(key_bytes) + "-byte keys", "", rows};
    auto const operation = [&](char const* name, auto const& prepare, auto const& work) {
        what.operation = name;
        measure(machine, what, prepare, work);
    };
    auto const nothing = [] {};
    auto const insert = [&] { table.insert(bytes_of(keys), rows, out); };
    operation("insert, new keys", [&] { table.clear(); }, insert);
    operation("insert, present keys", nothing, insert);
    operation("find, present keys", nothing, [&] { table.find(bytes_of(keys), rows, out); });
    require_found(queue, mask, true);
    operation("find, absent keys", nothing, [&] { table.find(bytes_of(others), rows, out); });
    require_found(queue, mask, false);
}

/// What a user calls: int64 keys with one int64 value, insert, and the values of keys.
template <class Machine>
void measure_table(Machine& machine, TableSize const& size) {
    using Queue = typename Machine::Queue;
    Queue& queue = machine.queue();
    std::uint32_t const rows = size.rows({8, 0});
    auto const keys = make_keys(queue, rows, 8, 0);
    auto const others = make_keys(queue, rows, 8, 1);
    device::Array<Queue, std::uint32_t> const indices(queue, rows);
    device::Array<Queue, unsigned char> const mask(queue, rows);
    device::Array<Queue, std::uint64_t> const got(queue, rows);
    tensorhash::Element const number{tensorhash::Dtype::Int64, {}};
    std::vector<tensorhash::Element> const columns{number};
    device::DeviceTable<Queue> table(queue, {number, columns, rows, 1}, tensorhash::Device{});
    auto const rows_of = [&](auto const& array) {
        auto const* const bytes = reinterpret_cast<unsigned char const*>(array.data());
        return tensorhash::backend::KeyRows{bytes, rows};
    };
    unsigned char const* const values[] = {rows_of(keys).data};
    auto const get = [&](auto const& wanted) {
        table.find(rows_of(wanted), {indices.data(), mask.data()});
        table.gather(0, {indices.data(), rows}, got.data());
    };
    Measured what{"tensorhash", size.name, "insert", rows};
    measure(
        machine, what, [&] { table.clear(); },
        [&] { table.insert({rows_of(keys), {values}, {indices.data(), mask.data()}}); });
    what.operation = "find, present keys";
    measure(machine, what, [] {}, [&] { get(keys); });
    require_found(queue, mask, true);
    what.operation = "find, absent keys";
    measure(machine, what, [] {}, [&] { get(others); });
    require_found(queue, mask, false);
    std::printf("size\t%s\t%u\n", size.name.c_str(), rows);
}

}  // namespace th_gpu
