// PackedHashTable and CoordTable against a dictionary: rows, modes, capacity, range, expansion, all
// or nothing.
#include "tensorhash/coords/packed_hash_table.hpp"

#include <set>
#include <thread>

#include "support/coords.hpp"
#include "tensorhash/error.hpp"

namespace {

using namespace tensorhash::coords;
using namespace th_test;
using tensorhash::Capacity;
using tensorhash::TableFull;
using tensorhash::TypeError;
using tensorhash::ValueError;

constexpr SearchMode modes[] = {SearchMode::Linear, SearchMode::DoubleHash, SearchMode::WarpCoop};

Tensor int32(Coords const& rows) { return tensor_of<std::int32_t>(rows, 4); }
Tensor int64(Coords const& rows) { return tensor_of<std::int64_t>(rows, 4); }

std::vector<std::int32_t> numbers(Tensor const& tensor) {
    Tensor const here = tensor.to({});
    auto const values = here.as<std::int32_t>();
    return {values.begin(), values.end()};
}

Coords joined(Coords a, Coords const& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

class PackedTable : public OverThreads {};
TH_OVER_THREADS(PackedTable);

TEST_P(PackedTable, EveryModeIsRightOnEveryTable) {
    Coords const rows = random_rows(12000, 4, -20, 20, 1);
    Coords const queries = random_rows(12000, 4, -22, 22, 2, 5);
    RowOracle oracle;
    oracle.insert(rows);
    for (bool const double_hash : {false, true}) {
        for (std::optional<Capacity> const capacity :
             {std::optional<Capacity>(), std::optional(Capacity{12000})}) {
            auto const table = PackedHashTable::from_coords(int32(rows), capacity, double_hash);
            for (SearchMode const mode : modes) {
                EXPECT_EQ(numbers(table.search(int32(queries), mode)), oracle.find(queries));
                EXPECT_EQ(numbers(table.search(int64(rows), mode)), oracle.find(rows));
            }
        }
    }
}

TEST_P(PackedTable, ASecondInsertContinuesTheRowNumbers) {
    PackedHashTable table(Capacity{1 << 16}, test_device());
    Coords all;
    for (unsigned step = 0; step < 4; ++step) {
        Coords const more = random_rows(9000, 4, -15, 15, 3 + step);
        all = joined(all, more);
        table.insert(step % 2 == 0 ? int32(more) : int64(more));
    }
    RowOracle oracle;
    oracle.insert(all);
    EXPECT_EQ(table.num_entries(), static_cast<std::int64_t>(all.size()));
    EXPECT_EQ(table.num_distinct(), static_cast<std::int64_t>(oracle.distinct()));
    EXPECT_EQ(numbers(table.search(int32(all))), oracle.find(all));
    EXPECT_TRUE(same_bytes(table.vector_keys(), int32(all)));
    std::vector<std::int32_t> const found = oracle.find(all);
    std::set<std::int32_t> const first(found.begin(), found.end());
    EXPECT_EQ(numbers(table.unique_index()), std::vector<std::int32_t>(first.begin(), first.end()));
}

TEST_P(PackedTable, AFullTableRefusesTheNextKeyAndStaysAsItWas) {
    for (bool const double_hash : {false, true}) {
        for (std::int64_t const capacity : {0, 1, 16, 1000, 8192}) {
            PackedHashTable table(Capacity{capacity}, test_device(), double_hash);
            Coords rows;
            for (std::int64_t i = 0; i < table.capacity(); ++i) rows.push_back({0, i, -i, 2 * i});
            table.insert(int32(rows));
            table.insert(int32(rows));  // twice the rows, no new keys
            Tensor const before = table.vector_keys().clone();
            Tensor const keys = table.keys_tensor().clone().to({});
            Coords const more{{0, 0, 0, 0}, {1, 0, 0, 0}};
            std::string const message = message_of<TableFull>([&] { table.insert(int32(more)); });
            EXPECT_NE(message.find(std::to_string(table.capacity())), std::string::npos);
            EXPECT_TRUE(same_bytes(table.vector_keys(), before));
            EXPECT_TRUE(same_bytes(table.keys_tensor().clone(), keys));
            for (SearchMode const mode : modes) {
                RowOracle oracle;
                oracle.insert(rows);
                EXPECT_EQ(numbers(table.search(int32(rows), mode)), oracle.find(rows));
                EXPECT_EQ(numbers(table.search(int32(more), mode)), oracle.find(more));
            }
            EXPECT_EQ(message_of<TableFull>([&] {
                          table.expand_with_offsets(int32({{0, 0, 0, 0}}), int32({{0, 9, 9, 9}}));
                      }).empty(),
                      false);
            EXPECT_TRUE(same_bytes(table.vector_keys(), before));
        }
    }
}

TEST_P(PackedTable, OutOfRangeIsAnErrorOnInsertAndAMissOnSearch) {
    Coords const good{{0, 0, 0, 0},      {511, -131072, 131071, 0}, {0, 0, -131072, 0},
                      {511, -1, -1, -1}, {0, 131071, 0, -131072},   {0, -131072, 0, 0}};
    PackedHashTable table = PackedHashTable::from_coords(int32(good));
    struct Bad {
        std::size_t column;
        std::int64_t value;
    };
    for (Bad const bad :
         {Bad{0, -1}, Bad{0, 512}, Bad{1, 131072}, Bad{1, -131073}, Bad{2, 131072}, Bad{3, -131073},
          Bad{1, 1ll << 32}, Bad{0, 1ll << 32}, Bad{3, -(1ll << 62)}}) {
        Coords rows = joined(good, {{1, 1, 1, 1}, {2, 2, 2, 2}});
        rows[7][bad.column] = bad.value;
        std::string const message = message_of<ValueError>([&] { table.insert(int64(rows)); });
        EXPECT_NE(message.find("coords: row 7, column " + std::to_string(bad.column)),
                  std::string::npos)
            << message;
        EXPECT_NE(message.find("got " + std::to_string(bad.value)), std::string::npos) << message;
        EXPECT_EQ(table.num_entries(), 6);
        EXPECT_EQ(numbers(table.search(int64({rows[7], rows[6]}))),
                  (std::vector<std::int32_t>{-1, -1}));
    }
    // No wrap-around: the low bits of each of these are those of an existing key.
    Coords const wrapped{{512, 0, 0, 0}, {0, 131072, 0, 0}, {-1, -1, -1, -1}, {0, 0, 131072, 0}};
    for (SearchMode const mode : modes) {
        EXPECT_EQ(numbers(table.search(int32(wrapped), mode)), std::vector<std::int32_t>(4, -1));
    }
}

TEST_P(PackedTable, ExpansionAppendsNewRowsOffsetByOffset) {
    for (bool const double_hash : {false, true}) {
        Coords const start = random_rows(500, 4, -9, 9, 10);
        Coords const base = random_rows(4000, 4, -9, 9, 11);
        Coords const offsets{
            {0, 0, 0, 0}, {0, 1, 0, 0}, {0, -1, 2, 0}, {0, 1, 0, 0}, {1, 0, 0, -3}};
        auto table = PackedHashTable::from_coords(int32(start), {}, double_hash);
        table.expand_with_offsets(int32(base), int64(offsets));
        Coords expected = start;
        std::set<Coord> there(start.begin(), start.end());
        for (Coord const& offset : offsets) {
            for (Coord const& row : base) {
                Coord sum(4);
                for (std::size_t c = 0; c < 4; ++c) sum[c] = row[c] + offset[c];
                if (there.insert(sum).second) expected.push_back(sum);
            }
        }
        EXPECT_TRUE(same_bytes(table.vector_keys(), int32(expected)));
        RowOracle oracle;
        oracle.insert(expected);
        for (SearchMode const mode : modes) {
            EXPECT_EQ(numbers(table.search(int32(expected), mode)), oracle.find(expected));
        }
    }
}

TEST_P(PackedTable, AnExpansionOutOfRangeChangesNothing) {
    auto table = PackedHashTable::from_coords(int32({{0, 131071, 0, 0}}));
    std::string const message = message_of<ValueError>([&] {
        table.expand_with_offsets(int32({{0, 0, 0, 0}, {0, 131071, 0, 0}}),
                                  int32({{0, 0, 1, 0}, {0, 1, 0, 0}}));
    });
    EXPECT_NE(message.find("row 1 plus row 1 of offsets, column 1"), std::string::npos) << message;
    EXPECT_NE(message.find("got 131072"), std::string::npos) << message;
    EXPECT_EQ(table.num_entries(), 1);
    table.expand_with_offsets(int32({}), int32({{0, 1, 0, 0}}));
    table.expand_with_offsets(int32({{0, 131071, 0, 0}}), int32({}));
    EXPECT_EQ(table.num_entries(), 1);
}

TEST_P(PackedTable, SlotsHaveThePublishedLayout) {
    PackedHashTable table(Capacity{1000}, test_device());
    EXPECT_EQ(table.capacity(), 1024);
    Coord const row{7, 100, -200, 300};
    table.insert(int32({row}));
    Tensor const keys = table.keys_tensor().clone().to({});
    Tensor const values = table.values_tensor().clone().to({});
    std::uint64_t const key = pack_key_4d(7, 100, -200, 300);
    std::uint32_t const slot = Splitmix64Hash::hash(key, 1023);
    for (std::uint32_t i = 0; i < 1024; ++i) {
        EXPECT_EQ(static_cast<std::uint64_t>(keys.as<std::int64_t>()[i]), i == slot ? key : 0u);
        EXPECT_EQ(values.as<std::int32_t>()[i], i == slot ? 0 : -1);
    }
}

TEST_P(PackedTable, ManyRowsOfOneKeyGiveTheFirst) {
    Coords rows(50000, Coord{3, 1, 1, 1});
    rows[0] = {3, 2, 2, 2};
    auto const table = PackedHashTable::from_coords(int32(rows), Capacity{2});
    EXPECT_EQ(numbers(table.search(int32({{3, 1, 1, 1}, {3, 2, 2, 2}}))),
              (std::vector<std::int32_t>{1, 0}));
    EXPECT_EQ(numbers(table.unique_index()), (std::vector<std::int32_t>{0, 1}));
}

TEST_P(PackedTable, ReadersShareTheTableAndAWriterExcludesThem) {
    Coords const rows = random_rows(6000, 4, -50, 50, 12);
    PackedHashTable table = PackedHashTable::from_coords(int32(rows));
    RowOracle oracle;
    oracle.insert(rows);
    std::vector<std::int32_t> const expected = oracle.find(rows);
    std::vector<std::thread> readers;
    for (int i = 0; i < 4; ++i) {
        readers.emplace_back([&] {
            for (int turn = 0; turn < 5; ++turn) {
                EXPECT_EQ(numbers(table.search(int32(rows))), expected);
            }
        });
    }
    for (unsigned turn = 0; turn < 5; ++turn) {
        table.insert(int32(random_rows(6000, 4, 60, 90, 20 + turn)));
    }
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(table.num_entries(), 36000);
}

TEST(PackedTableArguments, AreRefusedByName) {
    PackedHashTable table(Capacity{16}, test_device());
    EXPECT_NE(message_of<ValueError>([&] {
                  table.insert(tensor_of<std::int32_t>({}, 3));
              }).find("coords: expected shape (N, 4), got (0, 3)"),
              std::string::npos);
    EXPECT_NE(message_of<TypeError>([&] {
                  table.search(Tensor::zeros({2, 4}, tensorhash::Dtype::Float32));
              }).find("query: expected int32 or int64, got float32"),
              std::string::npos);
    EXPECT_FALSE(message_of<ValueError>([&] {
                     table.search(int32({}), static_cast<SearchMode>(3));
                 }).empty());
    EXPECT_FALSE(message_of<ValueError>([&] { PackedHashTable bad(Capacity{-1}); }).empty());
    EXPECT_EQ(table.search(int32({})).shape(), (tensorhash::Shape{0}));
}

TEST_P(PackedTable, CoordTableWidensItsKeyAndKeepsItsRows) {
    CoordTable table({}, test_device());
    Coords all = random_rows(8000, 4, -30, 30, 30);
    table.insert(int32(all));
    EXPECT_EQ(table.key(), CoordKey::Packed64);
    for (unsigned step = 0; step < 4; ++step) {
        Coords const more = random_rows(8000, 4, -2000000000, 2000000000, 31 + step, 900);
        all = joined(all, joined(more, Coords(all.begin(), all.begin() + 500)));
        table.insert(int64(joined(more, Coords(all.begin(), all.begin() + 500))));
        RowOracle oracle;
        oracle.insert(all);
        EXPECT_EQ(table.key(), CoordKey::Packed128);
        EXPECT_EQ(numbers(table.search(int32(all))), oracle.find(all));
        EXPECT_TRUE(same_bytes(table.vector_keys(), int32(all)));
    }
    EXPECT_FALSE(message_of<ValueError>([&] { table.keys_tensor(); }).empty());
    EXPECT_NE(message_of<ValueError>([&] {
                  table.insert(int64({{0, 1ll << 31, 0, 0}}));
              }).find("row 0, column 1"),
              std::string::npos);
}

TEST_P(PackedTable, CoordTableHonoursACapacityWithWideKeysToo) {
    for (std::size_t const columns : {4u, 6u}) {
        CoordTable table(Capacity{16}, test_device(), false, static_cast<int>(columns));
        Coords rows = random_rows(16, columns, -1000000, 1000000, 40);
        table.insert(tensor_of<std::int32_t>(rows, columns));
        table.insert(tensor_of<std::int32_t>(rows, columns));
        Coords const more = random_rows(1, columns, -1000000, 1000000, 41);
        EXPECT_FALSE(message_of<TableFull>([&] {
                         table.insert(tensor_of<std::int32_t>(more, columns));
                     }).empty());
        EXPECT_EQ(table.num_entries(), 32);
        EXPECT_EQ(numbers(table.search(tensor_of<std::int32_t>(more, columns))),
                  std::vector<std::int32_t>{-1});
        RowOracle oracle;
        oracle.insert(rows);
        EXPECT_EQ(numbers(table.search(tensor_of<std::int32_t>(rows, columns))), oracle.find(rows));
    }
}

TEST_P(PackedTable, CoordTableExpandsOverEveryWidth) {
    for (std::size_t columns = 1; columns <= 7; ++columns) {
        Coords const base = random_rows(700, columns, -3, 3, 50);
        Coords const offsets = random_rows(9, columns, -2, 2, 51, 1);
        CoordTable table({}, test_device());
        table.expand_with_offsets(tensor_of<std::int32_t>(base, columns),
                                  tensor_of<std::int32_t>(offsets, columns));
        Coords expected;
        std::set<Coord> there;
        for (Coord const& offset : offsets) {
            for (Coord const& row : base) {
                Coord sum(columns);
                for (std::size_t c = 0; c < columns; ++c) sum[c] = row[c] + offset[c];
                if (there.insert(sum).second) expected.push_back(sum);
            }
        }
        EXPECT_TRUE(same_bytes(table.vector_keys(), tensor_of<std::int32_t>(expected, columns)));
    }
}

}  // namespace
