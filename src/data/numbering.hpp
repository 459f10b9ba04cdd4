// Numbers the rows of a batch by key: equal keys get equal numbers, in order of first occurrence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cpu/group_engine.hpp"
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

/// Consecutive rows that still have the numbers of the thread that read them: row i has the number
/// map[numbers[i]].
struct OwnNumbers {
    std::size_t begin;
    std::size_t end;
    std::vector<std::uint32_t> map;
};

/// The number of each row, and the row that each number first occurs in.
struct Numbering {
    runtime::Block numbers;         // uint32 [rows]
    Tensor first_rows;              // int64 [groups]
    std::vector<OwnNumbers> own{};  // the last rows, in row order, until translate()

    /// For rows before `own`, or after translate().
    std::uint32_t const* of_rows() const {
        return reinterpret_cast<std::uint32_t const*>(numbers.data());
    }
    std::size_t groups() const { return static_cast<std::size_t>(first_rows.size()); }

    /// Gives the rows of `one` their numbers.
    void translate(OwnNumbers const& one);
    /// Gives all rows their numbers.
    void translate();
};

/// Roughly how many distinct keys there are. Reads a few thousand narrow keys.
double estimate_groups(KeyRows const& keys, step::HashSecret const& secret);

/// Each thread numbers its rows in a table of its own, in cache. The rows of all threads but the
/// first are left to translate. None if a thread meets more than `most` keys.
std::optional<Numbering> number_few(KeyRows const& keys, step::HashSecret const& secret,
                                    std::size_t most);
/// All rows through one index, for wide keys and for many keys.
Numbering number_all(KeyRows const& keys);

/// Numbers the rows in the way that suits them. The caller translates what is left.
Numbering number_rows(KeyRows const& keys, step::HashSecret const& secret);

/// Up to here every thread's table stays in its cache.
inline constexpr std::size_t kFewGroups = 4096;
inline constexpr std::size_t kMostFewGroups = 2 * kFewGroups;
/// Batches of fewer rows are numbered by one thread.
inline constexpr std::size_t kSmallBatch = std::size_t{1} << 15;

}  // namespace tensorhash::data
