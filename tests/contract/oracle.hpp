// The oracle: the contract's table, one row at a time over std::unordered_map and byte strings.
// It is slow and obvious on purpose; every test and the fuzzer compare the real table with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reduce_oracle.hpp"
#include "tensorhash/tensorhash.hpp"

namespace th_test {

using tensorhash::Dtype;
using tensorhash::Element;
using tensorhash::Reduce;

/// N rows of `width` bytes each.
struct Rows {
    std::size_t width = 0;
    std::size_t count = 0;
    std::string bytes;

    std::string_view operator[](std::size_t row) const {
        return std::string_view(bytes).substr(row * width, width);
    }
};

/// Equal keys have equal canonical bytes: -0 becomes +0, every NaN becomes one NaN.
inline std::string canonical(std::string_view key, Dtype dtype) {
    std::string out(key);
    auto each = [&]<class T>(T) {
        for (std::size_t at = 0; at + sizeof(T) <= out.size(); at += sizeof(T)) {
            T x;
            std::memcpy(&x, out.data() + at, sizeof(T));
            if (x == T(0)) x = T(0);
            if (x != x) x = std::numeric_limits<T>::quiet_NaN();
            std::memcpy(out.data() + at, &x, sizeof(T));
        }
    };
    if (dtype == Dtype::Float32) each(float{});
    if (dtype == Dtype::Float64) each(double{});
    return out;
}

struct OracleLocated {
    std::vector<std::int32_t> indices;
    std::vector<std::uint8_t> mask;
};

class Oracle {
public:
    Oracle(std::int64_t capacity, Element key, std::vector<Element> values)
        : capacity_(capacity), key_(std::move(key)), values_(std::move(values)),
          columns_(values_.size()) {}

    OracleLocated insert(Rows const& keys, std::vector<Rows> const& values) {
        return each_row(keys, [&](std::size_t row, std::int32_t index, bool added) {
            if (added) store(index, values, row);
        });
    }

    OracleLocated activate(Rows const& keys) {
        return each_row(keys, [](std::size_t, std::int32_t, bool) {});
    }

    OracleLocated insert_or_assign(Rows const& keys, std::vector<Rows> const& values) {
        return each_row(
            keys, [&](std::size_t row, std::int32_t index, bool) { store(index, values, row); });
    }

    OracleLocated accumulate(Rows const& keys, std::vector<Rows> const& values,
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

    OracleLocated find(Rows const& keys) const {
        OracleLocated out;
        for (std::size_t row = 0; row < keys.count; ++row) {
            auto it = where_.find(canonical(keys[row], key_.dtype));
            out.indices.push_back(it == where_.end() ? -1 : it->second);
            out.mask.push_back(it != where_.end());
        }
        return out;
    }

    std::vector<std::uint8_t> erase(Rows const& keys) {
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

    /// One byte string a column; `defaults` holds one row, or one row a key, a column.
    std::vector<std::string> get(Rows const& keys, std::vector<Rows> const& defaults) const {
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

    void reserve(std::int64_t capacity) { capacity_ = std::max(capacity_, capacity); }

    void clear() {
        where_.clear();
        free_.clear();
        stored_.clear();
        live_.clear();
        for (std::string& column : columns_) column.clear();
    }

    std::vector<std::int32_t> compact() {
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

    std::vector<std::int32_t> active() const {
        std::vector<std::int32_t> out;
        for (std::size_t i = 0; i < live_.size(); ++i)
            if (live_[i]) out.push_back(static_cast<std::int32_t>(i));
        return out;
    }

    std::string keys() const {
        std::string out;
        for (std::int32_t index : active()) out += stored_[at(index)];
        return out;
    }

    std::string column(std::size_t c) const {
        std::string out;
        for (std::int32_t index : active()) out += value_bytes(c, index);
        return out;
    }

    std::int64_t size() const { return static_cast<std::int64_t>(where_.size()); }
    std::int64_t capacity() const { return capacity_; }
    Element const& key_element() const { return key_; }
    std::vector<Element> const& value_elements() const { return values_; }
    std::string_view value_bytes(std::size_t c, std::int32_t index) const {
        return std::string_view(columns_[c])
            .substr(at(index) * values_[c].bytes(), values_[c].bytes());
    }

private:
    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
    char* value(std::size_t c, std::int32_t index) {
        return columns_[c].data() + at(index) * values_[c].bytes();
    }

    void store(std::int32_t index, std::vector<Rows> const& values, std::size_t row) {
        for (std::size_t c = 0; c < columns_.size(); ++c)
            std::memcpy(value(c, index), values[c][row].data(), values_[c].bytes());
    }

    /// The row's index; a new key takes the top of the free stack, else a fresh index, values zero.
    std::int32_t locate(std::string_view key, bool& added) {
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

    template <class Then>
    OracleLocated each_row(Rows const& keys, Then then) {
        OracleLocated out;
        for (std::size_t row = 0; row < keys.count; ++row) {
            bool added = false;
            std::int32_t index = locate(keys[row], added);
            out.indices.push_back(index);
            out.mask.push_back(added);
            then(row, index, added);
        }
        auto needed = static_cast<std::int64_t>(stored_.size());
        if (needed > capacity_) capacity_ = std::max(2 * capacity_, needed);
        return out;
    }

    std::int64_t capacity_;
    Element key_;
    std::vector<Element> values_;
    std::unordered_map<std::string, std::int32_t> where_;
    std::vector<std::int32_t> free_;
    std::vector<std::string> stored_;
    std::vector<bool> live_;
    std::vector<std::string> columns_;
};

}  // namespace th_test
