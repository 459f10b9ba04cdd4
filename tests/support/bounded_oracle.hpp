// The bounded table, one row at a time: a map, searched in full for the entry to evict.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "support/fixtures.hpp"
#include "tensorhash/bounded_map.hpp"

namespace th_test {

using tensorhash::Eviction;

/// One int64 key and one value of any element.
class BoundedOracle {
public:
    struct Entry {
        std::int32_t index;
        std::string value;
        std::int64_t score;
        std::uint64_t use;
    };
    struct Gone {
        std::vector<std::uint64_t> keys;
        std::string values;
        std::vector<std::int64_t> scores;
    };
    struct Outcome {
        std::vector<std::int32_t> indices;
        std::vector<std::uint8_t> mask;
        Gone gone;
    };

    BoundedOracle(std::size_t capacity, Eviction eviction, Element value);

    Outcome accumulate(Ids const& keys, Rows const& values, Reduce how,
                       std::vector<std::int64_t> const& scores);
    void touch(Ids const& keys, std::vector<std::int64_t> const& scores);
    std::vector<std::uint8_t> erase(Ids const& keys);
    std::int32_t index_of(std::uint64_t key) const;
    /// Live keys, ascending by buffer index.
    std::map<std::int32_t, std::uint64_t> listed() const;

    std::map<std::uint64_t, Entry> entries;
    std::uint64_t clock = 0;
    std::uint64_t uses = 0;

private:
    /// Inserts, then evicts the lowest entry; false if that is the new one.
    bool add(std::uint64_t key, std::string value, std::int64_t score, Gone& gone);
    std::map<std::uint64_t, Entry>::iterator lowest();

    std::size_t capacity_;
    Eviction eviction_;
    Element value_;
    std::vector<std::int32_t> free_;
    std::int32_t fresh_ = 0;
};

/// Tests with both evictions on every thread count.
class EachEviction : public ::testing::TestWithParam<std::tuple<Eviction, int>> {
public:
    static std::vector<std::tuple<Eviction, int>> all();
    static std::string name(::testing::TestParamInfo<std::tuple<Eviction, int>> const& test);

protected:
    EachEviction();
    ~EachEviction() override;
    static Eviction eviction() { return std::get<0>(GetParam()); }

private:
    Threads threads_;
};

}  // namespace th_test
