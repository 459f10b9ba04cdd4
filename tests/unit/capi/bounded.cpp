// The bounded calls of the C interface, beside a BoundedHashMap that gets the same batches.
#include <cstring>
#include <string>
#include <vector>

#include "support/bounded_oracle.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/c.h"

namespace th_test {
namespace {

using namespace tensorhash;

constexpr std::int64_t kCapacity = 20;

/// A map of int64 keys to float32 x 2 values, used through C calls only, and its twin.
class BoundedCalls : public testing::TestWithParam<Eviction> {
protected:
    BoundedCalls() : twin(Capacity{kCapacity}, key, {value}, GetParam()) {
        static std::int64_t const two[] = {2};
        th_element const column{12, 1, two};
        EXPECT_EQ(th_bounded_create(kCapacity, {5, 0, nullptr}, &column, 1,
                                    static_cast<th_eviction>(GetParam()), &map),
                  TH_OK)
            << th_last_error();
    }
    ~BoundedCalls() override { th_bounded_destroy(map); }
    bool by_score() const { return GetParam() == Eviction::Score; }

    void accumulate(std::uint64_t round) {
        Tensor const keys = make_keys(key, random_ids(30, 50, round));
        Tensor const values = make_finite_values(value, 30, round);
        std::vector<std::int64_t> scores;
        for (Ids ids = random_ids(30, 9, round + 100); std::uint64_t id : ids) {
            scores.push_back(static_cast<std::int64_t>(id));
        }
        Admitted const want = twin.accumulate(keys, {values}, {Reduce::Sum},
                                              by_score() ? Tensor::from(scores) : Tensor{});
        void const* const columns[] = {values.data()};
        th_reduce const sum = TH_SUM;
        std::vector<std::int32_t> indices(30);
        std::vector<std::uint8_t> mask(30);
        th_evicted* evicted = nullptr;
        ASSERT_EQ(th_bounded_accumulate(map, keys.data(), 30, columns, &sum,
                                        by_score() ? scores.data() : nullptr, indices.data(),
                                        mask.data(), &evicted),
                  TH_OK)
            << th_last_error();
        EXPECT_EQ(indices, to_vector<std::int32_t>(want.indices));
        EXPECT_EQ(mask, mask_of(want.mask));
        expect_same(evicted, want.evicted);
        th_evicted_destroy(evicted);
    }
    static void expect_same(th_evicted const* got, Evicted const& want) {
        auto const rows = static_cast<std::size_t>(th_evicted_rows(got));
        ASSERT_EQ(static_cast<std::int64_t>(rows), want.keys.shape()[0]);
        std::string keys(rows * 8, '?'), values(rows * 8, '?');
        std::vector<std::int64_t> scores(rows);
        void* columns[] = {values.data()};
        ASSERT_EQ(th_evicted_copy(got, keys.data(), columns, scores.data()), TH_OK);
        EXPECT_EQ(keys, bytes_of(want.keys));
        EXPECT_EQ(values, bytes_of(want.values[0]));
        EXPECT_EQ(scores, to_vector<std::int64_t>(want.scores));
        EXPECT_EQ(th_evicted_copy(got, nullptr, nullptr, nullptr), TH_OK);
    }
    void check(th_bounded* same) const {
        ASSERT_EQ(th_bounded_validate(same), TH_OK) << th_last_error();
        std::int64_t size = -1, listed = -1, bytes = 0;
        ASSERT_EQ(th_bounded_size(same, &size), TH_OK);
        ASSERT_EQ(size, twin.size());
        auto const rows = static_cast<std::size_t>(size);
        std::string keys(rows * 8, '?'), values(rows * 8, '?');
        std::vector<std::int64_t> scores(rows);
        void* columns[] = {values.data()};
        ASSERT_EQ(th_bounded_items(same, size, keys.data(), columns, scores.data(), &listed),
                  TH_OK);
        EXPECT_EQ(listed, size);
        EXPECT_EQ(keys, bytes_of(twin.keys()));
        EXPECT_EQ(values, bytes_of(twin.items().values[0]));
        EXPECT_EQ(scores, to_vector<std::int64_t>(twin.scores()));
        EXPECT_EQ(th_bounded_items(same, size - 1, nullptr, nullptr, nullptr, &listed),
                  TH_VALUE_ERROR);
        ASSERT_EQ(th_bounded_memory(same, &bytes), TH_OK);
        auto const expected = static_cast<std::int64_t>(twin.memory_usage().total());
        if (same == map) {
            EXPECT_EQ(bytes, expected);
        } else {
            EXPECT_LE(bytes, expected);  // a map made of bytes has no room to spare
        }
    }

