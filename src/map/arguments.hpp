// Checking what callers hand over, before anything changes. Each failure is a sentence that names the argument.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/batch.hpp"
#include "tensorhash/eviction.hpp"
#include "tensorhash/hash_map.hpp"

namespace tensorhash::map {

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

/// The keys and values of one call, checked: a batch per column, each with as many rows as keys.
struct KeysAndValues {
    Batch keys;
    std::vector<Batch> values;
};
KeysAndValues check_keys_and_values(Tensor const& keys, Element const& key,
                                    std::vector<Tensor> const& values,
                                    std::vector<Element> const& elements);

/// What stands in for values that are missing: a row for each key, or one for all.
struct Fill {
    Batch batch;
    std::size_t step;  // bytes from one key's row to the next: 0 if there is one for all

    backend::DefaultRows rows() const noexcept { return {batch.data(), step}; }
};
Fill check_fill(Tensor const& tensor, Element const& element, std::size_t rows,
                std::string_view argument);

/// The image of a file: uint8 [n], of any length. Returned contiguous.
Tensor check_bytes(Tensor const& bytes);

/// A key or value that a table can hold; throws TypeError or ValueError.
void check_key_element(Element const& element);
void check_value_element(Element const& element, std::size_t column);

/// The same for all of a table's elements.
void check_elements(Element const& key, std::vector<Element> const& values);

/// 0 .. kMaxEntries, else ValueError.
std::uint64_t check_capacity(Capacity capacity, std::string_view argument);

/// One reduce for all columns or one per column, else ValueError.
void check_reduce(std::vector<Reduce> const& reduce, std::size_t columns);

/// Throws IndexError, naming `argument`, unless the table has the value column.
void check_column(std::size_t column, std::size_t columns, char const* argument);

/// Scores as a bounded table wants them: given if it evicts by score, and only then.
std::optional<Batch> check_scores(Tensor const& scores, Eviction eviction, std::size_t rows,
                                  bool required);

/// The elements of value arrays, for a table that holds them.
std::vector<Element> elements_of(std::vector<Tensor> const& values);

/// What rows of the tensor are: its dtype and the shape behind the first dimension.
Element element_of(Tensor const& tensor, std::string_view argument);

}  // namespace tensorhash::map
