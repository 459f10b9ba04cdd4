// StringIndex through the C++ interface, and its table with hashes that collide.
#include "tensorhash/strings.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "strings/string_table.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/error.hpp"

namespace {

using tensorhash::Dtype;
using tensorhash::StringIndex;
using tensorhash::StringRows;
using tensorhash::Tensor;
namespace strings = tensorhash::strings;

StringRows rows_of(std::vector<std::string> const& list) {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint8_t> bytes;
    for (std::string const& one : list) {
        bytes.insert(bytes.end(), one.begin(), one.end());
        offsets.push_back(static_cast<std::int64_t>(bytes.size()));
    }
    return {Tensor::from(offsets), Tensor::from(bytes, {static_cast<std::int64_t>(bytes.size())})};
}

std::vector<std::int64_t> listed(Tensor const& tensor) {
    auto const span = tensor.as<std::int64_t>();
    return {span.begin(), span.end()};
}

std::vector<std::string> strings_of(StringRows const& rows) {
    auto const offsets = rows.offsets.as<std::int64_t>();
    auto const* const bytes = static_cast<char const*>(rows.bytes.data());
    std::vector<std::string> list;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        list.emplace_back(bytes + offsets[i], bytes + offsets[i + 1]);
    }
    return list;
}

/// Every string in memory of its own.
class Scattered final : public tensorhash::StringSource {
public:
    explicit Scattered(std::vector<std::string> const& list) : list_(list) {}
    std::size_t rows() const noexcept override { return list_.size(); }
    void read(std::size_t begin, std::size_t count, std::string_view* out,
              std::string&) const override {
        for (std::size_t i = 0; i < count; ++i) out[i] = list_[begin + i];
    }

private:
    std::vector<std::string> const& list_;
};

class StringsOverThreads : public th_test::OverThreads {};
TH_OVER_THREADS(StringsOverThreads);

TEST_P(StringsOverThreads, numbers_follow_the_first_occurrence) {
    std::mt19937 random(1);
    std::vector<std::string> list;
    for (int i = 0; i < 40000; ++i) {
        list.push_back(std::string(random() % 30, 'x') + std::to_string(random() % 3000));
    }
    std::map<std::string, std::int64_t> seen;
    std::vector<std::int64_t> expected;
    for (std::string const& one : list) {
        expected.push_back(seen.try_emplace(one, seen.size()).first->second);
    }
    StringIndex index;
    std::vector<std::string> const first(list.begin(), list.begin() + 500);
    EXPECT_EQ(listed(index.insert(rows_of(first))),
              std::vector<std::int64_t>(expected.begin(), expected.begin() + 500));
    EXPECT_EQ(listed(index.insert(rows_of(list))), expected);
    EXPECT_EQ(listed(index.find(rows_of(list))), expected);
    EXPECT_EQ(listed(index.find(Scattered(list))), expected);
    EXPECT_EQ(listed(StringIndex().insert(Scattered(list))), expected);
    EXPECT_EQ(index.size(), static_cast<std::int64_t>(seen.size()));
    EXPECT_EQ(strings_of(index.decode(Tensor::from(expected))), list);
    StringIndex const copy = StringIndex::from_bytes(index.to_bytes());
    EXPECT_EQ(listed(copy.find(rows_of(list))), expected);
    EXPECT_EQ(strings_of(copy.strings()), strings_of(index.strings()));
}

TEST(StringIndex, reads_no_byte_before_the_first_string) {
    // The address sanitizer sees reads outside of exactly these bytes.
    for (std::vector<std::string> const& list : {std::vector<std::string>{},
                                                 {""},
                                                 {"", "", "a", "", "bc", "a"},
                                                 {"abcdefghijklmno", "p"},
                                                 {"abcdefghijklmnop"},
                                                 {"", std::string(40, 'x'), ""}}) {
        std::map<std::string, std::int64_t> seen;
        std::vector<std::int64_t> expected;
        for (std::string const& one : list) {
            expected.push_back(seen.try_emplace(one, seen.size()).first->second);
        }
        StringIndex index;
        EXPECT_EQ(listed(index.insert(rows_of(list))), expected);
        EXPECT_EQ(listed(index.find(Scattered(list))), expected);
    }
}

