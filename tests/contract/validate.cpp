// validate() accepts a healthy table after any history of calls, and finds a table that was damaged
// through its own memory.
#include "support/fixtures.hpp"

namespace th_test {
namespace {

class Validate : public OverKinds {};

TEST_P(Validate, passes_after_every_operation) {
    Twin twin = this->twin(1);
    twin.table.validate();
    for (std::uint64_t round = 0; round < 3; ++round) {
        twin.insert(random_ids(200, 300, round), round);
        twin.table.validate();
        twin.erase(random_ids(100, 300, 50 + round));
        twin.table.validate();
        twin.activate(random_ids(50, 400, 60 + round));
        twin.table.validate();
        twin.reserve(300 + 100 * static_cast<std::int64_t>(round));
        twin.table.validate();
        twin.clone().table.validate();
        HashMap::from_bytes(twin.table.to_bytes()).validate();
        twin.compact();
        twin.table.validate();
    }
    twin.clear();
    twin.table.validate();
}

TH_OVER_KINDS(Validate, sample_kinds());

/// Writes to the key buffer behind the table's back.
void overwrite_key(HashMap& map, std::size_t row, std::int64_t key) {
    Tensor view = map.key_tensor();
    auto* keys = static_cast<std::int64_t*>(view.data());
    keys[row] = key;
}

TEST(ValidateDamage, finds_a_live_key_that_was_overwritten) {
    for (std::int64_t width : {1, 2}) {
        HashMap map = make_map(Capacity{10}, {Dtype::Int64, {width}}, {});
        map.activate(make_keys(map.key_element(), sequence(10)));
        map.validate();
        overwrite_key(map, 3, 123456789);
        std::string text = message_of<tensorhash::CorruptTable>([&] { map.validate(); });
        EXPECT_FALSE(text.empty());
    }
}

TEST(ValidateDamage, finds_two_live_entries_of_one_key) {
    HashMap map = int64_map(10);
    map.activate(int64_keys({1, 2, 3}));
    overwrite_key(map, 2, 1);
    EXPECT_THROW(map.validate(), tensorhash::CorruptTable);
}

TEST(ValidateDamage, does_not_mind_rows_that_are_not_live) {
    HashMap map = int64_map(10);
    map.activate(int64_keys({1, 2, 3}));
    map.erase(int64_keys({2}));
    overwrite_key(map, 1, 3);
    overwrite_key(map, 7, 3);
    map.validate();
}

}  // namespace
}  // namespace th_test
