// The bounded table, one row at a time: a map, and a search through all of it for whoever leaves.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "batches.hpp"
#include "support.hpp"

namespace th_test {

using tensorhash::Eviction;

/// One int64 key, one value of any element.
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
    struct Answer {
        std::vector<std::int32_t> indices;
        std::vector<std::uint8_t> mask;
        Gone gone;
    };

    BoundedOracle(std::size_t capacity, Eviction eviction, Element value)
        : capacity_(capacity), eviction_(eviction), value_(std::move(value)) {}

    Answer accumulate(Ids const& keys, Rows const& values, Reduce how,
                      std::vector<std::int64_t> const& scores) {
        ++clock;
        Answer out;
        for (std::size_t row = 0; row < keys.size(); ++row) {
            std::int64_t score = scores.empty() ? static_cast<std::int64_t>(clock) : scores[row];
            auto at = entries.find(keys[row]);
            bool added = at == entries.end();
            if (added) {
                added = add(keys[row], std::string(values[row]), score, out.gone);
            } else {
                std::string_view given = values[row];
                reduce_row(value_.dtype, how, at->second.value.data(), given.data(), given.size());
                at->second.score = score;
                at->second.use = uses;
            }
            out.mask.push_back(added);
            ++uses;
        }
        for (std::uint64_t key : keys) out.indices.push_back(index_of(key));
        return out;
    }

    void touch(Ids const& keys, std::vector<std::int64_t> const& scores) {
        ++clock;
        for (std::size_t row = 0; row < keys.size(); ++row, ++uses) {
            auto at = entries.find(keys[row]);
            if (at == entries.end()) continue;
            at->second.use = uses;
            if (!scores.empty()) at->second.score = scores[row];
            if (eviction_ == Eviction::Lru) at->second.score = static_cast<std::int64_t>(clock);
        }
    }

    std::vector<std::uint8_t> erase(Ids const& keys) {
        ++clock;
        std::vector<std::uint8_t> mask;
        for (std::uint64_t key : keys) {
            auto at = entries.find(key);
            mask.push_back(at != entries.end());
            if (at == entries.end()) continue;
            free_.push_back(at->second.index);
            entries.erase(at);
        }
        return mask;
    }

    std::int32_t index_of(std::uint64_t key) const {
        auto at = entries.find(key);
        return at == entries.end() ? -1 : at->second.index;
    }

    /// Keys ascending by index.
    std::map<std::int32_t, std::uint64_t> listed() const {
        std::map<std::int32_t, std::uint64_t> out;
        for (auto const& [key, entry] : entries) out[entry.index] = key;
        return out;
    }

    std::map<std::uint64_t, Entry> entries;
    std::uint64_t clock = 0;
    std::uint64_t uses = 0;

private:
    /// Joins, and then the lowest leaves: false if that is the new one.
    bool add(std::uint64_t key, std::string value, std::int64_t score, Gone& gone) {
        entries[key] = {-1, std::move(value), score, uses};
        if (entries.size() > capacity_) {
            auto lowest = entries.begin();
            for (auto at = entries.begin(); at != entries.end(); ++at) {
                Entry const& a = at->second;
                Entry const& b = lowest->second;
                bool below = eviction_ == Eviction::Lru
                                 ? a.use < b.use
                                 : std::pair(a.score, a.use) < std::pair(b.score, b.use);
                if (below) lowest = at;
            }
            gone.keys.push_back(lowest->first);
            gone.values += lowest->second.value;
            gone.scores.push_back(lowest->second.score);
            bool itself = lowest->first == key;
            if (!itself) free_.push_back(lowest->second.index);
            entries.erase(lowest);
            if (itself) return false;
        }
        if (free_.empty()) {
            entries[key].index = fresh_++;
        } else {
            entries[key].index = free_.back();
            free_.pop_back();
        }
        return true;
    }

    std::size_t capacity_;
    Eviction eviction_;
    Element value_;
    std::vector<std::int32_t> free_;
    std::int32_t fresh_ = 0;
};

/// Tests of both evictions on every number of threads.
class EachEviction : public ::testing::TestWithParam<std::tuple<Eviction, int>> {
public:
    static auto all() {
        return ::testing::Combine(::testing::Values(Eviction::Lru, Eviction::Score),
                                  ::testing::ValuesIn(thread_counts));
    }
    static std::string name(::testing::TestParamInfo<std::tuple<Eviction, int>> const& test) {
        auto const [eviction, threads] = test.param;
        return std::string(eviction == Eviction::Lru ? "lru" : "score") + "_threads" +
               std::to_string(threads);
    }

protected:
    EachEviction() : threads_(std::get<1>(GetParam())) {}
    static Eviction eviction() { return std::get<0>(GetParam()); }

private:
    Threads threads_;
};

}  // namespace th_test
