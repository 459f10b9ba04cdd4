#include "support/oracle.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "support/reduce_oracle.hpp"

namespace th_test {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class Float>
void make_canonical(std::string& key) {
    for (std::size_t byte = 0; byte + sizeof(Float) <= key.size(); byte += sizeof(Float)) {
        Float x;
        std::memcpy(&x, key.data() + byte, sizeof(Float));
        if (x == Float(0)) x = Float(0);
        if (x != x) x = std::numeric_limits<Float>::quiet_NaN();
        std::memcpy(key.data() + byte, &x, sizeof(Float));
    }
}

}  // namespace

std::string canonical(std::string_view key, Dtype dtype) {
    std::string out(key);
    if (dtype == Dtype::Float32) make_canonical<float>(out);
    if (dtype == Dtype::Float64) make_canonical<double>(out);
    return out;
}

Oracle::Oracle(std::int64_t capacity, Element key, std::vector<Element> values)
    : capacity_(capacity), key_(std::move(key)), values_(std::move(values)),
      columns_(values_.size()) {}

OracleLocated Oracle::insert(Rows const& keys, std::vector<Rows> const& values) {
    return each_row(keys, [&](std::size_t row, std::int32_t index, bool added) {
        if (added) store(index, values, row);
    });
}

OracleLocated Oracle::activate(Rows const& keys) {
    return each_row(keys, [](std::size_t, std::int32_t, bool) {});
}

OracleLocated Oracle::insert_or_assign(Rows const& keys, std::vector<Rows> const& values) {
    return each_row(keys,
                    [&](std::size_t row, std::int32_t index, bool) { store(index, values, row); });
}

OracleLocated Oracle::accumulate(Rows const& keys, std::vector<Rows> const& values,
                                 std::vector<Reduce> const& reduce) {
    return each_row(keys, [&](std::size_t row, std::int32_t index, bool added) {
        if (added) return store(index, values, row);
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            Reduce how = reduce.size() == 1 ? reduce[0] : reduce[c];
            std::string_view given = values[c][row];
            reduce_row(values_[c].dtype, how, value(c, index), given.data(), given.size());
        }
    });
}

OracleLocated Oracle::find(Rows const& keys) const {
    OracleLocated out;
    for (std::size_t row = 0; row < keys.count; ++row) {
        auto it = where_.find(canonical(keys[row], key_.dtype));
        out.indices.push_back(it == where_.end() ? -1 : it->second);
        out.mask.push_back(it != where_.end());
    }
    return out;
}

std::vector<std::uint8_t> Oracle::erase(Rows const& keys) {
    std::vector<std::uint8_t> mask;
    for (std::size_t row = 0; row < keys.count; ++row) {
        auto it = where_.find(canonical(keys[row], key_.dtype));
        mask.push_back(it != where_.end());
        if (it == where_.end()) continue;
        free_.push_back(it->second);
        live_[at(it->second)] = false;
        where_.erase(it);
    }
    return mask;
}

std::vector<std::string> Oracle::get(Rows const& keys, std::vector<Rows> const& defaults) const {
    OracleLocated found = find(keys);
    std::vector<std::string> out(columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c)
        for (std::size_t row = 0; row < keys.count; ++row) {
            if (found.mask[row])
                out[c] += value_bytes(c, found.indices[row]);
            else if (defaults.empty())
                out[c].append(values_[c].bytes(), '\0');
            else
                out[c] += defaults[c][defaults[c].count == 1 ? 0 : row];
        }
    return out;
}

void Oracle::reserve(std::int64_t capacity) { capacity_ = std::max(capacity_, capacity); }

void Oracle::shrink_to_fit() {
    while (!live_.empty() && !live_.back()) {
        live_.pop_back();
        stored_.pop_back();
    }
    for (std::size_t c = 0; c < columns_.size(); ++c)
        columns_[c].resize(live_.size() * values_[c].bytes());
    capacity_ = static_cast<std::int64_t>(live_.size());
    std::erase_if(free_, [&](std::int32_t index) { return at(index) >= live_.size(); });
}

void Oracle::clear() {
    where_.clear();
    free_.clear();
    stored_.clear();
    live_.clear();
    for (std::string& column : columns_) column.clear();
}

std::vector<std::int32_t> Oracle::compact() {
    std::vector<std::int32_t> moved(at(capacity_), -1);
    Oracle packed(capacity_, key_, values_);
    for (std::int32_t old : active()) {
        bool added = false;
        std::int32_t fresh = packed.locate(stored_[at(old)], added);
        for (std::size_t c = 0; c < columns_.size(); ++c)
            std::memcpy(packed.value(c, fresh), value(c, old), values_[c].bytes());
        moved[at(old)] = fresh;
    }
    *this = std::move(packed);
    return moved;
}

std::vector<std::int32_t> Oracle::active() const {
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i < live_.size(); ++i)
        if (live_[i]) out.push_back(static_cast<std::int32_t>(i));
    return out;
}

std::string Oracle::keys() const {
    std::string out;
    for (std::int32_t index : active()) out += stored_[at(index)];
    return out;
}

std::string Oracle::column(std::size_t c) const {
    std::string out;
    for (std::int32_t index : active()) out += value_bytes(c, index);
    return out;
}

std::string_view Oracle::value_bytes(std::size_t c, std::int32_t index) const {
    return std::string_view(columns_[c]).substr(at(index) * values_[c].bytes(), values_[c].bytes());
}

char* Oracle::value(std::size_t c, std::int32_t index) {
    return columns_[c].data() + at(index) * values_[c].bytes();
}

void Oracle::store(std::int32_t index, std::vector<Rows> const& values, std::size_t row) {
    for (std::size_t c = 0; c < columns_.size(); ++c)
        std::memcpy(value(c, index), values[c][row].data(), values_[c].bytes());
}

std::int32_t Oracle::locate(std::string_view key, bool& added) {
    auto [it, fresh] = where_.try_emplace(canonical(key, key_.dtype), 0);
    added = fresh;
    if (!fresh) return it->second;
    if (free_.empty()) {
        it->second = static_cast<std::int32_t>(stored_.size());
        stored_.emplace_back();
        live_.push_back(false);
        for (std::size_t c = 0; c < columns_.size(); ++c)
            columns_[c].append(values_[c].bytes(), '\0');
    } else {
        it->second = free_.back();
        free_.pop_back();
        for (std::size_t c = 0; c < columns_.size(); ++c)
            std::memset(value(c, it->second), 0, values_[c].bytes());
    }
    stored_[at(it->second)] = key;
    live_[at(it->second)] = true;
    return it->second;
}

OracleLocated Oracle::each_row(Rows const& keys, EachRow const& then) {
    OracleLocated out;
    for (std::size_t row = 0; row < keys.count; ++row) {
        bool added = false;
        std::int32_t index = locate(keys[row], added);
        out.indices.push_back(index);
        out.mask.push_back(added);
        then(row, index, added);
    }
    auto needed = static_cast<std::int64_t>(stored_.size());
    std::int64_t const more = capacity_ < 65536 ? capacity_ : capacity_ / 8;
    if (needed > capacity_) capacity_ = std::max(capacity_ + more, needed);
    return out;
}

}  // namespace th_test
