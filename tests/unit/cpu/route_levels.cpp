// The loops that group rows by shard and bring answers back, at every instruction-set level:
// against one row after the other.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu/engine.hpp"
#include "cpu/route_engine.hpp"
#include "cpu/shard_hash.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::cpu {
#if defined(TH_HAS_LEVEL_v2)
RouteLoops const& route_loops_v2();
#endif
#if defined(TH_HAS_LEVEL_v3)
RouteLoops const& route_loops_v3();
#endif
#if defined(TH_HAS_LEVEL_v4)
RouteLoops const& route_loops_v4();
#endif
#if defined(TH_HAS_LEVEL_generic)
RouteLoops const& route_loops_generic();
#endif
}  // namespace tensorhash::cpu

namespace th_test {
namespace {

namespace cpu = tensorhash::cpu;

struct Level {
    std::string name;
    cpu::RouteLoops const* loops;
};

std::vector<Level> levels() {
    std::vector<Level> out;
#if defined(TH_HAS_LEVEL_v2)
    out.push_back({"v2", &cpu::route_loops_v2()});
#endif
#if defined(TH_HAS_LEVEL_v3)
    if (cpu::has_v3()) out.push_back({"v3", &cpu::route_loops_v3()});
#endif
#if defined(TH_HAS_LEVEL_v4)
    if (cpu::has_v4()) out.push_back({"v4", &cpu::route_loops_v4()});
#endif
#if defined(TH_HAS_LEVEL_generic)
    out.push_back({"generic", &cpu::route_loops_generic()});
#endif
    return out;
}

/// Rows of random shards; places as after a count. The first rows are not in the chunk.
struct Rows {
    static constexpr std::size_t kBefore = 3;
    std::uint32_t shards;
    std::size_t rows;
    std::vector<std::int32_t> shard_of_row;
    std::vector<std::uint32_t> first, next;
    std::vector<std::size_t> row_at;  // of each place

    Rows(std::uint32_t shard_count, std::size_t row_count)
        : shards(shard_count), rows(row_count), shard_of_row(kBefore + rows), first(shards),
          row_at(rows) {
        std::mt19937 random(static_cast<unsigned>(rows * 64 + shards));
        for (std::int32_t& shard : shard_of_row)
            shard = static_cast<std::int32_t>(random() % shards);
        std::size_t place = 0;
        for (std::uint32_t shard = 0; shard < shards; ++shard) {
            first[shard] = static_cast<std::uint32_t>(place);
            for (std::size_t row = kBefore; row < kBefore + rows; ++row)
                if (shard_of_row[row] == static_cast<std::int32_t>(shard)) row_at[place++] = row;
        }
    }
    cpu::ShardedChunk chunk() {
        next = first;
        return {shard_of_row.data(), kBefore, kBefore + rows, shards, next.data()};
    }
};

template <class Check>
void for_all(Check const& check) {
    for (Level const& level : levels())
        for (std::uint32_t const shards : {1u, 2u, 3u, 16u, 17u, 64u})
            for (std::size_t const rows : {0u, 1u, 15u, 16u, 17u, 64u, 1000u}) {
                SCOPED_TRACE(level.name + " " + std::to_string(shards) + " " +
                             std::to_string(rows));
                Rows given(shards, rows);
                check(*level.loops, given);
            }
}

TEST(RouteLevels, every_level_counts_lists_and_groups_rows_in_their_order) {
    for_all([](cpu::RouteLoops const& run, Rows& given) {
        std::vector<std::uint32_t> counts(given.shards, 7);
        cpu::ShardedChunk counted = given.chunk();
        counted.next = counts.data();
        run.count(counted);
        std::vector<std::uint32_t> listed(given.rows, 9);
        run.list(given.chunk(), listed.data());
        for (std::uint32_t shard = 0; shard < given.shards; ++shard) {
            ASSERT_EQ(given.next[shard] - given.first[shard], counts[shard] - 7);
            ASSERT_EQ(given.next[shard],
                      shard + 1 < given.shards ? given.first[shard + 1] : given.rows);
        }
        std::vector<std::uint64_t> words(Rows::kBefore + given.rows), grouped(given.rows);
        for (std::size_t row = 0; row < words.size(); ++row) words[row] = row * 0x9e3779b97f4a7c15u;
        run.group_words(given.chunk(), reinterpret_cast<unsigned char const*>(words.data()),
                        reinterpret_cast<unsigned char*>(grouped.data()));
        for (std::size_t place = 0; place < given.rows; ++place) {
            ASSERT_EQ(listed[place], given.row_at[place]);
            ASSERT_EQ(grouped[place], words[given.row_at[place]]);
        }
    });
}

TEST(RouteLevels, every_level_brings_answers_back_to_their_rows) {
    for_all([](cpu::RouteLoops const& run, Rows& given) {
        std::vector<std::uint32_t> local(given.rows);
        std::vector<unsigned char> flags(given.rows);
        for (std::size_t place = 0; place < given.rows; ++place) {
            local[place] = place % 3 == 1 ? 0xffffffffu : static_cast<std::uint32_t>(place * 5);
            flags[place] = place % 5 < 2 ? 1 : 0;
        }
        if (given.rows > 0) local.back() = 0x7ffffffeu;
        std::size_t const all = Rows::kBefore + given.rows;
        std::vector<std::int64_t> found(all), indices(all);
        std::vector<unsigned char> found_mask(all), mask(all), only_mask(all);
        run.ungroup_found(given.chunk(), local.data(), found.data(), found_mask.data());
        run.ungroup(given.chunk(), {local.data(), flags.data()}, indices.data(), mask.data());
        run.ungroup_mask(given.chunk(), flags.data(), only_mask.data());
        for (std::size_t place = 0; place < given.rows; ++place) {
            std::size_t const row = given.row_at[place];
            bool const is_found = local[place] != 0xffffffffu;
            std::int64_t const shard = given.shard_of_row[row];
            ASSERT_EQ(found[row], is_found ? shard << 32 | local[place] : -1);
            ASSERT_EQ(found_mask[row], is_found ? 1 : 0);
            ASSERT_EQ(indices[row], found[row]);
            ASSERT_EQ(mask[row], flags[place]);
            ASSERT_EQ(only_mask[row], flags[place]);
        }
        for (std::size_t row = 0; row < Rows::kBefore; ++row) {
            ASSERT_EQ(found[row] | indices[row], 0);
            ASSERT_EQ(found_mask[row] | mask[row] | only_mask[row], 0);
        }
    });
}

TEST(RouteLevels, every_level_hashes_words_to_the_shards_of_the_rule) {
    for_all([](cpu::RouteLoops const& run, Rows& given) {
        std::mt19937_64 random(given.rows);
        std::vector<std::uint64_t> words(Rows::kBefore + given.rows);
        for (std::uint64_t& word : words) word = random();
        std::vector<std::int32_t> shard(words.size(), -1);
        run.hash_words(reinterpret_cast<unsigned char const*>(words.data()), given.shards,
                       Rows::kBefore, words.size(), shard.data());
        for (std::size_t row = 0; row < words.size(); ++row)
            ASSERT_EQ(shard[row],
                      row < Rows::kBefore
                          ? -1
                          : cpu::shard_of_key(&words[row], 8, 0, static_cast<int>(given.shards)));
    });
}

}  // namespace
}  // namespace th_test
