// MultiDeviceHashTable for its tests: int64 keys, floats, three CPU devices, vectors instead of
// pointers.
#pragma once

#include <memory>
#include <vector>

#include "support/sharded_twin.hpp"
#include "tensorhash/sharded/multi_device_hash_table.hpp"

namespace th_test {

using Key = std::int64_t;
using Keys = std::vector<Key>;
using Floats = std::vector<float>;
using Bits = std::vector<std::uint8_t>;
using Mod = tensorhash::MultiGpuHashTable<Key, float, tensorhash::ModPolicy<Key>>;

inline constexpr int ids[] = {0, 1, 2};

/// The table with vectors instead of pointers.
template <class Table>
struct Use {
    explicit Use(std::size_t capacity = 16)
        : table(capacity, ids, 3), resource(table.stream_event_resource_create(0)) {}

    Bits insert(Keys const& keys, Floats const& vals) {
        return status(keys.size(), [&](bool* out) {
            table.insert(keys.data(), vals.data(), keys.size(), resource, out);
        });
    }
    Bits set(Keys const& keys, Floats const& vals) {
        return status(keys.size(), [&](bool* out) {
            table.set(keys.data(), vals.data(), keys.size(), resource, out);
        });
    }
    Bits remove(Keys const& keys) {
        return status(keys.size(),
                      [&](bool* out) { table.remove(keys.data(), keys.size(), resource, out); });
    }
    /// -1 where the key is missing.
    Floats get(Keys const& keys) {
        Floats vals(keys.size(), -7);
        auto const found = status(keys.size(), [&](bool* out) {
            table.get(keys.data(), vals.data(), out, keys.size(), resource);
        });
        for (std::size_t i = 0; i < keys.size(); ++i)
            if (!found[i]) {
                EXPECT_EQ(vals[i], 0.0f);
                vals[i] = -1;
            }
        return vals;
    }
    template <class Call>
    static Bits status(std::size_t rows, Call call) {
        auto out = std::make_unique<bool[]>(rows);
        call(out.get());
        return {out.get(), out.get() + rows};
    }

    Table table;
    tensorhash::Stream_event_resource resource;
};

}  // namespace th_test
