// The rows of each number, ascending, as compressed lists.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/memory.hpp"

namespace tensorhash::data {

class RowLists {
public:
    RowLists() = default;
    /// Lists rows [0, rows) by numbers[row] < count. Numbers are in order of first occurrence.
    RowLists(std::uint32_t const* numbers, std::size_t rows, std::size_t count);

    std::size_t rows() const noexcept { return rows_; }
    /// Every number has one row: the row of the same number.
    bool is_identity() const noexcept { return is_identity_; }
    std::size_t count(std::size_t number) const noexcept {
        return is_identity_ ? 1 : offsets()[number + 1] - offsets()[number];
    }
    std::uint32_t row(std::size_t number, std::size_t i) const noexcept {
        return is_identity_ ? static_cast<std::uint32_t>(number) : list()[offsets()[number] + i];
    }

private:
    std::uint32_t const* offsets() const noexcept {
        return reinterpret_cast<std::uint32_t const*>(offsets_.data());
    }
    std::uint32_t const* list() const noexcept {
        return reinterpret_cast<std::uint32_t const*>(list_.data());
    }

    bool is_identity_ = true;  // all rows are distinct: number i is row i
    std::size_t rows_ = 0;
    runtime::Block offsets_;  // uint32 [count + 1]: a batch has fewer than 2^31 rows
    runtime::Block list_;     // uint32 [rows]
};

}  // namespace tensorhash::data
