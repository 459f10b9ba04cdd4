// Numbers the rows of a batch by key: equal keys get equal numbers, in order of first occurrence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cpu/group_engine.hpp"
#include "cpu/word_numbers.hpp"
#include "runtime/memory.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::data {

/// Checked keys: contiguous rows below 2^31.
struct KeyRows {
    Tensor tensor;  // holds the memory
    Element element;
    std::size_t rows = 0;

    bool is_narrow() const { return element.bytes() <= 8; }
    /// For narrow keys.
    cpu::NarrowKeys narrow() const;
};

/// Throws TypeError or ValueError that names `argument` unless rows of `keys` can be keys.
KeyRows check_keys(Tensor const& keys, std::string_view argument);
/// The same, and the rows must be of type `element`.
KeyRows check_keys(Tensor const& keys, Element const& element, std::string_view argument);

/// The rows of [G], copied.
Tensor gather_rows(KeyRows const& keys, Tensor const& rows);

/// The number of each row, and the row that each number first occurs in.
struct Numbering {
    runtime::Block numbers;  // uint32 [rows]
    Tensor first_rows;       // int64 [groups]

    std::uint32_t const* of_rows() const {
        return reinterpret_cast<std::uint32_t const*>(numbers.data());
    }
    std::size_t groups() const { return static_cast<std::size_t>(first_rows.size()); }
};

/// int64: the row of each number.
Tensor first_rows_of(cpu::WordNumbers const& table);

/// Roughly how many distinct keys there are. Reads a few thousand narrow keys.
double estimate_groups(KeyRows const& keys, step::HashSecret const& secret);

/// All rows through one index, for wide keys and for many keys.
Numbering number_all(KeyRows const& keys);

/// Numbers the rows in the way that suits them.
Numbering number_rows(KeyRows const& keys, step::HashSecret const& secret);

/// Up to here every thread's table stays in its cache.
inline constexpr std::size_t kFewGroups = 4096;
inline constexpr std::size_t kMostFewGroups = 2 * kFewGroups;
/// Batches of fewer rows are numbered by one thread.
inline constexpr std::size_t kSmallBatch = std::size_t{1} << 15;

}  // namespace tensorhash::data
