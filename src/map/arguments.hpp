// Checks arguments before anything changes. Every error message names the argument.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/batch.hpp"
#include "tensorhash/eviction.hpp"
#include "tensorhash/hash_map.hpp"

namespace tensorhash::map {

/// A batch that passed the checks: contiguous, of the right dtype, with `rows` rows, on the device
/// of the table.
struct CheckedBatch {
    Tensor tensor;
    std::size_t rows = 0;
    Device home{};  // where the caller's array is, and where results go

    unsigned char const* data() const noexcept {
        return static_cast<unsigned char const*>(tensor.data());
    }
};

// Arrays are on the table's `device`, or on the CPU and then copied there.

/// Throws DeviceError unless a table on `device` can take an array that is on `got`.
void check_device(Device got, Device device, std::string_view argument);
/// Throws a DeviceError that names the call unless the table's device is the CPU. `copy` says how
/// to copy the table there.
void require_table_on_cpu(Device device, std::string_view call, std::string_view copy);

/// The array on the table's device, ready for work on the thread's stream.
Tensor on_device(Tensor const& tensor, Device device);

/// Checks an array [N, ...] with as many elements per row as `element`, in any shape and strides.
CheckedBatch check_batch(Tensor const& tensor, Element const& element, std::string_view argument,
                         Device device = {});
/// The same for an array with `rows` rows, as many as the keys of the call.
CheckedBatch check_batch(Tensor const& tensor, Element const& element, std::string_view argument,
                         std::size_t rows, Device device = {});

/// Checks one batch per column, each with `rows` rows.
std::vector<CheckedBatch> check_values(std::vector<Tensor> const& values,
                                       std::vector<Element> const& elements, std::size_t rows,
                                       Device device = {});

/// The checked keys and values of one call: one batch per column, each with as many rows as keys.
struct KeysAndValues {
    CheckedBatch keys;
    std::vector<CheckedBatch> values;
};
KeysAndValues check_keys_and_values(Tensor const& keys, Element const& key,
                                    std::vector<Tensor> const& values,
                                    std::vector<Element> const& elements, Device device = {});

/// Rows for keys that are absent: one per key, or one for all.
struct FillRows {
    CheckedBatch batch;
    std::size_t step;  // bytes from one key's row to the next; 0 if all share one

    backend::DefaultRows rows() const noexcept { return {batch.data(), step}; }
};
FillRows check_fill(Tensor const& tensor, Element const& element, std::size_t rows,
                    std::string_view argument, Device device = {});

/// The content of a file: uint8 [n]. Returns it contiguous.
Tensor check_bytes(Tensor const& bytes);

/// Throws TypeError or ValueError unless a table can hold the key or value.
void check_key_element(Element const& element);
void check_value_element(Element const& element, std::size_t column);

/// The same for all of a table's elements.
void check_elements(Element const& key, std::vector<Element> const& values);

/// Throws ValueError unless `tables` tables can share the capacity, with at least `least_per_table`
/// and at most kMaxEntries entries each.
std::uint64_t check_capacity(Capacity capacity, std::string_view argument, std::size_t tables = 1,
                             std::size_t least_per_table = 0);

/// Throws ValueError unless there is one valid reduce for all columns or one per column, TypeError
/// unless it suits the column. Returns what back ends know: Any is Max and All is Min of bools, and
/// Count is the Sum of ones, which replace the values of its column.
std::vector<Reduce> resolve_reduce(std::vector<Reduce> const& reduce,
                                   std::vector<Element> const& elements, KeysAndValues& batch);

/// Throws IndexError that names `argument` unless the table has this value column.
void check_column(std::size_t column, std::size_t columns, char const* argument);

/// Checks the scores of a batch. An LRU table takes none. A table that evicts by score needs them
/// if `required`.
std::optional<CheckedBatch> check_scores(Tensor const& scores, Eviction eviction, std::size_t rows,
                                         bool required);

/// element_of() of every value array.
std::vector<Element> elements_of(std::vector<Tensor> const& values);

/// The element of the tensor's rows: its dtype and its shape without the first dimension.
Element element_of(Tensor const& tensor, std::string_view argument);

}  // namespace tensorhash::map
