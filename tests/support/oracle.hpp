// The oracle: the contract's table, one row at a time over std::unordered_map and byte strings. It
// is slow and obvious on purpose. Tests and the fuzzer compare the real table with it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensorhash/hash_map.hpp"

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
std::string canonical(std::string_view key, Dtype dtype);

struct OracleLocated {
    std::vector<std::int32_t> indices;
    std::vector<std::uint8_t> mask;
};

class Oracle {
public:
    Oracle(std::int64_t capacity, Element key, std::vector<Element> values);

    OracleLocated insert(Rows const& keys, std::vector<Rows> const& values);
    OracleLocated activate(Rows const& keys);
    OracleLocated insert_or_assign(Rows const& keys, std::vector<Rows> const& values);
    OracleLocated accumulate(Rows const& keys, std::vector<Rows> const& values,
                             std::vector<Reduce> const& reduce);
    OracleLocated find(Rows const& keys) const;
    std::vector<std::uint8_t> erase(Rows const& keys);
    /// One byte string per column; `defaults` holds per column one row, or one row per key.
    std::vector<std::string> get(Rows const& keys, std::vector<Rows> const& defaults) const;

    void reserve(std::int64_t capacity);
    void shrink_to_fit();
    void clear();
    std::vector<std::int32_t> compact();

    std::vector<std::int32_t> active() const;
    std::string keys() const;
    std::string column(std::size_t c) const;

    std::int64_t size() const { return static_cast<std::int64_t>(where_.size()); }
    std::int64_t capacity() const { return capacity_; }
    Element const& key_element() const { return key_; }
    std::vector<Element> const& value_elements() const { return values_; }
    std::string_view value_bytes(std::size_t c, std::int32_t index) const;

private:
    using EachRow = std::function<void(std::size_t row, std::int32_t index, bool added)>;

    char* value(std::size_t c, std::int32_t index);
    void store(std::int32_t index, std::vector<Rows> const& values, std::size_t row);
    /// The index of the key. A new key takes the top of the free stack, else a fresh index; its
    /// values are zero.
    std::int32_t locate(std::string_view key, bool& added);
    OracleLocated each_row(Rows const& keys, EachRow const& then);

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
