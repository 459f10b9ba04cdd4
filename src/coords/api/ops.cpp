// The public expansion and stride: arguments in, distinct rows out.
#include "tensorhash/coords/ops.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "coords/api/arguments.hpp"
#include "map/results.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

// Default number of sums (row plus offset) per chunk: enough work for every thread, few enough for
// the cache.
constexpr std::size_t kChunkRows = std::size_t{1} << 17;

backend::CoordRows check_batched_rows(Tensor const& coords, std::optional<std::int64_t> batches) {
    Device const device = device_of(coords, "coords");
    Shape const& shape = coords.shape();
    if (coords.dtype() != Dtype::Int32 && coords.dtype() != Dtype::Int64) {
        throw TypeError("coords: expected int32 or int64, got " +
                        std::string(name(coords.dtype())));
    }
    if (shape.size() != 2 || shape[1] < 2) {
        throw ValueError("coords: expected shape (N, 1 + D), the batch in column 0, got " +
                         to_string(shape));
    }
    if (shape[0] > static_cast<std::int64_t>(backend::kMaxCoordRows)) {
        throw ValueError("coords: expected at most " + std::to_string(backend::kMaxCoordRows) +
                         " rows, got " + std::to_string(shape[0]));
    }
    if (batches && (*batches < 0 || *batches > backend::kMaxBatches)) {
        throw ValueError("num_batches: expected 0 to " + std::to_string(backend::kMaxBatches) +
                         ", got " + std::to_string(*batches));
    }
    return {take_array(coords, "coords", device), static_cast<std::size_t>(shape[0]),
            static_cast<std::uint32_t>(shape[1])};
}

void check_stride(std::vector<std::int64_t> const& stride, std::size_t axes, Dtype dtype) {
    if (stride.size() != axes) {
        throw ValueError("stride: expected one int or " + std::to_string(axes) +
                         ", one per axis, got " + std::to_string(stride.size()));
    }
    std::int64_t const most = dtype == Dtype::Int32 ? std::numeric_limits<std::int32_t>::max()
                                                    : std::numeric_limits<std::int64_t>::max();
    for (std::int64_t const value : stride) {
        if (value < 1 || value > most) {
            throw ValueError("stride: expected 1 to " + std::to_string(most) + ", got " +
                             std::to_string(value));
        }
    }
}

/// Rows that the back end has just written.
BatchedCoords deliver(BatchedCoords made, backend::CoordRows const& from) {
    mark_read(from);
    Device const device = from.tensor.device();
    return {map::deliver(std::move(made.coords), device),
            map::deliver(std::move(made.offsets), device)};
}

}  // namespace

BatchedCoords expand_coords(Tensor const& coords, Tensor const& offsets, std::int64_t chunk,
                            std::optional<std::int64_t> batches) {
    backend::CoordRows const rows = check_batched_rows(coords, batches);
    if (offsets.dtype() != Dtype::Int64 || offsets.rank() != 2 ||
        offsets.shape()[1] + 1 != coords.shape()[1]) {
        throw ValueError("offsets: expected int64 (K, " + std::to_string(rows.columns - 1) +
                         "), got " + std::string(name(offsets.dtype())) + " " +
                         to_string(offsets.shape()));
    }
    if (chunk < 0) {
        throw ValueError("kernel_batch: expected 1 or more, got " + std::to_string(chunk));
    }
    // Clamp to the number of offsets, or the product could overflow.
    std::size_t const chunk_rows =
        chunk == 0 ? kChunkRows
                   : rows.rows * static_cast<std::size_t>(std::min(chunk, offsets.shape()[0]));
    // The host lays out the sums, so it needs the offsets.
    Tensor const flat = offsets.to(Device{}).contiguous();
    return deliver(
        coords_backend(coords.device()).expand(rows, flat.as<std::int64_t>(), chunk_rows, batches),
        rows);
}

BatchedCoords stride_coords(Tensor const& coords, std::vector<std::int64_t> const& stride,
                            std::optional<std::int64_t> batches) {
    backend::CoordRows const rows = check_batched_rows(coords, batches);
    check_stride(stride, rows.columns - 1, coords.dtype());
    return deliver(coords_backend(coords.device()).stride(rows, stride, batches), rows);
}

}  // namespace tensorhash::coords
