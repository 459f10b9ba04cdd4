// Files from untrusted sources with valid checksums: loading takes memory in proportion to the
// file, bools become 0 or 1, and impossible clocks and uses of a bounded table are refused.
#include "support/address_space.hpp"
#include "support/files.hpp"
#include "support/fixtures.hpp"
#include "table/bounded_batch.hpp"

namespace th_test {
namespace {

using tensorhash::BoundedHashMap;
using tensorhash::CorruptTable;
using tensorhash::Eviction;
using tensorhash::FormatError;
using tensorhash::ShardedHashMap;

constexpr std::size_t kMegabyte = 1 << 20;
constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;
constexpr std::size_t kHead = 40;  // bytes before the image in a bounded table's file

// Offset of the capacity in an image with scalar keys and no columns.
constexpr std::size_t kCapacityAt = 8 + 4 + 4 + 4 + 4;

/// A 56-byte file of an empty set of int64 keys that claims `capacity` rows.
std::string claiming(std::uint64_t capacity) {
    std::string bytes = bytes_of(HashMap(Capacity{0}, {Dtype::Int64, {}}, {}).to_bytes());
    put(bytes, kCapacityAt, capacity);
    seal(bytes);
    return bytes;
}

/// The file of an empty bounded table of int64 keys that claims `capacity` rows.
std::string bounded_claiming(std::uint64_t capacity, Eviction eviction = Eviction::Lru) {
    BoundedHashMap table(Capacity{4}, {Dtype::Int64, {}}, {}, eviction);
    std::string bytes = bytes_of(table.to_bytes());
    put(bytes, kHead + kCapacityAt + 2 * 8, capacity);
    seal(bytes, kHead, bytes.size());
    return bytes;
}

std::string sharded(std::vector<std::string> const& images) {
    std::string bytes("THSHRD\n\x1a", 8);
    auto number = [&](std::uint64_t value) {
        bytes.append(reinterpret_cast<char const*>(&value), sizeof(value));
    };
    number(1);
    number(4);
    bytes += "hash";
    number(images.size());
    for (std::string const& image : images) {
        number(image.size());
        bytes += image;
    }
    return bytes;
}

TEST(UntrustedFiles, a_capacity_out_of_proportion_is_not_allocated) {
    std::string const bytes = claiming(kMost);
    ASSERT_EQ(bytes.size(), 56u);
    AddressSpaceLimit limit(256 * kMegabyte);
    HashMap map = HashMap::from_bytes(as_tensor(bytes));
    EXPECT_EQ(map.capacity(), 0);
    map.activate(int64_keys({1, 2}).reshape({2}));
    map.validate();
    EXPECT_EQ(map.size(), 2);
    Folder folder;
    write_file(folder / "x", bytes);
    EXPECT_LT(HashMap::load(folder / "x").memory_usage().total(), 64 * kMegabyte);
}

TEST(UntrustedFiles, a_capacity_in_proportion_is_restored) {
    HashMap map = make_map(Capacity{100000}, {Dtype::Int64, {}}, {});
    EXPECT_EQ(HashMap::from_bytes(map.to_bytes()).capacity(), 100000);
    // Blocks are rounded up to pages, and a reused block may be up to a quarter larger.
    std::uint64_t const bytes = HashMap::memory_for(Capacity{100000}, map.key_element(), {});
    EXPECT_LE(bytes, map.memory_usage().total());
    EXPECT_GE(bytes + bytes / 4 + bytes / 20, map.memory_usage().total());
}

TEST(UntrustedFiles, a_table_that_grew_by_itself_is_in_proportion) {
    // The worst case of growth: rows doubled, then rounded up to what the index holds.
    for (std::int64_t width : {4, 8, 12, 16, 64}) {
        std::uint64_t const capacity = (width <= 8 ? 3 : 5) * (std::uint64_t{1} << 26);
        std::uint64_t const file = capacity / 4 * static_cast<std::uint64_t>(width);
        EXPECT_LE(HashMap::memory_for(Capacity{static_cast<std::int64_t>(capacity)},
                                      {Dtype::UInt8, {width}}, {}),
                  tensorhash::load_limit(file, {}))
            << width;
    }
}

TEST(UntrustedFiles, max_bytes_says_what_a_table_may_take) {
    HashMap map = make_map(Capacity{100000}, {Dtype::Int64, {}}, {});
    Ids const ids = sequence(1000);
    map.activate(make_keys(map.key_element(), ids));
    Tensor const bytes = map.to_bytes();
    std::uint64_t const whole = HashMap::memory_for(Capacity{100000}, map.key_element(), {});
    std::uint64_t const least = HashMap::memory_for(Capacity{1000}, map.key_element(), {});
    EXPECT_EQ(HashMap::from_bytes(bytes, whole).capacity(), 100000);
    HashMap small = HashMap::from_bytes(bytes, whole - 1);
    EXPECT_EQ(small.capacity(), 1000) << "the rows that it uses";
    EXPECT_EQ(to_vector<std::int64_t>(small.keys()), to_vector<std::int64_t>(map.keys()));
    EXPECT_EQ(HashMap::from_bytes(bytes, least).size(), 1000);
    std::string text = message_of<FormatError>([&] { HashMap::from_bytes(bytes, least - 1); });
    EXPECT_NE(text.find("max_bytes=" + std::to_string(least)), std::string::npos) << text;
    Folder folder;
    map.save(folder / "t");
    text = message_of<FormatError>([&] { HashMap::load(folder / "t", 100); });
    EXPECT_NE(text.find("bytes, more than max_bytes=100"), std::string::npos) << text;
}

TEST(UntrustedFiles, a_bounded_table_out_of_proportion_is_refused_until_max_bytes_allows_it) {
    std::string const bytes = bounded_claiming(kMost);
    {
        AddressSpaceLimit limit(256 * kMegabyte);
        std::string text =
            message_of<FormatError>([&] { BoundedHashMap::from_bytes(as_tensor(bytes)); });
        EXPECT_NE(text.find("max_bytes="), std::string::npos) << text;
    }
    std::string const modest = bounded_claiming(2'000'000);
    message_of<FormatError>([&] { BoundedHashMap::from_bytes(as_tensor(modest)); });
    BoundedHashMap table = BoundedHashMap::from_bytes(as_tensor(modest), 1 << 30);
    EXPECT_EQ(table.capacity(), 2'000'000);
    table.validate();
}

TEST(UntrustedFiles, shards_share_one_limit) {
    // Each of the sixty images fits alone.
    std::vector<std::string> const images(60, claiming(1'000'000));
    ShardedHashMap map = ShardedHashMap::from_bytes(as_tensor(sharded(images)));
    EXPECT_EQ(map.capacity(), 0);
    EXPECT_LT(map.memory_usage().total(), 64 * kMegabyte);
    std::vector<std::string> const bounded(60, bounded_claiming(1'000'000));
    std::string text =
        message_of<FormatError>([&] { ShardedHashMap::from_bytes(as_tensor(sharded(bounded))); });
    EXPECT_NE(text.find("max_bytes="), std::string::npos) << text;
}

TEST(UntrustedFiles, sizes_that_overflow_are_refused) {
    for (std::uint64_t top : {std::uint64_t{1}, kMost, kMost + 1, ~std::uint64_t{0}})
        for (std::uint64_t free : {std::uint64_t{0}, kMost, ~std::uint64_t{0}}) {
            std::string bytes = claiming(kMost);
            put(bytes, kCapacityAt + 8, top);
            put(bytes, kCapacityAt + 16, free);
            seal(bytes);
            EXPECT_THROW(HashMap::from_bytes(as_tensor(bytes)), FormatError) << top << " " << free;
        }
    std::string bytes = claiming(0);
    put(bytes, 12, ~std::uint32_t{0});  // columns
    seal(bytes);
    EXPECT_THROW(HashMap::from_bytes(as_tensor(bytes)), FormatError);
}

// The file of a set of bools with these bytes as its keys.
std::string bools(std::vector<unsigned char> const& keys) {
    HashMap map = make_map(Capacity{0}, {Dtype::Bool, {}}, {});
    Tensor both = Tensor::zeros({2}, Dtype::Bool);
    static_cast<unsigned char*>(both.data())[1] = 1;
    map.activate(both);
    std::string bytes = bytes_of(map.to_bytes());
    for (std::size_t i = 0; i < keys.size(); ++i)
        bytes[bytes.size() - 8 - keys.size() + i] = static_cast<char>(keys[i]);
    seal(bytes);
    return bytes;
}

TEST(UntrustedFiles, bool_keys_are_0_or_1_after_loading) {
    EXPECT_THROW(HashMap::from_bytes(as_tensor(bools({2, 1}))), FormatError) << "two Trues";
    EXPECT_THROW(HashMap::from_bytes(as_tensor(bools({255, 128}))), FormatError);
    HashMap map = HashMap::from_bytes(as_tensor(bools({0, 64})));
    map.validate();
    EXPECT_EQ(bytes_of(map.keys()), std::string("\0\1", 2));
    Tensor one = Tensor::zeros({1}, Dtype::Bool);
    *static_cast<unsigned char*>(one.data()) = 1;
    EXPECT_EQ(indices_of(map.find(one)), std::vector<std::int32_t>{1});
}

TEST(UntrustedFiles, bool_values_are_0_or_1_after_loading) {
    HashMap map = make_map(Capacity{0}, {Dtype::Int64, {1}}, {{Dtype::Bool, {3}}});
    map.activate(int64_keys({5}));
    std::string bytes = bytes_of(map.to_bytes());
    bytes[bytes.size() - 10] = 2;
    seal(bytes);
    EXPECT_EQ(bytes_of(HashMap::from_bytes(as_tensor(bytes)).get(int64_keys({5}))[0]),
              std::string("\0\1\0", 3));
}

TEST(ValidateDamage, finds_a_bool_key_that_is_neither_0_nor_1) {
    HashMap map = make_map(Capacity{2}, {Dtype::Bool, {2}}, {});
    map.activate(Tensor::zeros({1, 2}, Dtype::Bool));
    static_cast<unsigned char*>(map.key_tensor().data())[3] = 7;  // a row that is not live
    map.validate();
    static_cast<unsigned char*>(map.key_tensor().data())[1] = 7;
    EXPECT_THROW(map.validate(), CorruptTable);
}

/// Bounded tables with arbitrary clock, uses, scores and last uses.
class ClockAndUses : public ::testing::Test {
protected:
    static constexpr std::size_t kRows = 3;

