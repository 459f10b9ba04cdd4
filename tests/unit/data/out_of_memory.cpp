// A stream of groups that runs out of memory, at any point of a call, stays as it was.
#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <vector>

#include "support/address_space.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/data.hpp"
#include "tensorhash/memory.hpp"

namespace th_test {
namespace {

using tensorhash::Dtype;
using tensorhash::Tensor;
namespace data = tensorhash::data;

struct Batch {
    Tensor keys;
    std::vector<Tensor> values;
};

/// Three rows per key, and two distinct values per key.
Batch make_batch(std::int64_t keys, std::int64_t first) {
    std::vector<std::int64_t> rows;
    std::vector<double> values;
    for (std::int64_t i = 0; i < 3 * keys; ++i) {
        rows.push_back(first + i % keys);
        values.push_back(static_cast<double>(i / (2 * keys)));
    }
    Tensor const column = Tensor::from(values);
    return {Tensor::from(rows), {column, column, column}};
}

data::GroupBy make_stream() {
    tensorhash::Element const value{Dtype::Float64, {}};
    return {{Dtype::Int64, {}},
            {{data::Aggregate::Sum, value},
             {data::Aggregate::NUnique, value},
             {data::Aggregate::NUnique, value}}};
}

void expect_same(data::Groups const& a, data::Groups const& b) {
    auto const same = [](Tensor const& x, Tensor const& y) {
        return x.shape() == y.shape() &&
               std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.size()) * 8) == 0;
    };
    EXPECT_TRUE(same(a.keys, b.keys));
    EXPECT_TRUE(same(a.first_rows, b.first_rows));
    for (std::size_t i = 0; i < a.columns.size(); ++i) {
        EXPECT_TRUE(same(a.columns[i], b.columns[i])) << "column " << i;
    }
}

/// Calls `change` with more and more memory until it succeeds. Returns how often it failed.
template <class Change>
int fail_until_it_fits(data::GroupBy& stream, Change&& change) {
    data::Groups const before = stream.result();
    std::int64_t const rows = stream.rows();
    for (int failures = 0;; ++failures) {
        tensorhash::release_memory();
        try {
            AddressSpaceLimit const limit(static_cast<std::size_t>(failures) << 20);
            change();
            return failures;
        } catch (std::bad_alloc const&) {
        }
        EXPECT_EQ(stream.rows(), rows);
        expect_same(stream.result(), before);
    }
}

class StreamOutOfMemory : public testing::Test {
protected:
    void SetUp() override {
#if TH_TEST_SANITIZED
        GTEST_SKIP() << "sanitizers need address space of their own";
#endif
    }
    static constexpr std::int64_t kKeys = 30000;
    Threads one_thread{1};
    data::GroupBy stream = make_stream();
    Batch const first = make_batch(1000, 0);
    Batch const second = make_batch(kKeys, 500);
};

TEST_F(StreamOutOfMemory, update_adds_all_rows_or_none) {
    stream.update(first.keys, first.values);
    EXPECT_GT(fail_until_it_fits(stream, [&] { stream.update(second.keys, second.values); }), 3);

    data::GroupBy expected = make_stream();
    expected.update(first.keys, first.values);
    expected.update(second.keys, second.values);
    expect_same(stream.result(), expected.result());
}

TEST_F(StreamOutOfMemory, merge_adds_all_groups_or_none) {
    stream.update(first.keys, first.values);
    data::GroupBy other = make_stream();
    other.update(second.keys, second.values);
    EXPECT_GT(fail_until_it_fits(stream, [&] { stream.merge(other); }), 3);
    EXPECT_EQ(stream.rows(), 3 * (1000 + kKeys));
    EXPECT_EQ(stream.groups(), kKeys + 500);
    data::Groups const result = stream.result();
    for (std::int64_t const count : result.columns[2].as<std::int64_t>()) EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace th_test
