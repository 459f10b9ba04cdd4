// TorchHashTable against a dictionary, and its hash against golden numbers.
#include "tensorhash/coords/torch_hash_table.hpp"

#include "support/coords.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/step/vector_key.hpp"

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

class VectorTable : public OverThreads {};
TH_OVER_THREADS(VectorTable);

TEST(VectorHash, IsTheGoldenMurmur) {
    std::int32_t const row[] = {0, 1, 2, 3};
    EXPECT_EQ(tensorhash::step::murmur(row, 4), 0x50FE678Fu);
    EXPECT_EQ(tensorhash::step::murmur(row + 1, 3), 0x73298486u);
}

TEST_P(VectorTable, FindsTheFirstOfEqualRowsForAnyWidth) {
    for (std::size_t const columns : {1u, 2u, 3u, 4u, 6u, 11u}) {
        std::int64_t const reach = columns < 3 ? 3000 : 2147483647;
        Coords rows = random_rows(8500, columns, -reach, reach, 1, 50);
        for (std::size_t i = 0; i < 2000; ++i) rows.push_back(rows[i * 2]);
        RowOracle oracle;
        oracle.insert(rows);
        auto table = TorchHashTable::from_keys(tensor_of<std::int32_t>(rows, columns));
        Coords const others = random_rows(4000, columns, -reach, reach, 2, 50);
        for (int turn = 0; turn < 2; ++turn) {
            EXPECT_EQ(numbers(table.search(tensor_of<std::int64_t>(rows, columns))),
                      oracle.find(rows));
            EXPECT_EQ(numbers(table.search(tensor_of<std::int32_t>(others, columns))),
                      oracle.find(others));
            table.insert(tensor_of<std::int64_t>(others, columns));  // grows; row numbers continue
            oracle.insert(others);
        }
        EXPECT_EQ(table.num_distinct(), static_cast<std::int64_t>(oracle.distinct()));
    }
}

TEST_P(VectorTable, AFullTableRefusesTheNextKeyAndStaysAsItWas) {
    for (std::int64_t const capacity : {1, 16, 8192}) {
        TorchHashTable table(Capacity{capacity}, test_device());
        Coords rows;
        for (std::int64_t i = 0; i < capacity; ++i) rows.push_back({i, i, i});
        table.insert(tensor_of<std::int32_t>(rows, 3));
        Tensor const kvs = table.table_kvs();
        Coords const more{{-1, 0, 0}, {0, 0, 0}};
        EXPECT_FALSE(
            message_of<TableFull>([&] { table.insert(tensor_of<std::int32_t>(more, 3)); }).empty());
        EXPECT_TRUE(same_bytes(table.table_kvs(), kvs));
        EXPECT_EQ(table.num_entries(), capacity);
        EXPECT_EQ(numbers(table.search(tensor_of<std::int32_t>(more, 3))),
                  (std::vector<std::int32_t>{-1, 0}));
    }
}

TEST_P(VectorTable, CoordinatesBeyondInt32AreRefusedOrNotFound) {
    auto table = TorchHashTable::from_keys(tensor_of<std::int64_t>({{0, 0}, {1, 1}}, 2));
    Tensor const beyond = tensor_of<std::int64_t>({{1, 1}, {1ll << 32, 0}}, 2);
    EXPECT_NE(
        message_of<ValueError>([&] { table.insert(beyond); }).find("vec_keys: row 1, column 0"),
        std::string::npos);
    EXPECT_EQ(numbers(table.search(beyond)), (std::vector<std::int32_t>{1, -1}));
    EXPECT_EQ(table.num_entries(), 2);
}

}  // namespace
