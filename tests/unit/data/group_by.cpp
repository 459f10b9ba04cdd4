// Group-by and joins through the C++ interface against plain loops, on 1, 2 and 8 threads, and the
// parts that they are made of.
#include "tensorhash/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "cpu/partition.hpp"
#include "cpu/word_numbers.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/error.hpp"

namespace {

using tensorhash::Dtype;
using tensorhash::Tensor;
namespace cpu = tensorhash::cpu;
namespace data = tensorhash::data;

class DataOverThreads : public th_test::OverThreads {};
TH_OVER_THREADS(DataOverThreads);

std::vector<std::int64_t> spread_keys(std::size_t rows, std::uint64_t groups) {
    std::mt19937_64 random(groups);
    std::vector<std::int64_t> keys(rows);
    for (std::int64_t& key : keys) {
        key = static_cast<std::int64_t>(random() % groups * 0x1e3779b97f4a7c15u);
    }
    return keys;
}

struct Expected {
    std::vector<std::int64_t> keys;
    std::vector<double> sums;
    std::vector<std::int64_t> first_rows;
};

Expected loop_over(std::vector<std::int64_t> const& keys, std::vector<double> const& values) {
    Expected out;
    std::map<std::int64_t, std::size_t> group_of;
    for (std::size_t row = 0; row < keys.size(); ++row) {
        auto const [at, is_new] = group_of.try_emplace(keys[row], out.keys.size());
        if (is_new) {
            out.keys.push_back(keys[row]);
            out.sums.push_back(values[row]);
            out.first_rows.push_back(static_cast<std::int64_t>(row));
        } else {
            out.sums[at->second] += values[row];
        }
    }
    return out;
}

template <class T>
std::vector<T> listed(Tensor const& tensor) {
    auto const span = tensor.as<T>();
    return {span.begin(), span.end()};
}

TEST_P(DataOverThreads, sums_have_the_bits_of_a_loop) {
    constexpr std::size_t rows = 140000;
    std::mt19937 random(1);
    std::normal_distribution<double> normal(0, 1e6);
    std::vector<double> values(rows);
    for (double& value : values) value = normal(random);
    for (std::uint64_t const groups : {1u, 100u, 5000u, 100000u}) {
        std::vector<std::int64_t> const keys = spread_keys(rows, groups);
        Expected const expected = loop_over(keys, values);
        auto const got =
            data::group_by(Tensor::from(keys), {{data::Aggregate::Sum, Tensor::from(values)}});
        EXPECT_EQ(listed<std::int64_t>(got.keys), expected.keys);
        EXPECT_EQ(listed<std::int64_t>(got.first_rows), expected.first_rows);
        EXPECT_EQ(listed<double>(got.columns[0]), expected.sums);
    }
}

struct Pairs {
    std::vector<std::int64_t> left, right;
    void add(std::int64_t one, std::int64_t other) {
        left.push_back(one);
        right.push_back(other);
    }
};

Pairs pairs_of_a_loop(std::vector<std::int64_t> const& left, std::vector<std::int64_t> const& right,
                      data::How how) {
    std::map<std::int64_t, std::vector<std::int64_t>> places;
    for (std::size_t row = 0; row < right.size(); ++row) {
        places[right[row]].push_back(static_cast<std::int64_t>(row));
    }
    std::vector<bool> is_met(right.size());
    Pairs out;
    for (std::size_t row = 0; row < left.size(); ++row) {
        auto const at = static_cast<std::int64_t>(row);
        auto const found = places.find(left[row]);
        if (found == places.end()) {
            if (how != data::How::Inner && how != data::How::Semi) out.add(at, -1);
            continue;
        }
        for (std::int64_t const other : found->second) {
            is_met[static_cast<std::size_t>(other)] = true;
            bool const is_first = other == found->second[0];
            if (how != data::How::Anti && (is_first || how != data::How::Semi)) out.add(at, other);
        }
    }
    for (std::size_t row = 0; how == data::How::Full && row < right.size(); ++row) {
        if (!is_met[row]) out.add(-1, static_cast<std::int64_t>(row));
    }
    return out;
}

TEST_P(DataOverThreads, joins_pair_equal_rows_in_order) {
    std::vector<std::int64_t> distinct = spread_keys(20000, 20000);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::shuffle(distinct.begin(), distinct.end(), std::mt19937_64(4));
    std::vector<std::int64_t> const all = spread_keys(30000, 20000), one{all[7]}, none;
    for (auto const* const left : {&all, &one, &none}) {
        for (auto const& right : {spread_keys(20000, 9000), distinct, one, none}) {
            for (data::How const how : {data::How::Inner, data::How::Left, data::How::Full,
                                        data::How::Semi, data::How::Anti}) {
                Pairs const expected = pairs_of_a_loop(*left, right, how);
                auto const got = data::join(Tensor::from(*left), Tensor::from(right), how);
                EXPECT_EQ(listed<std::int64_t>(got.left), expected.left);
                EXPECT_EQ(listed<std::int64_t>(got.right), expected.right);
            }
        }
    }
}

/// Column k of the values is the word plus k.
class Words final : public cpu::PartitionSource {
public:
    explicit Words(std::vector<std::uint64_t> words) : words_(std::move(words)) {}
    void read(std::size_t begin, std::size_t count, std::uint64_t* words,
              std::uint64_t* const* room, std::uint64_t const** values) const override {
        std::copy_n(words_.data() + begin, count, words);
        values[0] = words_.data() + begin;
        for (std::size_t k = 1; k < cpu::kMaxCarried; ++k) {
            for (std::size_t i = 0; i < count; ++i) room[k][i] = words[i] + k;
            values[k] = room[k];
        }
    }

private:
    std::vector<std::uint64_t> words_;
};

TEST_P(DataOverThreads, a_partition_keeps_all_rows_in_order) {
    std::mt19937_64 random(2);
    for (std::size_t const rows : {0u, 1u, 255u, 5000u, 200001u}) {
        std::vector<std::uint64_t> words(rows);
        for (std::uint64_t& word : words) word = random() % 7 == 0 ? 5 : random();
        for (std::size_t carried = 0; carried <= cpu::kMaxCarried; ++carried) {
            cpu::Partition const parts(Words(words), rows, carried);
            std::size_t seen = 0;
            for (std::size_t part = 0; part < cpu::kParts; ++part) {
                std::int64_t last = -1;
                std::size_t of_part = 0;
                parts.for_blocks(part, [&](cpu::PartBlock const& block) {
                    for (std::size_t i = 0; i < block.count; ++i) {
                        ASSERT_GT(std::int64_t{block.rows[i]}, last);
                        last = block.rows[i];
                        ASSERT_EQ(block.words[i], words[block.rows[i]]);
                        ASSERT_EQ(block.words[i] >> (64 - cpu::kPartBits), part);
                        for (std::size_t k = 0; k < carried; ++k) {
                            ASSERT_EQ(block.values[k][i], block.words[i] + k);
                        }
                    }
                    of_part += block.count;
                });
                EXPECT_EQ(of_part, parts.rows(part));
                seen += of_part;
            }
            EXPECT_EQ(seen, rows);
        }
    }
}

TEST(WordNumbers, numbers_words_in_order_and_grows) {
    std::vector<std::uint64_t> words{7, 0, 7, 0, 9};  // 0 marks an empty slot
    for (std::uint64_t i = 0; i < 5000; ++i) words.push_back(i * i << 8);
    cpu::WordNumbers table;
    table.reset(1);
    std::vector<std::uint32_t> numbers(words.size());
    EXPECT_EQ(table.number(words.data(), nullptr, 100, words.size(), numbers.data()), words.size());
    std::map<std::uint64_t, std::uint32_t> expected;
    for (std::size_t i = 0; i < words.size(); ++i) {
        auto const [at, is_new] =
            expected.try_emplace(words[i], static_cast<std::uint32_t>(expected.size()));
        ASSERT_EQ(numbers[i], at->second) << i;
        if (is_new) {
            ASSERT_EQ(table.rows()[at->second], 100 + i);
            ASSERT_EQ(table.words()[at->second], words[i]);
        }
    }
    EXPECT_EQ(table.count(), expected.size());
    std::vector<std::uint64_t> const queries{0, 9, 11};
    std::vector<std::uint32_t> found(3);
    table.look_up(queries.data(), 3, found.data());
    EXPECT_EQ(found, (std::vector<std::uint32_t>{1, 2, cpu::kNoWord}));
}

TEST(WordNumbers, stops_before_it_has_more_than_it_may) {
    std::vector<std::uint64_t> const words{1, 2, 1, 3, 1};
    std::vector<std::uint32_t> numbers(5);
    cpu::WordNumbers table;
    table.reset(10);
    EXPECT_EQ(table.number(words.data(), nullptr, 0, 5, numbers.data(), 2), 3u);
    EXPECT_EQ(table.count(), 2u);
}

TEST(GroupByStream, has_the_bits_of_one_call) {
    std::vector<std::int64_t> const keys = spread_keys(9000, 700);
    std::vector<double> values(keys.size());
    std::mt19937 random(3);
    for (double& value : values) value = std::normal_distribution<double>(0, 1e3)(random);
    data::GroupBy stream({Dtype::Int64, {}},
                         {{data::Aggregate::Sum, {Dtype::Float64, {}}}, {data::Aggregate::Count}});
    for (std::size_t begin = 0; begin < keys.size(); begin += 1234) {
        std::size_t const end = std::min(keys.size(), begin + 1234);
        auto const at = static_cast<std::ptrdiff_t>(begin);
        auto const to = static_cast<std::ptrdiff_t>(end);
        stream.update(Tensor::from(std::vector(keys.begin() + at, keys.begin() + to)),
                      {Tensor::from(std::vector(values.begin() + at, values.begin() + to)), {}});
    }
    Expected const expected = loop_over(keys, values);
    auto const got = stream.result();
    EXPECT_EQ(listed<std::int64_t>(got.keys), expected.keys);
    EXPECT_EQ(listed<std::int64_t>(got.first_rows), expected.first_rows);
    EXPECT_EQ(listed<double>(got.columns[0]), expected.sums);
    EXPECT_EQ(stream.rows(), 9000);
    EXPECT_EQ(stream.groups(), static_cast<std::int64_t>(expected.keys.size()));
}

TEST(DataErrors, name_what_was_expected) {
    EXPECT_THROW(data::aggregate_from_name("total"), tensorhash::ValueError);
    EXPECT_THROW(data::how_from_name("outer"), tensorhash::ValueError);
    Tensor const keys = Tensor::from(std::vector<std::int64_t>{1, 2});
    EXPECT_THROW(data::group_by(keys, {{data::Aggregate::Sum}}), tensorhash::ValueError);
    EXPECT_THROW(
        data::group_by(keys, {{data::Aggregate::Sum, Tensor::from(std::vector<double>{1})}}),
        tensorhash::ValueError);
}

}  // namespace