    Element key{Dtype::Int64, {}};
    Element value{Dtype::Float32, {2}};
    BoundedHashMap twin;
    th_bounded* map = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Evictions, BoundedCalls, testing::Values(Eviction::Lru, Eviction::Score));

TEST_P(BoundedCalls, do_what_the_table_does) {
    for (std::uint64_t round = 0; round < 6; ++round) {
        accumulate(round);
        Tensor const keys = make_keys(key, random_ids(15, 60, round + 50));
        Tensor const rows = make_finite_values(value, 15, round + 50);
        void const* const columns[] = {rows.data()};
        std::vector<std::int32_t> indices(15);
        std::vector<std::uint8_t> mask(15), found(15);
        std::string values(15 * 8, '?');
        ASSERT_EQ(th_bounded_find(map, keys.data(), 15, indices.data(), mask.data()), TH_OK);
        EXPECT_EQ(indices, to_vector<std::int32_t>(twin.find(keys).indices));
        EXPECT_EQ(mask, mask_of(twin.contains(keys)));
        ASSERT_EQ(th_bounded_get(map, keys.data(), 15, 0, nullptr, 0, values.data(), found.data()),
                  TH_OK);
        EXPECT_EQ(values, bytes_of(twin.get(keys)[0]));
        EXPECT_EQ(found, mask);
        ASSERT_EQ(th_bounded_touch(map, keys.data(), 5, nullptr), TH_OK);
        Tensor const few = Tensor::borrow(keys.data(), {5}, Dtype::Int64);
        twin.get_and_touch(few);
        ASSERT_EQ(th_bounded_assign(map, keys.data(), 15, columns, mask.data()), TH_OK);
        EXPECT_EQ(mask, mask_of(twin.assign(keys, {rows})));
        th_optimizer const sgd{TH_SGD, 0.5, 0, 0, 0, 0, 0, 0, 0, 0};
        ASSERT_EQ(th_bounded_update(map, keys.data(), 15, rows.data(), &sgd, TH_SKIP, TH_IN_ORDER,
                                    mask.data()),
                  TH_OK);
        twin.update(keys, rows, Sgd{0.5});
        ASSERT_EQ(th_bounded_erase(map, keys.data(), 3, mask.data()), TH_OK);
        twin.erase(Tensor::borrow(keys.data(), {3}, Dtype::Int64));
        check(map);
    }
    ASSERT_EQ(th_bounded_clear(map), TH_OK);
    twin.clear();
    check(map);
}

TEST_P(BoundedCalls, assign_keeps_scores_and_uses_and_the_last_row_of_a_key_wins) {
    accumulate(1);
    Tensor const before = twin.scores();
    Tensor const keys = twin.keys();
    std::int64_t const first = to_vector<std::int64_t>(keys)[0];
    std::vector<std::int64_t> const batch{first, -99, first};
    std::vector<float> const rows{1, 2, 3, 4, 5, 6};
    Tensor const found =
        twin.assign(Tensor::from(batch), {Tensor::borrow(rows.data(), {3, 2}, Dtype::Float32)});
    EXPECT_EQ(mask_of(found), (std::vector<std::uint8_t>{1, 0, 1}));
    Tensor const read = twin.get(Tensor::from(std::vector<std::int64_t>{first}))[0];
    EXPECT_EQ(to_vector<float>(read), (std::vector<float>{5, 6}));
    EXPECT_EQ(to_vector<std::int64_t>(twin.scores()), to_vector<std::int64_t>(before));
    twin.validate();
}

TEST_P(BoundedCalls, a_map_of_the_bytes_evicts_the_same_entries) {
    for (std::uint64_t round = 0; round < 3; ++round) accumulate(round);
    th_memory bytes{nullptr, 0};
    ASSERT_EQ(th_bounded_to_bytes(map, &bytes), TH_OK) << th_last_error();
    th_bounded* again = nullptr;
    ASSERT_EQ(th_bounded_from_bytes(bytes.data, bytes.bytes, map, &again), TH_OK)
        << th_last_error();
    check(again);
    std::swap(map, again);
    for (std::uint64_t round = 5; round < 8; ++round) accumulate(round);
    th_bounded* other = nullptr;
    th_element const column{12, 0, nullptr};
    ASSERT_EQ(th_bounded_create(7, {5, 0, nullptr}, &column, 1, TH_LRU, &other), TH_OK);
    th_bounded* none = nullptr;
    EXPECT_EQ(th_bounded_from_bytes(bytes.data, bytes.bytes, other, &none), TH_VALUE_ERROR);
    EXPECT_EQ(std::string(th_last_error()).rfind("data: expected the state of a map with", 0), 0u);
    EXPECT_EQ(th_bounded_from_bytes(bytes.data, 5, nullptr, &none), TH_FORMAT_ERROR);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(th_memory_give(bytes), TH_OK);
    th_bounded_destroy(other);
    th_bounded_destroy(again);
}

TEST_P(BoundedCalls, careless_callers_get_a_status_and_change_nothing) {
    accumulate(1);
    std::int64_t const one = 1;
    float row[2] = {0, 0};
    void const* const columns[] = {row};
    th_reduce const last = TH_LAST;
    th_evicted* evicted = nullptr;
    std::int64_t const* const scores = by_score() ? nullptr : &one;  // the wrong way round
    EXPECT_NE(
        th_bounded_accumulate(map, &one, 1, columns, &last, scores, nullptr, nullptr, &evicted),
        TH_OK);
    EXPECT_EQ(evicted, nullptr);
    EXPECT_EQ(
        th_bounded_accumulate(nullptr, &one, 1, columns, &last, nullptr, nullptr, nullptr, nullptr),
        TH_VALUE_ERROR);
    EXPECT_EQ(th_bounded_activate(map, &one, -1, nullptr, nullptr, nullptr, nullptr),
              TH_VALUE_ERROR);
    EXPECT_EQ(th_bounded_find(map, nullptr, 1, nullptr, nullptr), TH_VALUE_ERROR);
    EXPECT_EQ(th_bounded_create(0, {5, 0, nullptr}, nullptr, 0, TH_LRU, &map), TH_VALUE_ERROR);
    auto const unknown = static_cast<th_eviction>(9);
    EXPECT_EQ(th_bounded_create(1, {5, 0, nullptr}, nullptr, 0, unknown, &map), TH_VALUE_ERROR);
    EXPECT_EQ(th_evicted_copy(nullptr, nullptr, nullptr, nullptr), TH_VALUE_ERROR);
    EXPECT_EQ(th_evicted_rows(nullptr), 0);
    check(map);
}

}  // namespace
}  // namespace th_test
