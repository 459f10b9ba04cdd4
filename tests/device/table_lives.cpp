// The bodies of a table, driven by Core, against the oracle: find, insert, erase, growth.
#include "device/lives.hpp"

namespace th_test {
namespace {

using tensorhash::device::Core;
using tensorhash::device::State;

template <std::uint32_t Lanes = 1>
struct Life {
    Element key;
    std::uint64_t seed;
    std::uint64_t most_rows = 300;
    TestQueue queue;
    Oracle oracle;
    Core<TestQueue, Lanes> core;
    Random random;

    Life(Element const& element, std::uint64_t life_seed, std::uint64_t capacity)
        : key(element), seed(life_seed), queue({.seed = life_seed}),
          oracle(static_cast<std::int64_t>(capacity), element, {}),
          core(queue, format_of(element), capacity, life_seed), random(life_seed) {}

    Rows batch() {
        return draw_keys(key, random, 1 + random.below(most_rows), most_rows * 2 / 3 + 3);
    }

    template <class Call>
    OracleLocated call(Rows const& keys, Call const& on_device) {
        OnDevice<unsigned char> const rows(queue, keys.bytes.data(), keys.bytes.size());
        OnDevice<std::uint32_t> const indices(queue, keys.count);
        OnDevice<unsigned char> const mask(queue, keys.count);
        on_device(rows.data(), static_cast<std::uint32_t>(keys.count),
                  tensorhash::device::Results{indices.data(), mask.data()});
        OracleLocated out;
        for (std::uint32_t const index : indices.read()) {
            out.indices.push_back(static_cast<std::int32_t>(index));
        }
        out.mask = mask.read();
        return out;
    }
    OracleLocated insert(Rows const& keys) {
        return call(keys, [&](auto... args) { core.insert(args...); });
    }
    OracleLocated find(Rows const& keys) {
        return call(keys, [&](auto... args) { core.find(args...); });
    }
    std::vector<std::uint8_t> erase(Rows const& keys) {
        OnDevice<unsigned char> const rows(queue, keys.bytes.data(), keys.bytes.size());
        OnDevice<unsigned char> const mask(queue, keys.count);
        core.erase(rows.data(), static_cast<std::uint32_t>(keys.count), mask.data());
        return mask.read();
    }

    void expect_same(OracleLocated const& got, OracleLocated const& wanted,
                     char const* verb) const {
        ASSERT_EQ(got.mask, wanted.mask) << verb << ", seed " << seed;
        ASSERT_EQ(got.indices, wanted.indices) << verb << ", seed " << seed;
    }
    void round() {
        Rows const keys = batch();
        expect_same(insert(keys), oracle.insert(keys, {}), "insert");
        Rows const gone = batch();
        ASSERT_EQ(erase(gone), oracle.erase(gone)) << "erase, seed " << seed;
        Rows const asked = batch();
        expect_same(find(asked), oracle.find(asked), "find");
        State const state = core.read_state();
        ASSERT_EQ(state.top - state.free, oracle.size()) << "seed " << seed;
        ASSERT_EQ(core.capacity(), static_cast<std::uint64_t>(oracle.capacity()));
        expect_live_entries();
    }
    /// The live bits and the key buffer hold the oracle's entries.
    void expect_live_entries() {
        auto const& buffers = core.buffers();
        std::vector<std::int32_t> live;
        std::string keys;
        for (std::uint64_t i = 0; i < buffers.capacity; ++i) {
            if ((buffers.live.data()[i / 32] >> (i % 32) & 1) != 0) {
                live.push_back(static_cast<std::int32_t>(i));
                keys.append(reinterpret_cast<char const*>(buffers.keys.data()) + i * key.bytes(),
                            key.bytes());
            }
        }
        ASSERT_EQ(live, oracle.active()) << "seed " << seed;
        ASSERT_EQ(keys, oracle.keys()) << "seed " << seed;
    }
};

class TableLives : public testing::TestWithParam<KeyKind> {};

TEST_P(TableLives, agree_with_the_oracle) {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        Life<> life(GetParam().element, seed, 64);
        for (int i = 0; i < 4 && !HasFatalFailure(); ++i) {
            life.round();
        }
    }
}

TEST_P(TableLives, agree_with_the_oracle_in_tiles_of_lanes) {
    for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
        Life<4> by_four(GetParam().element, seed, 64);
        Life<8> by_eight(GetParam().element, seed, 64);
        for (int i = 0; i < 2 && !HasFatalFailure(); ++i) {
            by_four.round();
            by_eight.round();
        }
    }
}

