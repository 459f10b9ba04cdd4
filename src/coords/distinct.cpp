// Distinct rows: the table's key buffer is the answer, in order of first occurrence on any number of threads.
#include "coords/distinct.hpp"

#include <algorithm>

#include "coords/groups.hpp"
#include "runtime/parallel.hpp"
#include "table/rows.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

// Every batch has an entry in the offsets: a stray number in the batch column must not take all memory.
constexpr std::int64_t kMaxBatches = std::int64_t{1} << 24;

template <class Int>
std::vector<std::uint32_t> first_column(void const* data, std::size_t rows, std::size_t columns) {
    auto const* const values = static_cast<Int const*>(data);
    std::vector<std::uint32_t> numbers(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        numbers[row] = static_cast<std::uint32_t>(values[row * columns]);
    }
    return numbers;
}

/// The number of batches, once every row is known to be in one.
template <class Int>
std::size_t check_batches(Tensor const& coords, std::optional<std::int64_t> batches) {
    auto const columns = static_cast<std::size_t>(coords.shape()[1]);
    auto const values = coords.as<Int>();
    std::int64_t const limit = batches.value_or(kMaxBatches);
    std::int64_t largest = -1;
    for (std::size_t i = 0; i < values.size(); i += columns) {
        std::int64_t const batch = values[i];
        if (batch < 0 || batch >= limit) {
            throw ValueError("coords: expected batches from 0 to " + std::to_string(limit - 1) +
                             " in column 0, got " + std::to_string(batch) + " in row " +
                             std::to_string(i / columns));
        }
        largest = std::max(largest, batch);
    }
    return static_cast<std::size_t>(batches.value_or(largest + 1));
}

}  // namespace

BatchedRows check_batched_rows(Tensor const& coords, std::optional<std::int64_t> batches) {
    require_usable(coords.device(), "coords");
    Shape const& shape = coords.shape();
    if (coords.dtype() != Dtype::Int32 && coords.dtype() != Dtype::Int64) {
        throw TypeError("coords: expected int32 or int64, got " +
                        std::string(name(coords.dtype())));
    }
    if (shape.size() != 2 || shape[1] < 2) {
        throw ValueError("coords: expected shape (N, 1 + D), the batch in column 0, got " +
                         to_string(shape));
    }
    if (shape[0] > static_cast<std::int64_t>(table::kMaxEntries)) {
        throw ValueError("coords: expected at most " + std::to_string(table::kMaxEntries) +
                         " rows, got " + std::to_string(shape[0]));
    }
    if (batches && (*batches < 0 || *batches > kMaxBatches)) {
        throw ValueError("num_batches: expected 0 to " + std::to_string(kMaxBatches) + ", got " +
                         std::to_string(*batches));
    }
    BatchedRows rows{coords.contiguous(), static_cast<std::size_t>(shape[0]),
                     static_cast<std::size_t>(shape[1]), 0};
    rows.batches = coords.dtype() == Dtype::Int32
                       ? check_batches<std::int32_t>(rows.tensor, batches)
                       : check_batches<std::int64_t>(rows.tensor, batches);
    return rows;
}

Distinct::Distinct(Dtype dtype, std::size_t columns)
    : element_{dtype, {static_cast<std::int64_t>(columns)}}, table_(element_, {}, 0) {}

void Distinct::add(void const* data, std::size_t rows) {
    numbers_.resize(rows);
    mask_.resize(rows);
    table_.activate(static_cast<table::Bytes>(data), rows, {numbers_.data(), mask_.data()});
}

BatchedCoords Distinct::by_batch(std::size_t batches) const {
    auto const rows = static_cast<std::size_t>(table_.size());
    auto const columns = static_cast<std::size_t>(element_.shape[0]);
    auto const* const keys = table_.keys().row(0);
    auto const batch_of = element_.dtype == Dtype::Int32
                              ? first_column<std::int32_t>(keys, rows, columns)
                              : first_column<std::int64_t>(keys, rows, columns);
    Groups const groups = group_rows(std::span<std::uint32_t const>(batch_of), batches);
    BatchedCoords out{
        Tensor::empty({static_cast<std::int64_t>(rows), element_.shape[0]}, element_.dtype),
        Tensor::empty({static_cast<std::int64_t>(batches) + 1}, Dtype::Int64)};
    table::gather_rows(static_cast<unsigned char*>(out.coords.data()), keys, element_.bytes(),
                       groups.rows.data(), rows);
    std::copy(groups.offsets.begin(), groups.offsets.end(),
              out.offsets.as_mutable<std::int64_t>().begin());
    return out;
}

}  // namespace tensorhash::coords
