// The hash of hash_policy(), with compile-time widths for the most common keys.
#include "cpu/shard_hash.hpp"

#include "tensorhash/step/key.hpp"

namespace tensorhash::cpu {
namespace {

// Any odd constant would do.
constexpr std::uint64_t kShardSeed = 0xa0761d6478bd642full;

std::size_t float_bytes_of(Dtype dtype) noexcept {
    return dtype == Dtype::Float32 ? 4 : dtype == Dtype::Float64 ? 8 : 0;
}

std::int32_t shard_of_hash(std::uint64_t hash, int shards) noexcept {
    std::uint64_t const mixed = step::mix(hash ^ kShardSeed);
    return static_cast<std::int32_t>((mixed >> 32) * static_cast<std::uint64_t>(shards) >> 32);
}

// The rule that assigns a key to a shard: start with the key's width, then mix in its words one by
// one. Files name this rule, so it must never change, even if tables change their hash.

/// Keys without floats, with a compile-time width.
template <std::size_t Bytes>
struct Raw {
    static constexpr std::size_t bytes() { return Bytes; }
    static std::uint64_t hash(unsigned char const* key) {
        constexpr std::size_t kWhole = Bytes / 8 * 8;
        std::uint64_t hash = Bytes;
        for (std::size_t at = 0; at < kWhole; at += 8) {
            hash = step::mix_in(hash, step::load_word(key + at));
        }
        if constexpr (kWhole < Bytes) {
            hash = step::mix_in(hash, step::load_bytes(key + kWhole, Bytes - kWhole));
        }
        return hash;
    }
};

/// Keys of any width, and float keys. A float key may end in half a word; the missing half is 0,
/// which is canonical.
struct Any {
    step::WideAny reader;
    std::size_t bytes() const { return reader.bytes(); }
    std::uint64_t hash(unsigned char const* key) const {
        std::uint64_t hash = reader.bytes();
        for (std::uint32_t at = 0; at < reader.bytes(); at += 8) {
            hash = step::mix_in(hash, reader.word_at(key, at));
        }
        return hash;
    }
};

/// Calls body(reader) with the reader for the key's width.
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
    step::KeyFormat const format{static_cast<std::uint32_t>(bytes),
                                 static_cast<std::uint32_t>(float_bytes)};
    return body(Any{step::WideAny(format)});
}

}  // namespace

std::int32_t shard_of_key(void const* key, std::size_t bytes, std::size_t float_bytes,
                          int shards) noexcept {
    return with_reader(bytes, float_bytes, [&](auto const& reader) {
        return shard_of_hash(reader.hash(static_cast<unsigned char const*>(key)), shards);
    });
}

void hash_shards(unsigned char const* keys, Element const& element, int shards, std::size_t begin,
                 std::size_t end, std::int32_t* shard) noexcept {
    with_reader(element.bytes(), float_bytes_of(element.dtype), [&](auto const& reader) {
        for (std::size_t row = begin; row < end; ++row) {
            shard[row] = shard_of_hash(reader.hash(keys + row * reader.bytes()), shards);
        }
    });
}

}  // namespace tensorhash::cpu
