// The rules of our own, and how a batch is asked for its shards.
#include "tensorhash/sharded/policy.hpp"

#include <cstring>

#include "runtime/parallel.hpp"
#include "sharded/route.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/kernel/key.hpp"

namespace tensorhash {
namespace {

// Any odd constant would do.
constexpr std::uint64_t kShardSeed = 0xa0761d6478bd642full;

std::size_t float_bytes_of(Dtype dtype) noexcept {
    return dtype == Dtype::Float32 ? 4 : dtype == Dtype::Float64 ? 8 : 0;
}

std::int32_t shard_of_hash(std::uint64_t hash, int shards) noexcept {
    std::uint64_t const mixed = kernel::mix(hash ^ kShardSeed);
    return static_cast<std::int32_t>((mixed >> 32) * static_cast<std::uint64_t>(shards) >> 32);
}

// The rule that says whose a key is: its words mixed in, one after the other, beginning with its width. Files name this
// rule, so it never changes, whatever the tables hash with.

/// Keys of bytes, with the width known to the compiler.
template <std::size_t Bytes>
struct Raw {
    static constexpr std::size_t bytes() { return Bytes; }
    static std::uint64_t hash(unsigned char const* key) {
        constexpr std::size_t kWhole = Bytes / 8 * 8;
        std::uint64_t hash = Bytes;
        for (std::size_t at = 0; at < kWhole; at += 8) {
            hash = kernel::mix_in(hash, kernel::load_word(key + at));
        }
        if constexpr (kWhole < Bytes) {
            hash = kernel::mix_in(hash, kernel::load_bytes(key + kWhole, Bytes - kWhole));
        }
        return hash;
    }
};

/// Keys of any width, and floats. A short key of floats ends in half a word, whose missing half is 0: canonical already.
struct Any {
    kernel::WideAny reader;
    std::size_t bytes() const { return reader.bytes(); }
    std::uint64_t hash(unsigned char const* key) const {
        std::uint64_t hash = reader.bytes();
        for (std::uint32_t at = 0; at < reader.bytes(); at += 8) {
            hash = kernel::mix_in(hash, reader.word_at(key, at));
        }
        return hash;
    }
};

/// Calls body(reader) with the reader of the key's width.
template <class Body>
auto with_reader(std::size_t bytes, std::size_t float_bytes, Body&& body) {
    if (float_bytes == 0) {
        switch (bytes) {
            case 8:
                return body(Raw<8>{});
            case 12:
                return body(Raw<12>{});
            case 16:
                return body(Raw<16>{});
            default:
                break;
        }
    }
    kernel::KeyFormat const format{static_cast<std::uint32_t>(bytes),
                                   static_cast<std::uint32_t>(float_bytes)};
    return body(Any{kernel::WideAny(format)});
}

void route_by_hash(Tensor const& keys, int shards, std::span<std::int32_t> shard) {
    Shape const& shape = keys.shape();
    Element const element{keys.dtype(), Shape(shape.begin() + 1, shape.end())};
    runtime::for_ranges(shard.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        sharded::hash_shards(static_cast<unsigned char const*>(keys.data()), element, shards, begin,
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
    return with_reader(bytes, float_bytes, [&](auto const& reader) {
        return shard_of_hash(reader.hash(static_cast<unsigned char const*>(key)), shards);
    });
}

bool sharded::is_hash_policy(ShardPolicy const& policy) noexcept {
    auto* const* const route = policy.route.target<decltype(&route_by_hash)>();
    return route != nullptr && *route == &route_by_hash;
}

void sharded::hash_shards(unsigned char const* keys, Element const& element, int shards,
                          std::size_t begin, std::size_t end, std::int32_t* shard) noexcept {
    with_reader(element.bytes(), float_bytes_of(element.dtype), [&](auto const& reader) {
        for (std::size_t row = begin; row < end; ++row) {
            shard[row] = shard_of_hash(reader.hash(keys + row * reader.bytes()), shards);
        }
    });
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
