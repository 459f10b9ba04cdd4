// Distinct rows. The key buffer of the table is the result. It is in order of first occurrence, on
// any number of threads.
#include "coords/rows/distinct_rows.hpp"

#include <algorithm>

#include "backend/coord_errors.hpp"
#include "coords/rows/row_groups.hpp"
#include "runtime/parallel.hpp"
#include "table/rows.hpp"

namespace tensorhash::coords {
namespace {

// Every batch from 0 on gets an offset. Beyond this limit, one large batch number would take too
// much memory.
constexpr std::int64_t kMaxBatches = backend::kMaxBatches;

template <class Int>
std::vector<std::int64_t> first_column(void const* data, std::size_t rows, std::size_t columns) {
    auto const* const values = static_cast<Int const*>(data);
    std::vector<std::int64_t> numbers(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        numbers[row] = values[row * columns];
    }
    return numbers;
}

/// Replaces each number by its rank among the distinct numbers. Returns the number of ranks.
std::size_t replace_by_rank(std::vector<std::int64_t>& numbers) {
    std::vector<std::int64_t> distinct = numbers;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (std::int64_t& number : numbers) {
        number = std::lower_bound(distinct.begin(), distinct.end(), number) - distinct.begin();
    }
    return distinct.size();
}

/// The number of batches, counted from 0. If a row's batch is negative or too large, throws
/// ValueError if `batches` is given, else returns nullopt.
template <class Int>
std::optional<std::size_t> check_batches(Tensor const& coords,
                                         std::optional<std::int64_t> batches) {
    auto const columns = static_cast<std::size_t>(coords.shape()[1]);
    auto const values = coords.as<Int>();
    std::int64_t const limit = batches.value_or(kMaxBatches);
    std::int64_t largest = -1;
    for (std::size_t i = 0; i < values.size(); i += columns) {
        std::int64_t const batch = values[i];
        if (batch >= 0 && batch < limit) {
            largest = std::max(largest, batch);
        } else if (batches) {
            backend::fail_batch(limit, batch, i / columns);
        } else {
            return {};
        }
    }
    return static_cast<std::size_t>(batches.value_or(largest + 1));
}

}  // namespace

BatchedRows copy_batched_rows(backend::CoordRows const& coords,
                              std::optional<std::int64_t> batches) {
    // Copy first: the caller's array could change between this check and by_batch().
    std::size_t const bytes = coords.tensor.bytes();
    auto block = runtime::make_shared_block(bytes, runtime::Fill::None);
    runtime::copy_bytes(block->data(), coords.tensor.data(), bytes);
    void* const data = block->data();
    BatchedRows rows{Tensor::borrow(data, coords.tensor.shape(), coords.tensor.dtype(), block),
                     coords.rows, coords.columns, 0, block};
    rows.batches = coords.wide() ? check_batches<std::int64_t>(rows.tensor, batches)
                                 : check_batches<std::int32_t>(rows.tensor, batches);
    return rows;
}

DistinctRows::DistinctRows(Dtype dtype, std::size_t columns)
    : element_{dtype, {static_cast<std::int64_t>(columns)}}, table_(element_, {}, 0) {}

void DistinctRows::add(void const* data, std::size_t rows) {
    // Most rows of a chunk are already in the table. Their probes stay short while half the slots
    // are free.
    if (2 * table_.size() > table_.slots()) {
        table_.reserve(std::min(2 * table_.capacity(), table::kMaxEntries));
    }
    buffer_indices_.resize(rows);
    mask_.resize(rows);
    table_.activate(static_cast<table::Bytes>(data), rows, {buffer_indices_.data(), mask_.data()},
                    table::KeySource::Private);
}

BatchedCoords DistinctRows::by_batch(std::optional<std::size_t> batches) const {
    auto const rows = static_cast<std::size_t>(table_.size());
    auto const columns = static_cast<std::size_t>(element_.shape[0]);
    auto const* const keys = table_.keys().row(0);
    auto batch_of = element_.dtype == Dtype::Int32
                        ? first_column<std::int32_t>(keys, rows, columns)
                        : first_column<std::int64_t>(keys, rows, columns);
    std::size_t const count = batches ? *batches : replace_by_rank(batch_of);
    RowGroups const groups = group_rows(std::span<std::int64_t const>(batch_of), count);
    BatchedCoords out{
        Tensor::empty({static_cast<std::int64_t>(rows), element_.shape[0]}, element_.dtype),
        Tensor::empty({static_cast<std::int64_t>(count) + 1}, Dtype::Int64)};
    table::gather_rows(static_cast<unsigned char*>(out.coords.data()), keys, element_.bytes(),
                       groups.rows.data(), rows);
    std::copy(groups.offsets.begin(), groups.offsets.end(),
              out.offsets.as_mutable<std::int64_t>().begin());
    return out;
}

}  // namespace tensorhash::coords
