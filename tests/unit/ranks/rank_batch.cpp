// RankBatch against plain loops: which rank owns a key, which rows travel, what comes back. The
// rule is computed here from its definition, byte by byte. Over 400 lines: all tests share one
// plain loop.
#include "tensorhash/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "support/fixtures.hpp"
#include "table/table.hpp"
#include "tensorhash/error.hpp"

namespace th_test {
namespace {

using tensorhash::RankBatch;
using tensorhash::ValueError;
using Counts = std::vector<std::int64_t>;

/// "murmur64-v1" of a key's bytes, padded with zeros to whole words.
std::int64_t rank_of(std::string key, std::uint64_t ranks) {
    key.resize((key.size() + 7) / 8 * 8);
    std::uint64_t mixed = 0x2545f4914f6cdd1dull;
    for (std::size_t at = 0; at < key.size(); at += 8) {
        std::uint64_t word;
        std::memcpy(&word, key.data() + at, 8);
        mixed ^= word;
        mixed = (mixed ^ mixed >> 33) * 0xff51afd7ed558ccdull;
        mixed = (mixed ^ mixed >> 33) * 0xc4ceb9fe1a85ec53ull;
        mixed ^= mixed >> 33;
    }
    return static_cast<std::int64_t>((mixed >> 32) * ranks >> 32);
}

std::int64_t rank_of(std::int64_t key, std::uint64_t ranks) {
    return rank_of(std::string(reinterpret_cast<char const*>(&key), 8), ranks);
}

Element const kInt64{Dtype::Int64, {}};

std::vector<std::int64_t> random_keys(std::size_t rows, std::int64_t most) {
    std::vector<std::int64_t> keys(rows);
    std::uint64_t state = rows;
    for (auto& key : keys) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        key = static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(most));
    }
    return keys;
}

/// All rows of a column, packed in two steps of different sizes.
Tensor packed(RankBatch const& batch, std::int64_t column, std::size_t rows, Dtype dtype) {
    auto const count = static_cast<std::int64_t>(rows);
    Tensor to = Tensor::empty({count}, dtype);
    batch.pack(column, 0, count / 3, to, 0);
    batch.pack(column, count / 3, count, to, count / 3);
    return to;
}

/// Runs `check` on 1, 2 and 8 threads.
template <class Check>
void on_threads(Check const& check) {
    for (int const threads : {1, 2, 8}) {
        Threads const set(threads);
        check();
    }
}

