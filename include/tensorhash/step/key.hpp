// How a row of a key array becomes a word or a hash, and when two keys are equal.
#pragma once

#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

/// Format of a key. `float_bytes` is 4 or 8 for float keys, which are compared in canonical form;
/// else 0.
struct KeyFormat {
    std::uint32_t bytes;
    std::uint32_t float_bytes;
};

/// `count` bytes (1 to 8) as a word, zero-extended.
TH_STEP std::uint64_t load_bytes(unsigned char const* p, std::uint32_t count) {
    std::uint64_t word = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        word |= static_cast<std::uint64_t>(p[i]) << (8 * i);
    }
    return word;
}

/// Device code loads byte by byte unless it knows that `p` is aligned to `Align`. The back end
/// copies keys that are not. Host code needs no alignment and must not assume any.
template <std::size_t Align>
TH_STEP void const* aligned(unsigned char const* p) {
    if constexpr (kDeviceSteps) {
        assert(reinterpret_cast<std::uintptr_t>(p) % Align == 0);
        return __builtin_assume_aligned(p, Align);
    } else {
        return p;
    }
}

template <std::size_t Align = 1>
TH_STEP std::uint64_t load_word(unsigned char const* p) {
    std::uint64_t word;
    __builtin_memcpy(&word, aligned<Align>(p), 8);
    return word;
}

template <std::size_t Align = 1>
TH_STEP std::uint32_t load_half(unsigned char const* p) {
    std::uint32_t word;
    __builtin_memcpy(&word, aligned<Align>(p), 4);
    return word;
}

/// -0 becomes +0 and every NaN one NaN, so that bit equality is key equality.
TH_STEP std::uint32_t canonical_float(std::uint32_t bits) {
    std::uint32_t const magnitude = bits & 0x7fffffffu;
    if (magnitude == 0) {
        return 0;
    }
    return magnitude > 0x7f800000u ? 0x7fc00000u : bits;
}

TH_STEP std::uint64_t canonical_double(std::uint64_t bits) {
    std::uint64_t const magnitude = bits & 0x7fffffffffffffffull;
    if (magnitude == 0) {
        return 0;
    }
    return magnitude > 0x7ff0000000000000ull ? 0x7ff8000000000000ull : bits;
}

/// Eight bytes of a float key in canonical form: one double or two floats.
TH_STEP std::uint64_t canonical_word(std::uint64_t word, std::uint32_t float_bytes) {
    if (float_bytes == 8) {
        return canonical_double(word);
    }
    std::uint64_t const low = canonical_float(static_cast<std::uint32_t>(word));
    std::uint64_t const high = canonical_float(static_cast<std::uint32_t>(word >> 32));
    return (high << 32) | low;
}

// Readers: one row of a batch or of the key buffer, for the key widths that matter. Narrow readers
// return the key as a word. Wide readers provide a hash and an equality, and tell whether a row of
// the key buffer can cross a cache line. `kAlign` is the alignment that device code needs of a
// batch and of the key buffer.

struct Narrow8 {
    static constexpr bool kNarrow = true;
    static constexpr std::size_t kAlign = 8;
    TH_STEP explicit Narrow8(KeyFormat) {}
    TH_STEP std::uint64_t word(unsigned char const* keys, std::size_t row) const {
        return load_word<kAlign>(keys + row * 8);
    }
};

struct Narrow4 {
    static constexpr bool kNarrow = true;
    static constexpr std::size_t kAlign = 4;
    TH_STEP explicit Narrow4(KeyFormat) {}
    TH_STEP std::uint64_t word(unsigned char const* keys, std::size_t row) const {
        return load_half<kAlign>(keys + row * 4);
    }
};

/// Widths 1, 2, 3, 5, 6, 7, and all float keys of up to eight bytes.
struct NarrowAny {
    static constexpr bool kNarrow = true;
    static constexpr std::size_t kAlign = 1;
    KeyFormat format;
    TH_STEP explicit NarrowAny(KeyFormat f) : format(f) {}
    TH_STEP std::uint64_t word(unsigned char const* keys, std::size_t row) const {
        std::uint64_t const raw = load_bytes(keys + row * format.bytes, format.bytes);
        return format.float_bytes == 0 ? raw : canonical_word(raw, format.float_bytes);
    }
};

struct Wide12 {
    static constexpr bool kNarrow = false;
    static constexpr std::size_t kAlign = 4;
    static constexpr bool kCrossesCacheLines = true;
    static constexpr std::size_t kBytes = 12;
    TH_STEP explicit Wide12(KeyFormat) {}
    TH_STEP std::size_t bytes() const { return kBytes; }
    TH_STEP std::uint64_t hash(unsigned char const* key, HashSecret const& secret) const {
        return end_with(fold_in(secret.start, load_word<kAlign>(key), secret),
                        load_half<kAlign>(key + 8), secret);
    }
    TH_STEP bool equal(unsigned char const* a, unsigned char const* b) const {
        return ((load_word<kAlign>(a) ^ load_word<kAlign>(b)) |
                (load_half<kAlign>(a + 8) ^ load_half<kAlign>(b + 8))) == 0;
    }
};

struct Wide16 {
    static constexpr bool kNarrow = false;
    static constexpr std::size_t kAlign = 8;
    static constexpr bool kCrossesCacheLines = false;
    static constexpr std::size_t kBytes = 16;
    TH_STEP explicit Wide16(KeyFormat) {}
    TH_STEP std::size_t bytes() const { return kBytes; }
    TH_STEP std::uint64_t hash(unsigned char const* key, HashSecret const& secret) const {
        return end_with(fold_in(secret.start, load_word<kAlign>(key), secret),
                        load_word<kAlign>(key + 8), secret);
    }
    TH_STEP bool equal(unsigned char const* a, unsigned char const* b) const {
        return ((load_word<kAlign>(a) ^ load_word<kAlign>(b)) |
                (load_word<kAlign>(a + 8) ^ load_word<kAlign>(b + 8))) == 0;
    }
};

/// All other widths above eight bytes, and all float keys wider than eight bytes.
struct WideAny {
    static constexpr bool kNarrow = false;
    static constexpr std::size_t kAlign = 1;
    static constexpr bool kCrossesCacheLines = true;
    KeyFormat format;
    TH_STEP explicit WideAny(KeyFormat f) : format(f) {}
    TH_STEP std::size_t bytes() const { return format.bytes; }

    /// The word at `offset`: zero-extended at the end of the key, canonical for float keys.
    TH_STEP std::uint64_t word_at(unsigned char const* key, std::uint32_t offset) const {
        std::uint32_t const left = format.bytes - offset;
        std::uint64_t const raw =
            left >= 8 ? load_word<kAlign>(key + offset) : load_bytes(key + offset, left);
        return format.float_bytes == 0 ? raw : canonical_word(raw, format.float_bytes);
    }
    TH_STEP std::uint64_t hash(unsigned char const* key, HashSecret const& secret) const {
        std::uint64_t h = secret.start;
        std::uint32_t offset = 0;
        for (; offset + 8 < format.bytes; offset += 8) {
            h = fold_in(h, word_at(key, offset), secret);
        }
        return end_with(h, word_at(key, offset), secret);
    }
    TH_STEP bool equal(unsigned char const* a, unsigned char const* b) const {
        for (std::uint32_t offset = 0; offset < format.bytes; offset += 8) {
            if (word_at(a, offset) != word_at(b, offset)) {
                return false;
            }
        }
        return true;
    }
};

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
