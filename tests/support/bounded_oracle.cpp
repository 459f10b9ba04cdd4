#include "support/bounded_oracle.hpp"

#include <utility>

#include "support/reduce_oracle.hpp"

namespace th_test {

BoundedOracle::BoundedOracle(std::size_t capacity, Eviction eviction, Element value)
    : capacity_(capacity), eviction_(eviction), value_(std::move(value)) {}

BoundedOracle::Outcome BoundedOracle::accumulate(Ids const& keys, Rows const& values, Reduce how,
                                                 std::vector<std::int64_t> const& scores) {
    ++clock;
    Outcome out;
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

void BoundedOracle::touch(Ids const& keys, std::vector<std::int64_t> const& scores) {
    ++clock;
    for (std::size_t row = 0; row < keys.size(); ++row, ++uses) {
        auto at = entries.find(keys[row]);
        if (at == entries.end()) continue;
        at->second.use = uses;
        if (!scores.empty()) at->second.score = scores[row];
        if (eviction_ == Eviction::Lru) at->second.score = static_cast<std::int64_t>(clock);
    }
}

std::vector<std::uint8_t> BoundedOracle::erase(Ids const& keys) {
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

std::int32_t BoundedOracle::index_of(std::uint64_t key) const {
    auto at = entries.find(key);
    return at == entries.end() ? -1 : at->second.index;
}

std::map<std::int32_t, std::uint64_t> BoundedOracle::listed() const {
    std::map<std::int32_t, std::uint64_t> out;
    for (auto const& [key, entry] : entries) out[entry.index] = key;
    return out;
}

std::map<std::uint64_t, BoundedOracle::Entry>::iterator BoundedOracle::lowest() {
    auto lowest = entries.begin();
    for (auto at = entries.begin(); at != entries.end(); ++at) {
        Entry const& a = at->second;
        Entry const& b = lowest->second;
        bool below = eviction_ == Eviction::Lru
                         ? a.use < b.use
                         : std::pair(a.score, a.use) < std::pair(b.score, b.use);
        if (below) lowest = at;
    }
    return lowest;
}

bool BoundedOracle::add(std::uint64_t key, std::string value, std::int64_t score, Gone& gone) {
    entries[key] = {-1, std::move(value), score, uses};
    if (entries.size() > capacity_) {
        auto leaver = lowest();
        gone.keys.push_back(leaver->first);
        gone.values += leaver->second.value;
        gone.scores.push_back(leaver->second.score);
        bool itself = leaver->first == key;
        if (!itself) free_.push_back(leaver->second.index);
        entries.erase(leaver);
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

std::vector<std::tuple<Eviction, int>> EachEviction::all() {
    std::vector<std::tuple<Eviction, int>> out;
    for (Eviction eviction : {Eviction::Lru, Eviction::Score})
        for (int threads : thread_counts) out.emplace_back(eviction, threads);
    return out;
}

std::string EachEviction::name(::testing::TestParamInfo<std::tuple<Eviction, int>> const& test) {
    auto const [eviction, threads] = test.param;
    return std::string(eviction == Eviction::Lru ? "lru" : "score") + "_threads" +
           std::to_string(threads);
}

EachEviction::EachEviction() : threads_(std::get<1>(GetParam())) {}
EachEviction::~EachEviction() = default;

}  // namespace th_test
