// The C interface to ShardedHashMap: the calls of c.cpp with int64 indices, devices and a policy.
#include "tensorhash/sharded/sharded_map.hpp"

#include <optional>

#include "capi/support.hpp"
#include "tensorhash/device.hpp"

struct th_sharded {
    tensorhash::ShardedHashMap map;
};

namespace {

using namespace tensorhash;
using namespace tensorhash::capi;

std::vector<Device> to_devices(char const* const* names, std::int32_t count) {
    require_count(count, "device_count");
    std::vector<Device> devices;
    for (std::int32_t i = 0; i < count; ++i) {
        require(names, "devices");
        require(names[i], "devices");
        devices.push_back(Device::parse(names[i]));
        if (!devices.back().is_cpu()) {
            require_usable(devices.back(), "devices");  // says what is missing
        }
    }
    return devices;
}

ShardPolicy to_policy(th_policy const& policy) {
    require(policy.name, "policy.name");
    if (policy.route == nullptr) {
        return policy_from_name(policy.name);
    }
    if (std::string_view(policy.name) == "hash" || std::string_view(policy.name) == "mod") {
        throw ValueError(
            "policy.name: expected a name other than hash and mod for a custom route, got \"" +
            std::string(policy.name) + "\"");
    }
    return {policy.name, [route = policy.route, context = policy.context](
                             Tensor const& keys, int shards, std::span<std::int32_t> shard) {
                if (route(context, keys.data(), static_cast<std::int64_t>(shard.size()), shards,
                          shard.data()) != 0) {
                    throw ValueError("policy.route: the callback failed for " +
                                     std::to_string(shard.size()) + " keys");
                }
            }};
}

/// nullopt for -1, which stands for all shards.
std::optional<std::size_t> to_shard(std::int32_t shard) {
    if (shard < -1) {
        throw IndexError("shard: expected -1 for all shards, or at least 0, got " +
                         std::to_string(shard));
    }
    return shard < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(shard));
}

}  // namespace

