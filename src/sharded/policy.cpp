// The rules of our own, and how a batch is asked for its shards.
#include "tensorhash/sharded/policy.hpp"

#include <cstring>

#include "runtime/parallel.hpp"
#include "sharded/route.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/kernel/key.hpp"

namespace tensorhash {
namespace {

// Any odd constant would do: it only has to differ from what the tables hash with.
constexpr std::uint64_t kShardSeed = 0xa0761d6478bd642full;

std::size_t float_bytes_of(Dtype dtype) noexcept {
    return dtype == Dtype::Float32 ? 4 : dtype == Dtype::Float64 ? 8 : 0;
}

void route_by_hash(Tensor const& keys, int shards, std::span<std::int32_t> shard) {
    if (shard.empty()) {
        return;
    }
    auto const* const data = static_cast<unsigned char const*>(keys.data());
    std::size_t const bytes = keys.bytes() / shard.size();
    std::size_t const float_bytes = float_bytes_of(keys.dtype());
    runtime::for_ranges(shard.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            shard[row] = hash_shard(data + row * bytes, bytes, float_bytes, shards);
        }
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
    kernel::WideAny const reader(
        {static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(float_bytes)});
    // A short key of floats ends in half a word, whose missing half is 0: canonical already.
    std::uint64_t const hash =
        kernel::mix(reader.hash(static_cast<unsigned char const*>(key)) ^ kShardSeed);
    return static_cast<std::int32_t>((hash >> 32) * static_cast<std::uint64_t>(shards) >> 32);
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