TEST(RankBatch, rows_are_grouped_by_rank_in_row_order) {
    for (std::int64_t const ranks : {1, 2, 7, 300}) {
        for (std::size_t const rows : {0, 1, 63, 50'000}) {
            std::vector<std::int64_t> const keys = random_keys(rows, 1 << 30);
            std::vector<std::vector<std::int64_t>> groups(static_cast<std::size_t>(ranks));
            for (std::int64_t const key : keys)
                groups[static_cast<std::size_t>(rank_of(key, static_cast<std::uint64_t>(ranks)))]
                    .push_back(key);
            std::vector<std::int64_t> wanted;
            Counts counts;
            for (auto const& group : groups) {
                wanted.insert(wanted.end(), group.begin(), group.end());
                counts.push_back(static_cast<std::int64_t>(group.size()));
            }
            on_threads([&] {
                Tensor const given = Tensor::from(keys);
                RankBatch batch(kInt64, {kInt64}, ranks);
                batch.take(given, {given});
                EXPECT_EQ(batch.counts(), counts);
                for (std::int64_t const column : {0, 1})
                    EXPECT_EQ(to_vector<std::int64_t>(packed(batch, column, rows, Dtype::Int64)),
                              wanted);
            });
        }
    }
}

TEST(RankBatch, answers_come_back_to_the_callers_rows) {
    std::size_t const rows = 20'000;
    std::vector<std::int64_t> const keys = random_keys(rows, 1 << 30);
    on_threads([&] {
        RankBatch batch(kInt64, {}, 5);
        batch.take(Tensor::from(keys), {});
        Tensor const order = packed(batch, 0, rows, Dtype::Int64);
        // The answer of a key is a function of the key, so that each row's is known.
        auto const index = [](std::int64_t key) { return static_cast<std::int32_t>(key % 1000); };
        std::vector<std::int32_t> answers;
        Tensor mask = Tensor::empty({static_cast<std::int64_t>(rows)}, Dtype::Bool);
        for (std::size_t at = 0; at < rows; ++at) {
            std::int64_t const key = order.as<std::int64_t>()[at];
            answers.push_back(key % 3 == 0 ? ~index(key) : index(key));
            mask.as_mutable<bool>()[at] = key % 3 == 0;
        }
        Tensor const grouped = Tensor::from(answers);
        auto const marked = batch.answers(grouped, true);
        auto const found = batch.answers(grouped, false);
        Tensor const back = batch.mask(mask, false);
        auto const places = to_vector<std::int32_t>(batch.places());
        for (std::size_t row = 0; row < rows; ++row) {
            std::int64_t const key = keys[row];
            std::int64_t const place = rank_of(key, 5) << 32 | index(key);
            ASSERT_EQ(marked.places.as<std::int64_t>()[row], place);
            ASSERT_EQ(marked.mask.as<bool>()[row], key % 3 != 0);
            ASSERT_EQ(found.places.as<std::int64_t>()[row], key % 3 == 0 ? -1 : place);
            ASSERT_EQ(found.mask.as<bool>()[row], key % 3 != 0);
            ASSERT_EQ(back.as<bool>()[row], key % 3 == 0);
            ASSERT_EQ(order.as<std::int64_t>()[static_cast<std::size_t>(places[row])], key);
        }
    });
}

TEST(RankBatch, many_equal_keys_travel_once_with_their_values_joined) {
    std::size_t const rows = 30'000;
    std::vector<std::int64_t> const keys = random_keys(rows, 500);
    std::map<std::int64_t, std::int64_t> sums;
    std::map<std::int64_t, std::size_t> firsts;
    for (std::size_t row = 0; row < rows; ++row) {
        sums[keys[row]] += keys[row] * 3 + 1;
        firsts.emplace(keys[row], row);
    }
    std::vector<std::int64_t> values;
    for (std::int64_t const key : keys) values.push_back(key * 3 + 1);
    on_threads([&] {
        RankBatch batch(kInt64, {kInt64}, 3);
        batch.take_joined(Tensor::from(keys), {Tensor::from(values)}, {tensorhash::Reduce::Sum});
        std::size_t const sent = sums.size();
        Tensor const order = packed(batch, 0, sent, Dtype::Int64);
        Tensor const joined = packed(batch, 1, sent, Dtype::Int64);
        Tensor all = Tensor::empty({static_cast<std::int64_t>(sent)}, Dtype::Bool);
        for (std::size_t at = 0; at < sent; ++at) {
            ASSERT_EQ(joined.as<std::int64_t>()[at], sums.at(order.as<std::int64_t>()[at]));
            all.as_mutable<bool>()[at] = true;
        }
        Tensor const first = batch.mask(all, true);
        std::vector<std::int32_t> const answers(sent, 9);
        auto const marked = batch.answers(Tensor::from(answers), true);
        for (std::size_t row = 0; row < rows; ++row) {
            ASSERT_EQ(first.as<bool>()[row], firsts.at(keys[row]) == row);
            ASSERT_EQ(marked.mask.as<bool>()[row], firsts.at(keys[row]) == row);
            ASSERT_EQ(marked.places.as<std::int64_t>()[row], rank_of(keys[row], 3) << 32 | 9);
        }
    });
}

/// The number of rows that travel.
std::size_t joined(std::vector<std::int64_t> const& keys) {
    RankBatch batch(kInt64, {}, 2);
    batch.take_joined(Tensor::from(keys), {}, {});
    return static_cast<std::size_t>(batch.counts()[0] + batch.counts()[1]);
}

TEST(RankBatch, all_rows_travel_unless_about_a_third_repeat_a_key) {
    std::size_t const rows = 400'000;
    std::vector<std::int64_t> keys(rows);
    auto const fill = [&keys](auto const& key_of) {
        for (std::size_t row = 0; row < rows; ++row)
            keys[row] = static_cast<std::int64_t>(key_of(row));
    };
    fill([](std::size_t row) { return row < 1000 ? 7 : row; });
    EXPECT_EQ(joined(keys), rows);
    fill([](std::size_t row) { return row % 20 == 3 ? 7 : row; });  // one key is everywhere
    EXPECT_EQ(joined(keys), rows);
    fill([](std::size_t row) { return row % 20 == 3 ? row - 1 : row; });  // a few neighbours
    EXPECT_EQ(joined(keys), rows);
    fill([](std::size_t row) { return row < rows / 20 ? row + rows / 2 : row; });  // far apart
    EXPECT_EQ(joined(keys), rows);

    fill([](std::size_t row) { return row / 2; });
    EXPECT_EQ(joined(keys), rows / 2);
    fill([](std::size_t row) { return row % (rows / 2); });
    EXPECT_EQ(joined(keys), rows / 2);
    fill([](std::size_t row) { return row % 2 == 0 ? 7 : row; });
    EXPECT_EQ(joined(keys), rows / 2);
    keys = random_keys(rows, 100'000);
    EXPECT_LE(joined(keys), 100'000u);
    keys = {5, 5, 5, 6};
    EXPECT_EQ(joined(keys), 2u);
}

TEST(RankBatch, keys_and_places_stay_when_the_caller_changes_its_array) {
    std::vector<std::int64_t> const keys = random_keys(1000, 1 << 30);
    Tensor given = Tensor::from(keys);
    RankBatch batch(kInt64, {}, 3);
    batch.take(given, {});
    Tensor const before = packed(batch, 0, keys.size(), Dtype::Int64);
    for (auto& key : given.as_mutable<std::int64_t>()) key = 0;
    Tensor const after = packed(batch, 0, keys.size(), Dtype::Int64);
    EXPECT_EQ(to_vector<std::int64_t>(after), to_vector<std::int64_t>(before));
    EXPECT_NE(to_vector<std::int64_t>(after), to_vector<std::int64_t>(given));
}

TEST(RankBatch, strided_arrays_are_read_row_by_row) {
    std::vector<std::int64_t> pairs = random_keys(2000, 1 << 30);
    Tensor const columns[] = {
        Tensor::borrow_strided(pairs.data(), {1000}, {16}, Dtype::Int64, true),
        Tensor::borrow_strided(pairs.data() + 1999, {1000}, {-16}, Dtype::Int64, true)};
    RankBatch strided(kInt64, {kInt64}, 3), plain(kInt64, {kInt64}, 3);
    strided.take(columns[0], {columns[1]});
    plain.take(columns[0].contiguous(), {columns[1].contiguous()});
    EXPECT_EQ(strided.counts(), plain.counts());
    for (std::int64_t const column : {0, 1})
        EXPECT_EQ(to_vector<std::int64_t>(packed(strided, column, 1000, Dtype::Int64)),
                  to_vector<std::int64_t>(packed(plain, column, 1000, Dtype::Int64)));
}

TEST(RankBatch, a_second_batch_replaces_the_first) {
    std::vector<std::int64_t> const few = random_keys(1000, 20), many = random_keys(500, 1 << 30);
    RankBatch batch(kInt64, {kInt64}, 3), fresh(kInt64, {kInt64}, 3);
    batch.take_joined(Tensor::from(few), {Tensor::from(few)}, {tensorhash::Reduce::Sum});
    EXPECT_THROW(batch.take(Tensor::from(many), {}), ValueError);
    EXPECT_EQ(batch.places().size(), 1000);  // an error changes nothing
    batch.take(Tensor::from(many), {Tensor::from(many)});
    fresh.take(Tensor::from(many), {Tensor::from(many)});
    EXPECT_EQ(batch.counts(), fresh.counts());
    EXPECT_EQ(to_vector<std::int32_t>(batch.places()), to_vector<std::int32_t>(fresh.places()));
}

TEST(RankBatch, an_empty_batch_has_empty_answers) {
    Tensor const none = Tensor::empty({0}, Dtype::Int64);
    Tensor const answers = Tensor::empty({0}, Dtype::Int32), mask = Tensor::empty({0}, Dtype::Bool);
    RankBatch batch(kInt64, {kInt64}, 3);
    batch.take_joined(none, {none}, {tensorhash::Reduce::Sum});
    EXPECT_EQ(batch.counts(), (Counts{0, 0, 0}));
    EXPECT_EQ(batch.answers(answers, true).places.size(), 0);
    EXPECT_EQ(batch.answers(answers, false).mask.size(), 0);
    EXPECT_EQ(batch.mask(mask, true).size(), 0);
    batch.take_question(none, {});
    EXPECT_EQ(batch.values({none}, mask)[0].shape(), (Shape{0}));
    EXPECT_EQ(tensorhash::rank_of_keys(none, kInt64, 3).size(), 0);
    EXPECT_EQ(tensorhash::rows_where(answers, true).size(), 0);
}

TEST(RankBatch, rows_that_do_not_fit_are_refused) {
    Tensor const keys = Tensor::from<std::int64_t>({1, 2, 3});
    Tensor found = Tensor::zeros({3}, Dtype::Bool);
    found.as_mutable<bool>()[1] = true;
    RankBatch batch(kInt64, {kInt64}, 2);
    batch.take_question(keys, {});
    EXPECT_THROW(batch.values({}, found), ValueError);
    EXPECT_THROW(batch.values({keys}, found), ValueError);  // one row is found
    EXPECT_THROW(batch.values({Tensor::zeros({1}, Dtype::Int32)}, found), ValueError);
    EXPECT_THROW(batch.values({Tensor::zeros({1}, Dtype::Int64)}, Tensor::zeros({3}, Dtype::UInt8)),
                 tensorhash::TypeError);
    EXPECT_EQ(
        to_vector<std::int64_t>(batch.values({Tensor::from<std::int64_t>({9})}, found)[0]).size(),
        3u);
    EXPECT_THROW(batch.answers(Tensor::zeros({2}, Dtype::Int32), true), ValueError);
    EXPECT_THROW(batch.mask(Tensor::zeros({4}, Dtype::Bool), false), ValueError);
    Tensor to = Tensor::zeros({2}, Dtype::Int64), narrow = Tensor::zeros({9}, Dtype::Int32);
    EXPECT_THROW(batch.pack(1, 0, 1, to, 0), tensorhash::IndexError);  // only keys travel
    EXPECT_THROW(batch.pack(0, 0, 3, to, 0), ValueError);
    EXPECT_THROW(batch.pack(0, 2, 1, to, 0), ValueError);
    EXPECT_THROW(batch.pack(0, 0, 1, to, -1), ValueError);
    EXPECT_THROW(batch.pack(0, 0, 1, narrow, 0), ValueError);
    EXPECT_THROW(tensorhash::pack_rows(keys, keys, 0, 1, to, 0), tensorhash::TypeError);
    RankBatch bare(kInt64, {}, 2);
    using tensorhash::Reduce;
    EXPECT_THROW(bare.take_joined(keys, {}, {Reduce::Sum, Reduce::Sum}), ValueError);
}

/// The values of keys that are found unless `lost` divides them. Those of rank `own` lie in a
/// buffer, in reverse order; the others are received.
std::vector<std::int64_t> with_own_rows(RankBatch const& batch, Tensor const& order,
                                        std::int64_t lost, std::int64_t own) {
    constexpr std::int64_t kBefore = 3;  // indices of other keys
    std::vector<std::int64_t> received, buffer;
    std::vector<std::int32_t> indices(kBefore, 1);
    std::vector<bool> found;
    for (std::int64_t const key : order.as<std::int64_t>()) {
        if (rank_of(key, 4) != own) {
            found.push_back(key % lost != 0);
            if (key % lost != 0) received.push_back(key * 2);
        } else if (key % lost != 0) {
            indices.push_back(static_cast<std::int32_t>(buffer.size()));
            buffer.push_back(key * 2);
        } else {
            indices.push_back(-1);
        }
    }
    std::reverse(buffer.begin(), buffer.end());
    for (std::size_t at = kBefore; at < indices.size(); ++at)
        if (indices[at] >= 0)
            indices[at] = static_cast<std::int32_t>(buffer.size()) - 1 - indices[at];
    Tensor mask = Tensor::empty({static_cast<std::int64_t>(found.size())}, Dtype::Bool);
    std::copy(found.begin(), found.end(), mask.as_mutable<bool>().begin());
    tensorhash::OwnRows const rows{own, Tensor::from(indices), kBefore, {Tensor::from(buffer)}};
    return to_vector<std::int64_t>(batch.values({Tensor::from(received)}, mask, rows)[0]);
}

TEST(RankBatch, own_rows_that_do_not_fit_are_refused) {
    RankBatch batch(kInt64, {kInt64}, 1);
    Tensor const keys = Tensor::from<std::int64_t>({1, 2, 3});
    batch.take_question(keys, {});
    Tensor const none = Tensor::empty({0}, Dtype::Int64), mask = Tensor::empty({0}, Dtype::Bool);
    auto const values = [&](tensorhash::OwnRows const& own) {
        return to_vector<std::int64_t>(batch.values({none}, mask, own)[0]);
    };
    Tensor const indices = Tensor::from<std::int32_t>({0, 0, -1, 2});
    EXPECT_EQ(values({0, indices, 1, {keys}}), (std::vector<std::int64_t>{1, 0, 3}));
    EXPECT_THROW(values({1, indices, 1, {keys}}), tensorhash::IndexError);
    EXPECT_THROW(values({0, indices, 2, {keys}}), ValueError);
    EXPECT_THROW(values({0, indices, -1, {keys}}), ValueError);
    EXPECT_THROW(values({0, indices, 1, {}}), ValueError);
    EXPECT_THROW(values({0, keys, 0, {keys}}), tensorhash::TypeError);
    EXPECT_THROW(values({}), ValueError);  // then all three rows need a mask
}

TEST(RankBatch, values_of_found_keys_and_defaults_of_the_others) {
    for (std::int64_t const most : {std::int64_t{1} << 30, std::int64_t{400}}) {
        for (std::int64_t const lost : {3, 1 << 30}) {  // the second loses no key
            std::size_t const rows = 20'000;
            std::vector<std::int64_t> keys = random_keys(rows, most);
            for (auto& key : keys) key += 1;
            on_threads([&] {
                RankBatch batch(kInt64, {kInt64}, 4);
                batch.take_question(Tensor::from(keys),
                                    {Tensor::from<std::int64_t>({-5}, Shape{1}).reshape({})});
                std::size_t sent = 0;
                for (std::int64_t const count : batch.counts())
                    sent += static_cast<std::size_t>(count);
                EXPECT_EQ(sent < rows / 2, most == 400);
                Tensor const order = packed(batch, 0, sent, Dtype::Int64);
                Tensor found = Tensor::empty({static_cast<std::int64_t>(sent)}, Dtype::Bool);
                std::vector<std::int64_t> received;
                for (std::size_t at = 0; at < sent; ++at) {
                    std::int64_t const key = order.as<std::int64_t>()[at];
                    found.as_mutable<bool>()[at] = key % lost != 0;
                    if (key % lost != 0) received.push_back(key * 2);
                }
                Tensor const values = batch.values({Tensor::from(received)}, found)[0];
                std::vector<std::int64_t> wanted;
                for (std::int64_t const key : keys)
                    wanted.push_back(key % lost == 0 ? -5 : key * 2);
                EXPECT_EQ(to_vector<std::int64_t>(values), wanted);
                for (std::int64_t const own : {0, 2, 3})
                    EXPECT_EQ(with_own_rows(batch, order, lost, own), wanted);
                EXPECT_EQ(tensorhash::count_true(found, {0, static_cast<std::int64_t>(sent)}),
                          (Counts{0, static_cast<std::int64_t>(received.size())}));
            });
        }
    }
}

TEST(RankBatch, owners_select_and_copy_rows) {
    std::vector<std::int32_t> const indices{4, -1, 0, -7, 9};
    Tensor const index = Tensor::from(indices);
    EXPECT_EQ(to_vector<std::int32_t>(tensorhash::rows_where(index, true)),
              (std::vector<std::int32_t>{0, 2, 4}));
    EXPECT_EQ(to_vector<std::int32_t>(tensorhash::rows_where(index, false)),
              (std::vector<std::int32_t>{1, 3}));
    Tensor const places = Tensor::from<std::int32_t>({3, 5, 8});
    Tensor mask = Tensor::zeros({3}, Dtype::Bool);
    mask.as_mutable<bool>()[1] = true;
    EXPECT_EQ(to_vector<std::int32_t>(tensorhash::marked_indices(places, mask)),
              (std::vector<std::int32_t>{~3, 5, ~8}));
    Tensor to = Tensor::zeros({4}, Dtype::Int32);
    tensorhash::pack_rows(index, Tensor::from<std::int32_t>({4, 2, 0}), 1, 3, to, 2);
    EXPECT_EQ(to_vector<std::int32_t>(to), (std::vector<std::int32_t>{0, 0, 0, 4}));
    EXPECT_THROW(tensorhash::pack_rows(index, places, 0, 3, to, 2), ValueError);
    EXPECT_THROW(tensorhash::count_true(mask, {2, 2}), ValueError);
    EXPECT_THROW(RankBatch(kInt64, {}, 0), ValueError);
    EXPECT_THROW(RankBatch(kInt64, {}, tensorhash::kMaxRanks + 1), ValueError);
}

TEST(RankRouting, keys_of_every_width_have_the_rank_of_their_bytes) {
    for (std::int64_t const width : {1, 3, 4, 7, 8, 9, 12, 16, 23}) {
        Element const key{Dtype::UInt8, {width}};
        Tensor const keys = make_keys(key, random_ids(5000, 4000, key.bytes()));
        Tensor const ranks = tensorhash::rank_of_keys(keys, key, 97);
        Rows const rows = rows_of(keys, key);
        for (std::size_t row = 0; row < rows.count; ++row)
            ASSERT_EQ(ranks.as<std::int64_t>()[row], rank_of(std::string(rows[row]), 97)) << width;
    }
    Tensor const floats = Tensor::from<float>({0.0f, -0.0f, NAN, -NAN});
    Tensor const ranks = tensorhash::rank_of_keys(floats, {Dtype::Float32, {}}, 997);
    EXPECT_EQ(ranks.as<std::int64_t>()[0], ranks.as<std::int64_t>()[1]);
    EXPECT_EQ(ranks.as<std::int64_t>()[2], ranks.as<std::int64_t>()[3]);
}

/// Mean number of buckets that lookups of these keys probe, in a table that holds them.
double mean_probe(std::vector<std::int64_t> const& keys) {
    tensorhash::table::Table table({Dtype::Int64, {}}, {}, keys.size());
    std::vector<std::uint32_t> where(keys.size());
    std::vector<unsigned char> mask(keys.size());
    auto const* const bytes = reinterpret_cast<unsigned char const*>(keys.data());
    table.activate(bytes, keys.size(), {where.data(), mask.data()});
    return table.probe_lengths(bytes, keys.size()).mean;
}

TEST(RankRouting, the_rank_hash_is_independent_of_the_table_hash) {
    // Checkpoints name this rule, so it is frozen.
    std::int64_t const frozen[] = {5, 6, 7, 5, 5, 1, 7, 3, 6, 2, 3, 7};
    for (std::int64_t key = 0; key < 12; ++key) EXPECT_EQ(rank_of(key, 8), frozen[key]);
    for (std::uint64_t ranks : {2u, 3u, 4u, 64u}) {
        // If the hashes were related, the keys of one rank would crowd a part of its table.
        // `others` is the unfiltered sequence.
        for (std::int64_t stride : {std::int64_t{1}, std::int64_t{16}, std::int64_t{1} << 32}) {
            std::vector<std::int64_t> mine, others;
            for (std::int64_t i = 0; mine.size() < 30000; ++i)
                if (rank_of(i * stride, ranks) == static_cast<std::int64_t>(ranks) - 1)
                    mine.push_back(i * stride);
            for (std::int64_t i = 0; i < 30000; ++i) others.push_back(i * stride);
            EXPECT_LT(mean_probe(mine), 1.05 * mean_probe(others)) << ranks << ", " << stride;
        }
    }
}

}  // namespace
}  // namespace th_test