    explicit ClockAndUses(Eviction eviction = Eviction::Lru) {
        BoundedHashMap table(Capacity{8}, {Dtype::Int64, {1}}, {}, eviction);
        Tensor const scores = eviction == Eviction::Lru
                                  ? Tensor{}
                                  : Tensor::from(std::vector<std::int64_t>{9, -9, 0});
        table.activate(int64_keys({1, 2, 3}), scores);
        table.erase(int64_keys({7}));
        good_ = bytes_of(table.to_bytes());
        BoundedHashMap::from_bytes(as_tensor(good_)).validate();
    }

    /// The file with one number of its head changed.
    std::string with_head(std::size_t at, std::uint64_t number) const {
        std::string bytes = good_;
        put(bytes, at, number);
        seal(bytes, 0, kHead);
        return bytes;
    }
    std::string with_row(std::size_t column, std::size_t row, std::uint64_t number) const {
        std::string bytes = good_;
        put(bytes, bytes.size() - 8 - (2 - column) * kRows * 8 + row * 8, number);
        seal(bytes, kHead, bytes.size());
        return bytes;
    }
    static void refuse(std::string const& bytes, std::string const& part) {
        std::string text =
            message_of<FormatError>([&] { BoundedHashMap::from_bytes(as_tensor(bytes)); });
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    static constexpr std::size_t kClockAt = 16, kUsesAt = 24;
    static constexpr std::size_t kScores = 0, kLastUses = 1;

    std::string good_;
};

TEST_F(ClockAndUses, that_would_overflow_are_refused) {
    for (std::uint64_t number : {~std::uint64_t{0}, std::uint64_t{1} << 63,
                                 (std::uint64_t{1} << 62) - 1, (std::uint64_t{1} << 61) + 1}) {
        refuse(with_head(kClockAt, number), "clock");
        refuse(with_head(kUsesAt, number), "uses");
    }
    for (std::size_t at : {kClockAt, kUsesAt}) {
        BoundedHashMap last =
            BoundedHashMap::from_bytes(as_tensor(with_head(at, std::uint64_t{1} << 61)));
        last.activate(int64_keys({8}));
        last.validate();
    }
}

TEST_F(ClockAndUses, in_the_future_are_refused) {
    refuse(with_head(kClockAt, 0), "future");
    refuse(with_head(kUsesAt, 2), "future");
    refuse(with_row(kScores, 1, 3), "future");
    refuse(with_row(kScores, 1, 0), "before the first batch");
    refuse(with_row(kScores, 1, ~std::uint64_t{0}), "before the first batch");
    refuse(with_row(kLastUses, 1, 3), "future");
    refuse(with_row(kLastUses, 1, 2), "same last use");
}

TEST_F(ClockAndUses, that_contradict_each_other_are_refused) {
    refuse(with_row(kScores, 0, 2), "order");
    BoundedHashMap::from_bytes(as_tensor(with_row(kScores, 2, 2))).validate();
}

class ClockAndUsesByScore : public ClockAndUses {
protected:
    ClockAndUsesByScore() : ClockAndUses(Eviction::Score) {}
};

TEST_F(ClockAndUsesByScore, scores_may_be_anything_but_uses_may_not) {
    BoundedHashMap::from_bytes(as_tensor(with_row(kScores, 0, ~std::uint64_t{0} / 2))).validate();
    refuse(with_row(kLastUses, 0, 1), "same last use");
    refuse(with_head(kUsesAt, 1), "future");
    refuse(with_head(kUsesAt, ~std::uint64_t{0}), "uses");
}

TEST(ValidateDamage, finds_impossible_clocks_and_uses) {
    namespace table = tensorhash::table;
    table::Table entries({Dtype::Int64, {}}, table::with_hidden({}), 4);
    table::Ledger ledger(Eviction::Lru);
    table::BoundedState const state{entries, ledger};
    std::vector<std::int64_t> const keys{5, 6};
    std::vector<std::int64_t> const scores{1, 1};
    std::vector<std::uint64_t> const uses{0, 1};
    std::vector<std::uint32_t> buf_indices(2);
    std::vector<unsigned char> mask(2);
    auto const bytes = [](auto const& rows) { return reinterpret_cast<table::Bytes>(rows.data()); };
    std::vector<table::Bytes> const columns{bytes(scores), bytes(uses)};
    std::vector<tensorhash::Reduce> const last(2, tensorhash::Reduce::Last);
    entries.accumulate(bytes(keys), 2, {columns}, last, {buf_indices.data(), mask.data()});
    EXPECT_THROW(table::validate_uses(state), CorruptTable) << "used before anything happened";
    ledger.end_batch(2);
    table::validate_uses(state);
    ledger.clock = std::uint64_t{1} << 63;
    EXPECT_THROW(table::validate_uses(state), CorruptTable);
    ledger.clock = 1;
    ledger.uses = ~std::uint64_t{0};
    EXPECT_THROW(table::validate_uses(state), CorruptTable);
}

}  // namespace
}  // namespace th_test
