// Shard policies: rules that assign keys to shards. By hash (the default), by mod, or custom.
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

/// A named rule. `route` gets contiguous keys [N, *element_shape] and writes the shard of each row,
/// 0 to shards - 1. Equal keys must always get the same shard. Float keys arrive in canonical form:
/// +0 for -0, and one bit pattern for every NaN.
struct ShardPolicy {
    using Route =
        std::function<void(Tensor const& keys, int shards, std::span<std::int32_t> shard)>;

    std::string name;
    Route route;
};

/// "hash": a hash of the whole key, independent of the tables' hash. Spreads any keys evenly.
TH_API ShardPolicy hash_policy();
/// "mod": key mod shards, never negative. For keys of one integer.
TH_API ShardPolicy mod_policy();
/// "hash" or "mod". Throws ValueError otherwise.
TH_API ShardPolicy policy_from_name(std::string_view name);

/// The shard that hash_policy() gives to one key. `float_bytes` is 4 or 8 for float keys, else 0.
TH_API std::int32_t hash_shard(void const* key, std::size_t bytes, std::size_t float_bytes,
                               int shards) noexcept;

/// Calls body(begin, end) over [0, rows) on the library's threads.
TH_API void for_row_ranges(std::size_t rows,
                           std::function<void(std::size_t begin, std::size_t end)> const& body);

/// mod_policy() for the typed table: policy(shards, key).
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

/// hash_policy() for the typed table, its default.
template <class Key>
struct HashPolicy {
    int operator()(int shards, Key const& key) const {
        return hash_shard(&key, sizeof(Key), std::is_floating_point_v<Key> ? sizeof(Key) : 0,
                          shards);
    }
};

/// Wraps a function object policy(shards, key) -> shard. Several threads call it at once.
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
