// Replacing entries: new keys take the buffer indices of others. If memory runs out half way,
// nothing changes.
#include <new>

#include "support/address_space.hpp"
#include "support/fixtures.hpp"
#include "table/table.hpp"

namespace th_test {
namespace {

using tensorhash::table::Table;

std::vector<std::int64_t> numbers_from(std::int64_t first, std::size_t count) {
    std::vector<std::int64_t> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = first + static_cast<std::int64_t>(i);
    return out;
}

tensorhash::table::Bytes bytes(std::vector<std::int64_t> const& keys) {
    return reinterpret_cast<tensorhash::table::Bytes>(keys.data());
}

std::vector<std::uint32_t> found_at(Table const& table, std::vector<std::int64_t> const& keys) {
    std::vector<std::uint32_t> buf_indices(keys.size());
    std::vector<unsigned char> mask(keys.size());
    table.find(bytes(keys), keys.size(), {buf_indices.data(), mask.data()});
    return buf_indices;
}

Table filled(std::size_t count, std::int64_t value_bytes) {
    Table table({Dtype::Int64, {}}, {{Dtype::UInt8, {value_bytes}}}, count);
    std::vector<std::uint32_t> buf_indices(count);
    std::vector<unsigned char> mask(count);
    table.activate(bytes(numbers_from(0, count)), count, {buf_indices.data(), mask.data()});
    return table;
}

TEST(Replace, gives_new_keys_the_indices_of_the_old_ones_in_order) {
    Table table = filled(1000, 1);
    std::vector<std::uint32_t> const leaving{7, 3, 999};
    table.finish_replace(table.prepare_replace(leaving, bytes({5000, 5001, 5002}), 3));
    table.validate();
    EXPECT_EQ(found_at(table, {5000, 5001, 5002}), leaving);
    constexpr std::uint32_t absent = 0xffffffffu;
    EXPECT_EQ(found_at(table, {7, 3, 999, 8}),
              (std::vector<std::uint32_t>{absent, absent, absent, 8}));
}

#if !TH_TEST_SANITIZED
TEST(Replace, leaves_the_table_as_it_was_when_memory_runs_out) {
    Threads one(1);  // starts no thread, so no stack is allocated
    Table table = filled(1000, 4096);
    std::vector<std::int64_t> const keys =
        numbers_from(5000, 300000);  // more than a gigabyte of values
    std::vector<std::uint32_t> const leaving{7, 3, 999};
    {
        AddressSpaceLimit limit(std::size_t{128} << 20);
        EXPECT_THROW(table.prepare_replace(leaving, bytes(keys), keys.size()), std::bad_alloc);
    }
    table.validate();
    EXPECT_EQ(table.size(), 1000u);
    EXPECT_EQ(table.capacity(), 1000u);
    EXPECT_TRUE(table.free_stack().empty());
    std::vector<std::uint32_t> const buf_indices = found_at(table, numbers_from(0, 1000));
    for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(buf_indices[i], i);
}
#endif

}  // namespace
}  // namespace th_test
