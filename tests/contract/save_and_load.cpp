// Save and load: a native file restores indices, values and free stack exactly. A damaged,
// truncated or foreign file is an error that says so. from_parts puts entries at given indices.
#include <algorithm>
#include <filesystem>

#include "support/files.hpp"
#include "support/fixtures.hpp"

namespace th_test {
namespace {

using tensorhash::FormatError;
using tensorhash::SystemError;
using tensorhash::ValueError;

class SaveAndLoad : public OverKinds {};

TEST_P(SaveAndLoad, a_restored_table_behaves_like_the_original) {
    Twin twin = this->twin(7);
    twin.insert(random_ids(300, 300, 1), 1);
    twin.erase(random_ids(150, 300, 2));
    Tensor bytes = twin.table.to_bytes();
    EXPECT_EQ(bytes.dtype(), Dtype::UInt8);
    Twin restored(HashMap::from_bytes(bytes), twin.oracle);
    restored.check();
    EXPECT_TRUE(same_bytes(restored.table.to_bytes(), bytes));
    EXPECT_EQ(restored.table.key_element(), key());
    EXPECT_EQ(restored.table.value_elements(), columns());
    restored.insert(sequence(200, 1000), 3);
    restored.erase(random_ids(100, 300, 4));
    restored.check();
}

TEST_P(SaveAndLoad, a_file_holds_the_bytes_of_to_bytes) {
    Folder folder;
    Twin twin = this->twin(0);
    twin.insert(sequence(100), 1);
    twin.erase(sequence(30, 10));
    twin.table.save(folder / "table.thash");
    EXPECT_TRUE(same_bytes(read_file(folder / "table.thash"), bytes_of(twin.table.to_bytes())));
    EXPECT_EQ(folder.files(), 1) << "no temporary file is left behind";
    Twin loaded(HashMap::load(folder / "table.thash"), twin.oracle);
    loaded.check();
}

TH_OVER_KINDS(SaveAndLoad, sample_kinds());

TEST(SaveAndLoadFiles, every_value_row_comes_back_in_every_dtype) {
    std::vector<Element> columns;
    for (int dtype = 1; dtype <= 13; ++dtype) columns.push_back({static_cast<Dtype>(dtype), {2}});
    Twin twin(0, {Dtype::Int32, {3}}, columns);
    twin.insert(random_ids(5000, 4000, 1), 2);
    Twin(HashMap::from_bytes(twin.table.to_bytes()), twin.oracle).check();
}

TEST(SaveAndLoadFiles, saving_replaces_what_was_there) {
    Folder folder;
    HashMap one = int64_map(), two = int64_map();
    one.activate(int64_keys({1}));
    two.activate(int64_keys({2, 3}));
    one.save(folder / "t");
    two.save(folder / "t");
    EXPECT_EQ(HashMap::load(folder / "t").size(), 2);
    EXPECT_EQ(folder.files(), 1);
}

TEST(SaveAndLoadFiles, a_set_loads_as_a_set_and_as_a_map_without_columns) {
    Folder folder;
    HashSet set = make_set(Capacity{3}, {Dtype::Float32, {3}});
    set.insert(make_keys(set.key_element(), sequence(20)));
    set.save(folder / "s");
    EXPECT_EQ(HashSet::load(folder / "s").size(), set.size());
    EXPECT_TRUE(HashMap::load(folder / "s").value_elements().empty());
    HashMap map = int64_map();
    map.save(folder / "m");
    EXPECT_THROW(HashSet::load(folder / "m"), ValueError);
}

TEST(SaveAndLoadFiles, a_file_that_cannot_be_opened_is_a_system_error_with_its_code) {
    Folder folder;
    try {
        HashMap::load(folder / "missing");
        FAIL();
    } catch (SystemError const& error) {
        EXPECT_EQ(error.code(), ENOENT);
        EXPECT_NE(std::string(error.what()).find("missing"), std::string::npos) << error.what();
    }
    EXPECT_THROW(int64_map().save(folder / "no/such/folder/t"), SystemError);
    EXPECT_THROW(HashMap::load(folder / "."), tensorhash::Error);
}

TEST(SaveAndLoadFiles, a_failed_save_leaves_the_old_file_and_nothing_else) {
    Folder folder;
    HashMap map = int64_map();
    map.activate(int64_keys({1}));
    ASSERT_TRUE(std::filesystem::create_directory(folder / "t"));
    write_file(folder / "t/inside", "x");
    EXPECT_THROW(map.save(folder / "t"), SystemError);
    EXPECT_EQ(folder.files(), 1);
    EXPECT_EQ(read_file(folder / "t/inside"), "x");
}

HashMap small_table() {
    HashMap map =
        make_map(Capacity{8}, {Dtype::Int32, {3}}, {{Dtype::Float64, {}}, {Dtype::UInt8, {2}}});
    map.insert(make_keys(map.key_element(), sequence(12)),
               make_columns(map.value_elements(), 12, 1));
    map.erase(make_keys(map.key_element(), sequence(4, 3)));
    return map;
}

TEST(SaveAndLoadDamage, every_truncation_is_an_error) {
    std::string bytes = bytes_of(small_table().to_bytes());
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_THROW(HashMap::from_bytes(as_tensor(bytes.substr(0, length))), FormatError)
            << length;
}

TEST(SaveAndLoadDamage, every_flipped_bit_is_an_error) {
    std::string bytes = bytes_of(small_table().to_bytes());
    for (std::size_t at = 0; at < bytes.size(); ++at)
        for (int bit = 0; bit < 8; ++bit) {
            std::string damaged = bytes;
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
            EXPECT_THROW(HashMap::from_bytes(as_tensor(damaged)), FormatError)
                << at << " bit " << bit;
        }
}

TEST(SaveAndLoadDamage, appended_bytes_are_an_error) {
    std::string bytes = bytes_of(small_table().to_bytes());
    EXPECT_THROW(HashMap::from_bytes(as_tensor(bytes + '\0')), FormatError);
    EXPECT_THROW(HashMap::from_bytes(as_tensor(bytes + bytes)), FormatError);
}

TEST(SaveAndLoadDamage, a_foreign_file_is_an_error_that_says_so) {
    Folder folder;
    for (std::string const& foreign :
         {std::string(), std::string("x"), std::string("PK\3\4 a zip file, an npz say"),
          std::string(1000, '\0'), std::string(1000, '\xff')}) {
        write_file(folder / "foreign", foreign);
        std::string text = message_of<FormatError>([&] { HashMap::load(folder / "foreign"); });
        EXPECT_NE(text.find("foreign"), std::string::npos) << "names the file: " << text;
    }
}

TEST(SaveAndLoadDamage, from_bytes_wants_bytes) {
    EXPECT_THROW(HashMap::from_bytes(Tensor::zeros({100}, Dtype::Int32)), tensorhash::TypeError);
}

TEST(FromParts, entries_lie_at_the_given_indices) {
    Tensor indices = Tensor::from(std::vector<std::int32_t>{7, 0, 3});
    HashMap map = HashMap::from_parts(int64_keys({70, 10, 30}), {int64_keys({7, 1, 3})}, indices);
    EXPECT_EQ(map.size(), 3);
    EXPECT_EQ(map.capacity(), 8);
    EXPECT_EQ(indices_of(map.find(int64_keys({70, 10, 30, 5}))),
              (std::vector<std::int32_t>{7, 0, 3, -1}));
    EXPECT_EQ(to_vector<std::int64_t>(map.keys()), (std::vector<std::int64_t>{10, 30, 70}));
    EXPECT_EQ(to_vector<std::int64_t>(map.items().values[0]), (std::vector<std::int64_t>{1, 3, 7}));
    map.validate();
    std::vector<std::int32_t> filled = indices_of(map.activate(int64_keys({1, 2, 3, 4, 5})));
    std::sort(filled.begin(), filled.end());
    EXPECT_EQ(filled, (std::vector<std::int32_t>{1, 2, 4, 5, 6})) << "the holes are free";
    EXPECT_EQ(map.capacity(), 8);
    map.validate();
}

TEST(FromParts, a_large_table_comes_back_from_its_listings) {
    for (int n : looped_thread_counts()) {
        Threads threads(n);
        Twin twin(0, {Dtype::Int32, {3}}, {{Dtype::Float32, {}}});
        twin.insert(random_ids(many_rows, many_rows, 1));
        twin.erase(random_ids(many_rows / 2, many_rows, 2));
        tensorhash::Items items = twin.table.items();
        Tensor active = twin.table.active_buf_indices();
        HashMap again = HashMap::from_parts(items.keys, items.values, active);
        again.validate();
        EXPECT_EQ(to_vector<std::int32_t>(again.active_buf_indices()),
                  to_vector<std::int32_t>(active));
        EXPECT_TRUE(same_bytes(again.keys(), items.keys));
        EXPECT_TRUE(same_bytes(again.items().values[0], items.values[0]));
    }
}

TEST(FromParts, inconsistent_parts_are_refused) {
    auto make = [](std::vector<std::int64_t> keys, std::vector<std::int32_t> indices) {
        HashMap::from_parts(int64_keys(keys), {}, Tensor::from(indices));
    };
    EXPECT_THROW(make({1, 2}, {0, 0}), ValueError);
    EXPECT_THROW(make({1, 2}, {0, -1}), ValueError);
    EXPECT_THROW(make({1, 2}, {0}), ValueError);
    EXPECT_THROW(make({1, 1}, {0, 1}), ValueError);
    EXPECT_THROW(HashMap::from_parts(int64_keys({1}), {}, int64_keys({0})), tensorhash::TypeError);
    EXPECT_THROW(HashMap::from_parts(int64_keys({1}), {int64_keys({1, 2})},
                                     Tensor::from(std::vector<std::int32_t>{0})),
                 ValueError);
}

}  // namespace
}  // namespace th_test
