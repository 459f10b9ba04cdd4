// The hash of hash_policy(), with compile-time widths for the most common keys.
#include "cpu/shard_hash.hpp"

#include "cpu/route_engine.hpp"
#include "tensorhash/step/shard.hpp"

namespace tensorhash::cpu {
namespace {

std::size_t float_bytes_of(Dtype dtype) noexcept {
    return dtype == Dtype::Float32 ? 4 : dtype == Dtype::Float64 ? 8 : 0;
}

/// Calls body(reader, width) with the reader for the key's width.
template <class Body>
auto with_reader(std::size_t bytes, std::size_t float_bytes, Body&& body) {
    step::KeyFormat const format{static_cast<std::uint32_t>(bytes),
                                 static_cast<std::uint32_t>(float_bytes)};
    if (float_bytes == 0) {
        switch (bytes) {
            case 8:
                return body(step::Narrow8(format), format.bytes);
            case 12:
                return body(step::Wide12(format), format.bytes);
            case 16:
                return body(step::Wide16(format), format.bytes);
            default:
                break;
        }
    }
    return body(step::WideAny(format), format.bytes);
}

}  // namespace

std::int32_t shard_of_key(void const* key, std::size_t bytes, std::size_t float_bytes,
                          int shards) noexcept {
    return with_reader(bytes, float_bytes, [&](auto const& reader, std::uint32_t width) {
        auto const* const row = static_cast<unsigned char const*>(key);
        std::uint64_t const hash = step::shard_hash(reader, width, row, 0);
        return static_cast<std::int32_t>(
            step::shard_of_hash(hash, static_cast<std::uint32_t>(shards)));
    });
}

void hash_shards(unsigned char const* keys, Element const& element, int shards, std::size_t begin,
                 std::size_t end, std::int32_t* shard) noexcept {
    auto const count = static_cast<std::uint32_t>(shards);
    std::size_t const float_bytes = float_bytes_of(element.dtype);
    if (element.bytes() == 8 && float_bytes == 0) {
        route_loops().hash_words(keys, count, begin, end, shard);
        return;
    }
    with_reader(element.bytes(), float_bytes, [&](auto const& reader, std::uint32_t width) {
        for (std::size_t row = begin; row < end; ++row) {
            std::uint64_t const hash = step::shard_hash(reader, width, keys, row);
            shard[row] = static_cast<std::int32_t>(step::shard_of_hash(hash, count));
        }
    });
}

}  // namespace tensorhash::cpu