TEST(StringTable, compares_bytes_if_hashes_are_equal) {
    strings::StringTable table(strings::string_secret_of(1));
    std::vector<std::string> list;
    for (std::size_t size = 0; size < 40; ++size) {
        list.push_back(std::string(size, 'a'));
        list.push_back(std::string(size, 'a') + "b");
        list.push_back(std::string(size, 'a') + std::string(1, '\0'));
    }
    std::map<std::string, std::uint32_t> seen;
    for (std::string const& one : list) {
        auto const expected = seen.try_emplace(one, seen.size()).first->second;
        EXPECT_EQ(table.insert({one, strings::head_of(one), 42}), expected);
    }
    strings::StringTableView const view = table.view();
    EXPECT_EQ(strings::find(view, {"c", strings::head_of("c"), 42}), strings::kNoString);
    for (auto const& [string, number] : seen) {
        EXPECT_EQ(strings::find(view, {string, strings::head_of(string), 42}), number);
        EXPECT_EQ(table.string(number), string);
    }
}

TEST(StringTable, a_head_is_the_same_with_other_bytes_around_the_string) {
    std::string bytes;
    for (int i = 1; i < 100; ++i) bytes.push_back(static_cast<char>(i));
    for (std::size_t size = 0; size < 60; ++size) {
        for (std::size_t const begin : {std::size_t{16}, std::size_t{23}}) {
            EXPECT_TRUE(
                strings::equals(strings::head_of_preceded(bytes.data() + begin, size),
                                strings::head_of(std::string_view(bytes).substr(begin, size))))
                << size;
        }
    }
}

TEST(StringTable, structured_strings_spread_like_random_ones) {
    constexpr std::size_t kCount = 1 << 12;
    using Make = std::string (*)(std::size_t);
    Make const kinds[] = {
        [](std::size_t i) { return std::to_string(i); },
        [](std::size_t i) { return std::to_string(i * 1'000'000); },
        [](std::size_t i) { return std::string(i % 256, 'a') + std::to_string(i / 256); },
        [](std::size_t i) { return std::string(i, '\0'); },
        [](std::size_t i) { return "https://example.org/items/" + std::to_string(i) + "/view"; },
        [](std::size_t i) { return std::string(reinterpret_cast<char const*>(&i), 8); },
        [](std::size_t i) {
            std::string one(24, 'a');  // one bit in each of twelve pairs of bytes
            for (std::size_t bit = 0; bit < 12; ++bit) one[2 * bit] ^= i >> bit & 1 ? 2 : 0;
            return one;
        }};
    for (Make const make : kinds) {
        for (std::uint64_t const seed : {1, 2, 3}) {
            strings::StringTable table(strings::string_secret_of(seed));
            for (std::size_t i = 0; i < kCount; ++i) table.insert(table.query(make(i)));
            strings::StringTableView const view = table.view();
            std::size_t full = 0;
            for (std::size_t i = 0; i <= view.mask; ++i) {
                full += view.buckets[i].tags[strings::kSlots - 1] != 0 ? 1 : 0;
            }
            // At most half of the slots are in use: of random strings, 5 % of the buckets are full.
            EXPECT_LE(full, (view.mask + 1) / 8) << make(7) << " with seed " << seed;
        }
    }
}

TEST(StringTable, hashes_of_all_sizes_differ) {
    auto const secret = strings::string_secret_of(3);
    std::map<std::uint64_t, std::string> seen;
    for (std::size_t size = 0; size < 70; ++size) {
        for (char const last : {'\0', 'a'}) {
            std::string one(size, '\0');
            if (size > 0) one.back() = last;
            auto const hash = strings::hash_of(one, strings::head_of(one), secret);
            auto const [at, is_new] = seen.try_emplace(hash, one);
            EXPECT_TRUE(is_new || at->second == one);
        }
    }
}

TEST(StringIndexErrors, name_what_was_expected) {
    StringIndex index;
    EXPECT_THROW(index.decode(Tensor::from(std::vector<std::int64_t>{0})), tensorhash::IndexError);
    StringRows bad = rows_of({"a"});
    bad.offsets = Tensor::from(std::vector<std::int64_t>{0, 2});
    EXPECT_THROW(index.insert(bad), tensorhash::ValueError);
    bad.offsets = Tensor::from(std::vector<std::int64_t>{1, 0});
    EXPECT_THROW(index.insert(bad), tensorhash::ValueError);
    EXPECT_EQ(index.size(), 0);
}

}  // namespace