/// The keys that mix to the marks of empty and erased slots have no slot.
TEST(TableLives, keys_without_a_slot_are_ordinary) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
        Life<> life({Dtype::UInt64, {}}, seed, 16);
        auto const secret = tensorhash::step::secret_of(seed);
        auto const batch = [&] {
            Rows rows{8, 40, std::string(320, '\0')};
            for (std::size_t row = 0; row < rows.count; ++row) {
                std::uint64_t const key = tensorhash::step::unmix(life.random.below(4), secret);
                std::memcpy(rows.bytes.data() + row * 8, &key, 8);
            }
            return rows;
        };
        for (int i = 0; i < 4 && !HasFatalFailure(); ++i) {
            Rows const keys = batch();
            life.expect_same(life.insert(keys), life.oracle.insert(keys, {}), "insert");
            Rows const asked = batch();
            life.expect_same(life.find(asked), life.oracle.find(asked), "find");
            Rows gone = batch();
            gone = {8, 2, gone.bytes.substr(0, 16)};
            ASSERT_EQ(life.erase(gone), life.oracle.erase(gone)) << "seed " << seed;
        }
    }
}

/// Keys that share their home bucket and their overflow class.
TEST(TableLives, long_probes_agree_with_the_oracle) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
        Life<> life({Dtype::UInt64, {}}, seed, 200);
        auto const secret = tensorhash::step::secret_of(seed);
        auto const batch = [&](std::size_t count) {
            Rows rows{8, count, std::string(count * 8, '\0')};
            for (std::size_t row = 0; row < count; ++row) {
                // The hash is below 2^12 but not 0 or 1, and its low 6 bits are 5.
                std::uint64_t const hash = life.random.below(60) << 6 | 5;
                std::uint64_t const key = tensorhash::step::unmix(hash, secret);
                std::memcpy(rows.bytes.data() + row * 8, &key, 8);
            }
            return rows;
        };
        for (int i = 0; i < 4 && !HasFatalFailure(); ++i) {
            Rows const keys = batch(80);
            life.expect_same(life.insert(keys), life.oracle.insert(keys, {}), "insert");
            Rows const gone = batch(40);
            ASSERT_EQ(life.erase(gone), life.oracle.erase(gone)) << "seed " << seed;
            Rows const asked = batch(80);
            life.expect_same(life.find(asked), life.oracle.find(asked), "find");
        }
    }
}

TEST(TableLives, many_rows_of_few_keys_agree_with_the_oracle) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
        for (Element const& key : {Element{Dtype::Int64, {}}, Element{Dtype::Int32, {3}}}) {
            Life<> life(key, seed, 16);
            for (int i = 0; i < 3 && !HasFatalFailure(); ++i) {
                Rows const keys = draw_keys(key, life.random, 500, 3 + seed % 5);
                life.expect_same(life.insert(keys), life.oracle.insert(keys, {}), "insert");
                Rows const gone = draw_keys(key, life.random, 300, 3);
                ASSERT_EQ(life.erase(gone), life.oracle.erase(gone)) << "seed " << seed;
            }
        }
    }
}

/// Winners of later segments of the scan come after rows that lost in earlier ones.
TEST(TableLives, repeats_in_several_segments_agree_with_the_oracle) {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        for (Element const& key : {Element{Dtype::Int64, {}}, Element{Dtype::Int32, {3}}}) {
            Life<> life(key, seed, 16);
            for (int i = 0; i < 2 && !HasFatalFailure(); ++i) {
                Rows const keys = draw_keys(key, life.random, 700, 500);
                life.expect_same(life.insert(keys), life.oracle.insert(keys, {}), "insert");
                Rows const gone = draw_keys(key, life.random, 600, 500);
                ASSERT_EQ(life.erase(gone), life.oracle.erase(gone)) << "seed " << seed;
            }
        }
    }
}

std::vector<KeyKind> reader_kinds() {
    return {bytes_kind(8),
            bytes_kind(4),
            bytes_kind(6),
            bytes_kind(12),
            bytes_kind(16),
            bytes_kind(20),
            {"float32", {Dtype::Float32, {}}},
            {"three_doubles", {Dtype::Float64, {3}}}};
}

INSTANTIATE_TEST_SUITE_P(Readers, TableLives, testing::ValuesIn(reader_kinds()),
                         [](auto const& kind) { return kind.param.name; });

}  // namespace
}  // namespace th_test
