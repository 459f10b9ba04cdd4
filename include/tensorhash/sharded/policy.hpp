// Which shard a key belongs to: the mixed hash that is the default, exact mod, or a caller's own rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>

#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// A rule by name. `route` gets contiguous keys [N, *element_shape] and fills in each row's shard, 0 .. shards - 1. It must
/// give equal keys the same shard, always. Float keys come canonical: no -0, one NaN.
struct ShardPolicy {
    using Route =
        std::function<void(Tensor const& keys, int shards, std::span<std::int32_t> shard)>;

    std::string name;
    Route route;
};

/// A hash of the whole key, independent of the tables' own: any keys spread evenly. "hash".
TH_API ShardPolicy hash_policy();
/// key - shards * floor(key / shards) of keys that are one integer; negative keys too. "mod".
TH_API ShardPolicy mod_policy();
/// By name; throws ValueError that lists the names.
TH_API ShardPolicy policy_from_name(std::string_view name);

/// The shard that hash_policy() gives to a key of so many bytes; float_bytes is 4 or 8 for float keys, else 0.
TH_API std::int32_t hash_shard(void const* key, std::size_t bytes, std::size_t float_bytes,
                               int shards) noexcept;

/// Calls body(begin, end) over [0, rows) on the library's threads.
TH_API void for_row_ranges(std::size_t rows,
                           std::function<void(std::size_t begin, std::size_t end)> const& body);

/// Exact mod for the typed table: policy(shards, key), never negative.
template <class Key>
struct ModPolicy {
    static_assert(std::is_integral_v<Key>, "ModPolicy is for keys that are integers");
    int operator()(int shards, Key key) const {
        if constexpr (std::is_signed_v<Key>) {
            std::int64_t const rest = std::int64_t{key} % shards;
            return static_cast<int>(rest < 0 ? rest + shards : rest);
        } else {
            return static_cast<int>(std::uint64_t{key} % static_cast<std::uint64_t>(shards));
        }
    }
};

/// The default of the typed table: what hash_policy() gives.
template <class Key>
struct HashPolicy {
    int operator()(int shards, Key const& key) const {
        return hash_shard(&key, sizeof(Key), std::is_floating_point_v<Key> ? sizeof(Key) : 0,
                          shards);
    }
};

/// A function object policy(shards, key) -> shard as a rule. It is called from several threads at once.
template <class Key, class Policy>
ShardPolicy policy_of(std::string name, Policy policy) {
    return {std::move(name),
            [policy](Tensor const& keys, int shards, std::span<std::int32_t> shard) {
                auto const* const key = static_cast<Key const*>(keys.data());
                for_row_ranges(shard.size(), [&](std::size_t begin, std::size_t end) {
                    for (std::size_t row = begin; row < end; ++row) {
                        shard[row] = static_cast<std::int32_t>(policy(shards, key[row]));
                    }
                });
            }};
}

}  // namespace tensorhash
