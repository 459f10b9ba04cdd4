// Checking what callers hand over, before anything changes. Each failure is a sentence that names the argument.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tensorhash/hash_map.hpp"

namespace tensorhash::table {

/// A batch that passed: contiguous, of the right dtype, `rows` elements.
struct Batch {
    Tensor tensor;
    std::size_t rows = 0;
    unsigned char const* data() const noexcept {
        return static_cast<unsigned char const*>(tensor.data());
    }
};

/// Rows of `element`, given as [N, ...] with as many elements a row, in any shape and strides.
Batch check_batch(Tensor const& tensor, Element const& element, std::string_view argument);

/// One batch per column, each of `rows` rows.
std::vector<Batch> check_values(std::vector<Tensor> const& values,
                                std::vector<Element> const& elements, std::size_t rows);

/// What stands in for values that are missing: a row for each key, or one for all.
struct Fill {
    Batch batch;
    std::size_t step;  // bytes from one key's row to the next: 0 if there is one for all
};
Fill check_fill(Tensor const& tensor, Element const& element, std::size_t rows,
                std::string_view argument);

/// The image of a file: uint8 [n], of any length. Returned contiguous.
Tensor check_bytes(Tensor const& bytes);

/// A bool array may hold any byte, and every byte but 0 is true. In tables all of those are 1, or
/// equal keys would differ.
bool has_true_bools(unsigned char const* bytes, std::size_t count) noexcept;
void make_true_bools(unsigned char* bytes, std::size_t count) noexcept;

/// A key or value that a table can hold; throws TypeError or ValueError.
void check_key_element(Element const& element);
void check_value_element(Element const& element, std::size_t column);

/// The same for all of a table's elements.
void check_elements(Element const& key, std::vector<Element> const& values);

/// 0 .. kMaxEntries, else ValueError.
std::uint64_t check_capacity(Capacity capacity, std::string_view argument);

/// One reduce per column from one for all or one each.
std::vector<Reduce> check_reduce(std::vector<Reduce> const& reduce, std::size_t columns);

/// What rows of the tensor are: its dtype and the shape behind the first dimension.
Element element_of(Tensor const& tensor, std::string_view argument);

}  // namespace tensorhash::table
