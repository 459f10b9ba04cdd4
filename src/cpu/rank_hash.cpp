// The hash is not that of the tables: else the keys of one rank would fill only a part of its
// table.
#include "cpu/rank_hash.hpp"

#include "tensorhash/step/key.hpp"

namespace tensorhash::cpu {
namespace {

/// MurmurHash3's 64-bit finalizer of one more word.
std::uint64_t add_word(std::uint64_t hash, std::uint64_t word) noexcept {
    hash ^= word;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdull;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ull;
    return hash ^ hash >> 33;
}

constexpr std::uint64_t kStart = 0x2545f4914f6cdd1dull;

std::uint16_t rank_of(std::uint64_t hash, std::uint64_t ranks) noexcept {
    return static_cast<std::uint16_t>((hash >> 32) * ranks >> 32);
}

}  // namespace

void hash_ranks(unsigned char const* keys, Element const& element, std::uint64_t ranks,
                std::size_t begin, std::size_t end, std::uint16_t* rank) noexcept {
    auto const width = static_cast<std::uint32_t>(element.bytes());
    bool const is_float = element.dtype == Dtype::Float32 || element.dtype == Dtype::Float64;
    if (width == 8 && !is_float) {
        for (std::size_t row = begin; row < end; ++row) {
            rank[row] = rank_of(add_word(kStart, step::load_word(keys + row * 8)), ranks);
        }
        return;
    }
    std::uint32_t const float_bytes =
        is_float ? static_cast<std::uint32_t>(byte_size(element.dtype)) : 0;
    step::WideAny const reader({width, float_bytes});
    for (std::size_t row = begin; row < end; ++row) {
        std::uint64_t hash = kStart;
        for (std::uint32_t at = 0; at < width; at += 8) {
            hash = add_word(hash, reader.word_at(keys + row * width, at));
        }
        rank[row] = rank_of(hash, ranks);
    }
}

}  // namespace tensorhash::cpu