extern "C" {

th_status th_sharded_create(int64_t init_capacity, th_element key, th_element const* values,
                            int32_t value_count, char const* const* devices, int32_t device_count,
                            th_policy policy, th_sharded** map) {
    return guarded([&] {
        require(map, "map");
        *map = new th_sharded{ShardedHashMap(Capacity{init_capacity}, to_element(key),
                                             to_elements(values, value_count),
                                             to_devices(devices, device_count), to_policy(policy))};
    });
}

void th_sharded_destroy(th_sharded* map) { delete map; }

th_status th_sharded_size(th_sharded const* map, int32_t shard, int64_t* size) {
    return guarded([&] {
        ShardedHashMap const& table = open(map);
        require(size, "size");
        auto const one = to_shard(shard);
        *size = one ? table.size(*one) : table.size();
    });
}
th_status th_sharded_capacity(th_sharded const* map, int32_t shard, int64_t* capacity) {
    return guarded([&] {
        ShardedHashMap const& table = open(map);
        require(capacity, "capacity");
        auto const one = to_shard(shard);
        *capacity = one ? table.capacity(*one) : table.capacity();
    });
}
th_status th_sharded_reserve(th_sharded* map, int64_t capacity) {
    return guarded([&] { open(map).reserve(Capacity{capacity}); });
}
th_status th_sharded_shrink_to_fit(th_sharded* map) {
    return guarded([&] { open(map).shrink_to_fit(); });
}
th_status th_sharded_clear(th_sharded* map) {
    return guarded([&] { open(map).clear(); });
}
th_status th_sharded_validate(th_sharded const* map) {
    return guarded([&] { open(map).validate(); });
}
th_status th_sharded_memory(th_sharded const* map, int64_t* bytes) {
    return guarded([&] {
        ShardedHashMap const& table = open(map);
        require(bytes, "bytes");
        *bytes = static_cast<std::int64_t>(table.memory_usage().total());
    });
}

th_status th_sharded_shard_of(th_sharded const* map, void const* keys, int64_t rows,
                              int32_t* shard) {
    return guarded([&] {
        ShardedHashMap const& table = open(map);
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        if (rows > 0) {
            require(shard, "shard");
        }
        copy_out(table.shard_of(batch), shard);
    });
}

th_status th_sharded_accumulate(th_sharded* map, void const* keys, int64_t rows,
                                void const* const* values, th_reduce const* reduce,
                                int64_t* indices, uint8_t* mask) {
    return guarded([&] {
        ShardedHashMap& table = open(map);
        auto const& elements = table.value_elements();
        auto const reduces = to_reduces(reduce, elements.size());
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        copy_out(table.accumulate(batch, columns_of(elements, values, rows), reduces), indices,
                 mask);
    });
}

th_status th_sharded_insert_into(th_sharded* map, int32_t shard, void const* keys, int64_t rows,
                                 void const* const* values, int64_t* indices, uint8_t* mask) {
    return guarded([&] {
        ShardedHashMap& table = open(map);
        if (shard < 0) {
            throw IndexError("shard: expected at least 0, got " + std::to_string(shard));
        }
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        auto const columns = columns_of(table.value_elements(), values, rows);
        copy_out(table.insert_into(static_cast<std::size_t>(shard), batch, columns), indices, mask);
    });
}

th_status th_sharded_activate(th_sharded* map, void const* keys, int64_t rows, int64_t* indices,
                              uint8_t* mask) {
    return guarded([&] {
        ShardedHashMap& table = open(map);
        copy_out(table.activate(rows_of(keys, rows, table.key_element(), "keys")), indices, mask);
    });
}

th_status th_sharded_find(th_sharded const* map, void const* keys, int64_t rows, int64_t* indices,
                          uint8_t* mask) {
    return guarded([&] {
        ShardedHashMap const& table = open(map);
        copy_out(table.find(rows_of(keys, rows, table.key_element(), "keys")), indices, mask);
    });
}

th_status th_sharded_erase(th_sharded* map, void const* keys, int64_t rows, uint8_t* mask) {
    return guarded([&] {
        ShardedHashMap& table = open(map);
        Tensor const erased = table.erase(rows_of(keys, rows, table.key_element(), "keys"));
        if (mask != nullptr) {
            copy_out(erased, mask);
        }
    });
}

th_status th_sharded_assign(th_sharded* map, void const* keys, int64_t rows,
                            void const* const* values, uint8_t* mask) {
    return guarded([&] {
        ShardedHashMap& table = open(map);
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        Tensor const there = table.assign(batch, columns_of(table.value_elements(), values, rows));
        if (mask != nullptr) {
            copy_out(there, mask);
        }
    });
}

th_status th_sharded_update(th_sharded* map, void const* keys, int64_t rows, void const* gradients,
                            th_optimizer const* optimizer, th_missing missing,
                            th_duplicates duplicates, uint8_t* mask) {
    return guarded([&] {
        update_rows(open(map), keys, rows, gradients, optimizer, missing, duplicates, mask);
    });
}

th_status th_sharded_get(th_sharded const* map, void const* keys, int64_t rows, int32_t column,
                         void const* missing, int32_t per_row, void* values, uint8_t* mask) {
    return guarded(
        [&] { get_column(open(map), keys, rows, column, missing, per_row, values, mask); });
}

th_status th_sharded_replace(th_sharded* map, void const* keys, int64_t rows,
                             void const* const* values) {
    return guarded([&] {
        ShardedHashMap& table = open(map);
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        table.replace(batch, columns_of(table.value_elements(), values, rows));
    });
}

th_status th_sharded_export(th_sharded const* map, int64_t begin, int64_t end, int64_t limit,
                            th_make_sharded_room make_room, void* context, int64_t* next) {
    return guarded([&] {
        ShardedHashMap const& table = open(map);
        require(reinterpret_cast<void const*>(make_room), "make_room");
        require(next, "next");
        *next = table.export_from(begin, end, limit, [&](std::int64_t rows) {
            return call_make_room<ShardedRoom, th_sharded_room>(make_room, context, rows,
                                                                table.value_elements().size());
        });
    });
}

th_status th_sharded_save(th_sharded const* map, char const* file_name) {
    return guarded([&] {
        ShardedHashMap const& table = open(map);
        require(file_name, "file_name");
        table.save(file_name);
    });
}

th_status th_sharded_load(char const* file_name, char const* const* devices, int32_t device_count,
                          th_policy policy, th_sharded** map) {
    return guarded([&] {
        require(file_name, "file_name");
        require(map, "map");
        std::optional<ShardPolicy> rule;
        if (policy.name != nullptr || policy.route != nullptr) {
            rule = to_policy(policy);
        }
        *map = new th_sharded{
            ShardedHashMap::load(file_name, to_devices(devices, device_count), std::move(rule))};
    });
}

}  // extern "C"
