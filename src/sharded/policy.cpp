// The built-in policies "hash" and "mod".
#include "tensorhash/sharded/policy.hpp"

#include "cpu/shard_hash.hpp"
#include "runtime/parallel.hpp"
#include "sharded/route.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {
namespace {

void route_by_hash(Tensor const& keys, int shards, std::span<std::int32_t> shard) {
    Shape const& shape = keys.shape();
    Element const element{keys.dtype(), Shape(shape.begin() + 1, shape.end())};
    runtime::for_ranges(shard.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        cpu::hash_shards(static_cast<unsigned char const*>(keys.data()), element, shards, begin,
                         end, shard.data());
    });
}

template <class Key>
ShardPolicy::Route mod_of() {
    return policy_of<Key>("mod", ModPolicy<Key>{}).route;
}

void route_by_mod(Tensor const& keys, int shards, std::span<std::int32_t> shard) {
    auto const route = [&]() -> ShardPolicy::Route {
        switch (keys.dtype()) {
            case Dtype::Int8:
                return mod_of<std::int8_t>();
            case Dtype::Int16:
                return mod_of<std::int16_t>();
            case Dtype::Int32:
                return mod_of<std::int32_t>();
            case Dtype::Int64:
                return mod_of<std::int64_t>();
            case Dtype::UInt8:
                return mod_of<std::uint8_t>();
            case Dtype::UInt16:
                return mod_of<std::uint16_t>();
            case Dtype::UInt32:
                return mod_of<std::uint32_t>();
            case Dtype::UInt64:
                return mod_of<std::uint64_t>();
            default:
                throw TypeError("policy: \"mod\" is for integer keys, got " +
                                std::string(name(keys.dtype())) + "; use \"hash\"");
        }
    }();
    if (keys.size() != static_cast<std::int64_t>(shard.size())) {
        throw ValueError("policy: \"mod\" is for keys of one element, got " +
                         to_string(keys.shape()) + "; use \"hash\"");
    }
    route(keys, shards, shard);
}

}  // namespace

std::int32_t hash_shard(void const* key, std::size_t bytes, std::size_t float_bytes,
                        int shards) noexcept {
    return cpu::shard_of_key(key, bytes, float_bytes, shards);
}

backend::ShardRule sharded::rule_of(ShardPolicy const& policy) noexcept {
    auto* const* const route = policy.route.target<decltype(&route_by_hash)>();
    if (route == nullptr) {
        return backend::ShardRule::Given;
    }
    return *route == &route_by_hash  ? backend::ShardRule::Hash
           : *route == &route_by_mod ? backend::ShardRule::Mod
                                     : backend::ShardRule::Given;
}

void for_row_ranges(std::size_t rows,
                    std::function<void(std::size_t begin, std::size_t end)> const& body) {
    runtime::for_ranges(rows, runtime::kGrain, body);
}

ShardPolicy hash_policy() { return {"hash", route_by_hash}; }
ShardPolicy mod_policy() { return {"mod", route_by_mod}; }

ShardPolicy policy_from_name(std::string_view name) {
    if (name == "hash") {
        return hash_policy();
    }
    if (name == "mod") {
        return mod_policy();
    }
    throw ValueError("policy: expected \"hash\", \"mod\" or a function, got \"" +
                     std::string(name) + "\"");
}

}  // namespace tensorhash
