// Wraps the C interface of the engine's sharded map: one table over one or more devices.
#ifndef TENSORHASH_TENSORFLOW_SHARDS_H_
#define TENSORHASH_TENSORFLOW_SHARDS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "map.h"

namespace tensorhash_tf {

/// Where a table lives: its devices, one shard each, and the policy that chooses a key's shard.
struct Placement {
    std::vector<std::string> devices = {"cpu:0"};
    std::string policy = "hash";

    bool operator==(Placement const& other) const {
        return devices == other.devices && policy == other.policy;
    }
    std::string describe() const {
        std::string text;
        for (std::string const& device : devices) {
            absl::StrAppend(&text, text.empty() ? "" : ", ", device);
        }
        return absl::StrCat(text, " by \"", policy, "\"");
    }
};

/// Owns a sharded map with one value column. Empty until create() succeeds.
class Shards {
public:
    Shards() = default;
    Shards(Shards const&) = delete;
    Shards& operator=(Shards const&) = delete;
    ~Shards() { th_sharded_destroy(map_); }

    absl::Status create(ElementSpec const& key, ElementSpec const& value, std::int64_t capacity,
                        Placement const& placement) {
        TF_RETURN_IF_ERROR(check_version());
        EngineElement const key_element(key);
        EngineElement const value_element(value);
        th_element const column = value_element.get();
        std::vector<char const*> devices;
        for (std::string const& device : placement.devices) {
            devices.push_back(device.c_str());
        }
        return to_status(th_sharded_create(capacity, key_element.get(), &column, 1, devices.data(),
                                           static_cast<std::int32_t>(devices.size()),
                                           {placement.policy.c_str(), nullptr, nullptr}, &map_));
    }

    /// The size of one shard, or of all shards for -1.
    absl::Status size(std::int32_t shard, std::int64_t* size) const {
        return to_status(th_sharded_size(map_, shard, size));
    }
    std::int64_t memory() const {
        std::int64_t bytes = 0;
        th_sharded_memory(map_, &bytes);
        return bytes;
    }

    absl::Status accumulate(void const* keys, std::int64_t rows, void const* values,
                            th_reduce reduce) {
        return to_status(
            th_sharded_accumulate(map_, keys, rows, &values, &reduce, nullptr, nullptr));
    }
    absl::Status assign(void const* keys, std::int64_t rows, void const* values, bool* exists) {
        return to_status(
            th_sharded_assign(map_, keys, rows, &values, reinterpret_cast<std::uint8_t*>(exists)));
    }
    absl::Status update(void const* keys, std::int64_t rows, void const* gradients,
                        th_optimizer const& optimizer, th_duplicates duplicates, bool* exists) {
        return to_status(th_sharded_update(map_, keys, rows, gradients, &optimizer, TH_SKIP,
                                           duplicates, reinterpret_cast<std::uint8_t*>(exists)));
    }
    absl::Status get(void const* keys, std::int64_t rows, Missing missing, void* values,
                     bool* exists) const {
        return to_status(th_sharded_get(map_, keys, rows, 0, missing.data, missing.per_row, values,
                                        reinterpret_cast<std::uint8_t*>(exists)));
    }
    absl::Status find(void const* keys, std::int64_t rows, std::int64_t* indices) const {
        return to_status(th_sharded_find(map_, keys, rows, indices, nullptr));
    }
    absl::Status shard_of(void const* keys, std::int64_t rows, std::int32_t* shard) const {
        return to_status(th_sharded_shard_of(map_, keys, rows, shard));
    }
    absl::Status erase(void const* keys, std::int64_t rows) {
        return to_status(th_sharded_erase(map_, keys, rows, nullptr));
    }
    absl::Status replace(void const* keys, std::int64_t rows, void const* values) {
        return to_status(th_sharded_replace(map_, keys, rows, &values));
    }
    absl::Status clear() { return to_status(th_sharded_clear(map_)); }
    absl::Status reserve(std::int64_t capacity) {
        return to_status(th_sharded_reserve(map_, capacity));
    }

    /// Calls make_room(rows, room) once, under the map's lock, and returns its error if it fails.
    template <class MakeRoom>
    absl::Status export_from(std::int64_t begin, std::int64_t end, std::int64_t limit,
                             std::int64_t* next, MakeRoom&& make_room) const {
        RoomCallback<MakeRoom> callback{make_room, absl::OkStatus()};
        th_status const code = th_sharded_export(
            map_, begin, end, limit, &RoomCallback<MakeRoom>::template call<th_sharded_room>,
            &callback, next);
        return callback.status.ok() ? to_status(code) : callback.status;
    }

private:
    th_sharded* map_ = nullptr;
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_SHARDS_H_
