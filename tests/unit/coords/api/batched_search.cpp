// clear, batched_search, PackedHashTable128 and maps of any offsets against a dictionary.
#include <algorithm>
#include <limits>

#include "support/coords.hpp"
#include "tensorhash/coords/kernel_map.hpp"
#include "tensorhash/coords/packed_hash_table.hpp"
#include "tensorhash/error.hpp"

namespace {

using namespace tensorhash::coords;
using namespace th_test;
using tensorhash::Capacity;
using tensorhash::TableFull;
using tensorhash::ValueError;

std::vector<std::int32_t> numbers(Tensor const& tensor) {
    Tensor const here = tensor.to({});
    auto const values = here.as<std::int32_t>();
    return {values.begin(), values.end()};
}

Coord sum_of(Coord row, Coord const& by) {
    for (std::size_t c = 0; c < row.size(); ++c) row[c] += by[c];
    return row;
}

/// The expected result of batched_search, shape [K, M].
std::vector<std::int32_t> sought(RowOracle const& oracle, Coords const& queries,
                                 Coords const& offsets) {
    std::vector<std::int32_t> found;
    for (Coord const& by : offsets) {
        Coords sums;
        for (Coord const& query : queries) sums.push_back(sum_of(query, by));
        std::vector<std::int32_t> const one = oracle.find(sums);
        found.insert(found.end(), one.begin(), one.end());
    }
    return found;
}

class BatchedSearch : public OverThreads {};
TH_OVER_THREADS(BatchedSearch);

TEST_P(BatchedSearch, EveryOffsetOfEveryQueryIsFoundInTablesOfEveryWidth) {
    for (std::size_t columns = 1; columns <= 7; ++columns) {
        Coords const rows = random_rows(3000, columns, -9, 9, 1);
        Coords const queries = random_rows(7000, columns, -9, 9, 2);
        Coords const offsets = random_rows(7, columns, -2, 2, 3, 2);
        RowOracle oracle;
        oracle.insert(rows);
        auto const keys = tensor_of<std::int32_t>(rows, columns);
        auto const by = tensor_of<std::int32_t>(offsets, columns);
        CoordTable const table = CoordTable::from_coords(keys);
        auto const want = sought(oracle, queries, offsets);
        Tensor const got = table.batched_search(tensor_of<std::int32_t>(queries, columns), by);
        EXPECT_EQ(got.shape(), (tensorhash::Shape{7, 7000}));
        EXPECT_EQ(numbers(got), want);
        EXPECT_EQ(numbers(table.batched_search(tensor_of<std::int64_t>(queries, columns), by)),
                  want);
        auto const narrow = PackedHashTable128::from_keys(keys);
        EXPECT_EQ(numbers(narrow.batched_search(tensor_of<std::int32_t>(queries, columns), by)),
                  want);
    }
}

TEST_P(BatchedSearch, SumsOutsideInt32AreAbsentAndSumsBackInsideAreFound) {
    constexpr std::int64_t least = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    Coords const rows{{0, most, least, 0}, {0, 0, 0, 0}, {0, 3, 0, 0}};
    Coords const queries{{0, most, least, 0}, {0, most + 1, least - 1, 0}, {0, 2 * most, 0, 0}};
    Coords const offsets{{0, 0, 0, 0}, {0, -1, 1, 0}, {0, 1, -1, 0}, {0, -most, 0, 0}};
    RowOracle oracle;
    oracle.insert(rows);
    CoordTable const table = CoordTable::from_coords(tensor_of<std::int64_t>(rows, 4));
    EXPECT_EQ(numbers(table.batched_search(tensor_of<std::int64_t>(queries, 4),
                                           tensor_of<std::int64_t>(offsets, 4))),
              sought(oracle, queries, offsets));
    Coords const far{{0, std::numeric_limits<std::int64_t>::max(), 0, 0},
                     {0, std::numeric_limits<std::int64_t>::min(), 0, 0}};
    for (std::int32_t const row : numbers(table.batched_search(
             tensor_of<std::int64_t>(far, 4), tensor_of<std::int64_t>(offsets, 4)))) {
        EXPECT_EQ(row, -1);
    }
}

TEST_P(BatchedSearch, AClearedTableStartsAnewAndViewsKeepTheirContents) {
    Coords const rows = random_rows(5000, 4, -20, 20, 4);
    Coords const others = random_rows(3000, 4, -20, 20, 5);
    auto table = PackedHashTable::from_coords(tensor_of<std::int32_t>(rows, 4));
    Tensor const keys = table.vector_keys();
    Tensor const slots = table.values_tensor();
    Tensor const before = slots.clone();
    table.clear();
    EXPECT_EQ(table.num_entries(), 0);
    EXPECT_EQ(table.num_distinct(), 0);
    EXPECT_EQ(table.key_dim(), 4);
    table.insert(tensor_of<std::int32_t>(others, 4));
    RowOracle oracle;
    oracle.insert(others);
    EXPECT_EQ(numbers(table.search(tensor_of<std::int32_t>(rows, 4))), oracle.find(rows));
    EXPECT_TRUE(same_bytes(keys, tensor_of<std::int32_t>(rows, 4)));
    EXPECT_TRUE(same_bytes(slots.clone(), before));
}

TEST_P(BatchedSearch, AFixedCapacityOutlivesClearUntilTheTableMayGrow) {
    CoordTable table(Capacity{2}, test_device());
    for (int round = 0; round < 3; ++round) {
        table.clear();
        table.insert(tensor_of<std::int32_t>({{0, round}, {1, round}}, 2));
        EXPECT_EQ(table.capacity(), 2);
        EXPECT_FALSE(message_of<TableFull>([&] {
                         table.insert(tensor_of<std::int32_t>({{2, 0}}, 2));
                     }).empty());
        EXPECT_FALSE(table.grows());
    }
    table.grow_on_demand();
    EXPECT_TRUE(table.grows());
    table.insert(tensor_of<std::int32_t>(random_rows(300, 2, -99, 99, 6), 2));
    EXPECT_EQ(table.num_entries(), 302);
}

TEST_P(BatchedSearch, The128TableHolds17BitsInEveryColumn) {
    for (std::size_t columns = 1; columns <= 7; ++columns) {
        auto table = PackedHashTable128::from_keys(
            tensor_of<std::int32_t>({Coord(columns, PackedHashTable128::kCoordMin),
                                     Coord(columns, PackedHashTable128::kCoordMax)},
                                    columns));
        for (std::int64_t const value : {65536ll, -65537ll, 1ll << 31}) {
            Coord row(columns, 0);
            row[columns - 1] = value;
            std::string const said = message_of<ValueError>(
                [&] { table.insert(tensor_of<std::int64_t>({row}, columns)); });
            EXPECT_NE(said.find("coords: row 0, column " + std::to_string(columns - 1)),
                      std::string::npos)
                << said;
            EXPECT_EQ(table.num_entries(), 2);
        }
    }
}

TEST_P(BatchedSearch, MapsOfAnyOffsetsPairTheRowsThatTheOffsetsReach) {
    Coords rows = random_rows(2000, 4, -6, 6, 7);
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    Coords const offsets{{0, 1, 0, 0}, {0, 0, 0, 0}, {0, -3, 2, 1}, {0, 1, 0, 0}};
    RowOracle oracle;
    oracle.insert(rows);
    auto const coords = tensor_of<std::int32_t>(rows, 4);
    KernelMap const map =
        kernel_map_from_offsets(coords, coords, {1, 1, 1}, tensor_of<std::int32_t>(offsets, 4));
    EXPECT_EQ(map.identity_map_index, 1);
    auto const found = sought(oracle, rows, offsets);
    std::vector<std::int32_t> in;
    std::vector<std::int32_t> out;
    for (std::size_t at = 0; at < found.size(); ++at) {
        if (found[at] < 0) continue;
        in.push_back(found[at]);
        out.push_back(static_cast<std::int32_t>(at % rows.size()));
    }
    EXPECT_EQ(numbers(map.in_maps), in);
    EXPECT_EQ(numbers(map.out_maps), out);
    EXPECT_EQ(numbers(pair_table(map)), found);
    std::string const said = message_of<ValueError>([&] {
        kernel_map_from_offsets(coords, coords, {1, 1, 1},
                                tensor_of<std::int32_t>({{0, 0, 0, 0}, {2, 0, 0, 0}}, 4));
    });
    EXPECT_NE(said.find("kernel_offsets: row 1, column 0: expected 0"), std::string::npos) << said;
}

}  // namespace
