// The packed key and its hashes: golden numbers, and distinct coordinates have distinct keys.
#include "tensorhash/coords/packed_key.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace {

using namespace tensorhash::coords;

struct Golden {
    std::int32_t b, x, y, z;
    std::uint64_t key;
    std::uint32_t hash, stride;
};

constexpr Golden golden[] = {
    {0, 0, 0, 0, 0x8000000000000000ull, 0x79CEA98Au, 0x7DAAB199u},
    {0, 1, 2, 3, 0x8000001000080003ull, 0x58D9CDF5u, 0xBAED18B5u},
    {1, -1, -1, -1, 0x807FFFFFFFFFFFFFull, 0x84249739u, 0xF657A3B5u},
    {511, -1, -1, -1, 0xFFFFFFFFFFFFFFFFull, 0xF2CBBD7Bu, 0x84AA9CCDu},
    {511, 131071, -131072, 0, 0xFFDFFFF800000000ull, 0x380DFD9Bu, 0x8615A96Fu},
    {0, -131072, 131071, 0, 0x80200007FFFC0000ull, 0x953C3AD3u, 0xE2FA6261u},
    {7, 100, -200, 300, 0x81C0064FFCE0012Cull, 0x0E6B547Au, 0x40168FABu},
};

TEST(PackedKey, KeysAndHashesAreTheGoldenOnes) {
    for (Golden const& g : golden) {
        std::uint64_t const key = pack_key_4d(g.b, g.x, g.y, g.z);
        EXPECT_EQ(key, g.key);
        EXPECT_EQ(packed_or_empty(g.b, g.x, g.y, g.z), g.key);
        EXPECT_EQ(Splitmix64Hash::hash(key, 0xffffffffu), g.hash);
        EXPECT_EQ(Splitmix64Hash::double_hash_stride(key, 0xffffffffu), g.stride);
        EXPECT_EQ(Splitmix64Hash::hash(key, 0x3fffu), g.hash & 0x3fffu);
        std::int32_t b = -7, x = -7, y = -7, z = -7;
        unpack_key_4d(key, b, x, y, z);
        EXPECT_EQ(b, g.b);
        EXPECT_EQ(x, g.x);
        EXPECT_EQ(y, g.y);
        EXPECT_EQ(z, g.z);
    }
}

TEST(PackedKey, ConstantsMatchTheLayout) {
    EXPECT_EQ(kBatchMax, 511);
    EXPECT_EQ(kCoordMin, -131072);
    EXPECT_EQ(kCoordMax, 131071);
    EXPECT_EQ(kValidBit, 1ull << 63);
}

TEST(PackedKey, StridesAreOdd) {
    for (std::uint64_t key = kValidBit; key < kValidBit + 1000; ++key) {
        for (std::uint32_t const mask : {0u, 1u, 15u, 0xffffu}) {
            EXPECT_EQ(Splitmix64Hash::double_hash_stride(key, mask) % 2, 1u);
        }
    }
}

TEST(PackedKey, EveryCoordinateJustOutOfRangeHasNoKey) {
    std::int64_t const far[] = {
        std::numeric_limits<std::int64_t>::min(), -(1ll << 32), -131073, 131072, 1ll << 32,
        std::numeric_limits<std::int64_t>::max()};
    std::int64_t const batches[] = {std::numeric_limits<std::int64_t>::min(), -1, 512, 1ll << 32,
                                    std::numeric_limits<std::int64_t>::max()};
    for (std::int64_t const value : far) {
        EXPECT_EQ(packed_or_empty<std::int64_t>(0, value, 0, 0), 0u) << value;
        EXPECT_EQ(packed_or_empty<std::int64_t>(0, 0, value, 0), 0u) << value;
        EXPECT_EQ(packed_or_empty<std::int64_t>(0, 0, 0, value), 0u) << value;
    }
    for (std::int64_t const value : batches) {
        EXPECT_EQ(packed_or_empty<std::int64_t>(value, 0, 0, 0), 0u) << value;
    }
    std::int32_t const low = std::numeric_limits<std::int32_t>::min();
    std::int32_t const high = std::numeric_limits<std::int32_t>::max();
    for (std::int32_t const value : {low, -131073, 131072, high}) {
        EXPECT_EQ(packed_or_empty(0, value, 0, 0), 0u) << value;
        EXPECT_EQ(packed_or_empty(0, 0, value, 0), 0u) << value;
        EXPECT_EQ(packed_or_empty(0, 0, 0, value), 0u) << value;
    }
    EXPECT_EQ(packed_or_empty(-1, 0, 0, 0), 0u);
    EXPECT_EQ(packed_or_empty(512, 0, 0, 0), 0u);
}

struct Shifted {
    std::int32_t coord, scale, offset;
};

/// The key of (0, x, 0, 0) with x = coord * scale + offset.
std::uint64_t shifted(Shifted const& s) {
    std::int32_t const row[] = {0, s.coord}, scale[] = {1, s.scale}, offset[] = {0, s.offset};
    return tensorhash::step::shifted_or_empty(row, 2, scale, offset);
}

TEST(PackedKey, AShiftedCoordinateInRangeHasTheKeyOfTheSum) {
    std::int32_t const low = std::numeric_limits<std::int32_t>::min();
    std::int32_t const high = std::numeric_limits<std::int32_t>::max();
    EXPECT_EQ(shifted({100, 1, -300}), pack_key_4d(0, -200, 0, 0));
    EXPECT_EQ(shifted({-100, 3, 1}), pack_key_4d(0, -299, 0, 0));
    EXPECT_EQ(shifted({high, 1, low}), pack_key_4d(0, -1, 0, 0));
    EXPECT_EQ(shifted({low, 1, high}), pack_key_4d(0, -1, 0, 0));
    EXPECT_EQ(shifted({1 << 16, 1 << 15, low}), pack_key_4d(0, 0, 0, 0));
    std::int32_t const row[] = {1, 2, 3, 4}, scale[] = {2, 3, -4, 1}, offset[] = {5, 0, -1, -4};
    EXPECT_EQ(tensorhash::step::shifted_or_empty(row, 4, scale, offset), pack_key_4d(7, 6, -13, 0));
}

TEST(PackedKey, ASumThatWouldWrapAroundIn32BitsHasNoKey) {
    std::int32_t const low = std::numeric_limits<std::int32_t>::min();
    std::int32_t const high = std::numeric_limits<std::int32_t>::max();
    EXPECT_EQ(shifted({high, 1, high}), 0u);        // wrapped: -2
    EXPECT_EQ(shifted({low, 1, low}), 0u);          // wrapped: 0
    EXPECT_EQ(shifted({1 << 16, 1 << 16, 0}), 0u);  // wrapped: 0
    EXPECT_EQ(shifted({low, low, 7}), 0u);          // wrapped: 7
    EXPECT_EQ(shifted({high, high, high}), 0u);
    EXPECT_EQ(shifted({131071, 1, 1}), 0u);
    EXPECT_EQ(shifted({-131072, 1, -1}), 0u);
}

}  // namespace
