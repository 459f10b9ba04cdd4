// Checks the arguments of the public functions, except the numbers in an array: the back end checks
// those.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backend/coords_backend.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

/// The back end for arrays on `device`, which must be usable.
backend::CoordsBackend const& coords_backend(Device device);

/// The allowed number of columns.
struct Columns {
    std::uint32_t least;
    std::uint32_t most;
};

/// Takes int32 or int64 [N, least..most] with any strides, in memory of `device` or of the CPU.
/// Returns them on `device`. Otherwise throws TypeError, ValueError or DeviceError that names
/// `argument`. An empty list, shape (0,), is 0 rows of `least` columns.
backend::CoordRows check_rows(Tensor const& tensor, std::string_view argument, Columns columns,
                              Device device = {});
inline backend::CoordRows check_rows(Tensor const& tensor, std::string_view argument,
                                     std::uint32_t columns, Device device = {}) {
    return check_rows(tensor, argument, Columns{columns, columns}, device);
}

/// The device of an array, which must be usable: free functions run there.
Device device_of(Tensor const& tensor, std::string_view argument);
/// An array on `device` or on the CPU, brought to `device` and contiguous there.
Tensor take_array(Tensor const& tensor, std::string_view argument, Device device);
/// The work so far reads the array: its memory is freed only after that.
inline void mark_read(Tensor const& tensor) { tensor.read_by(current_stream(tensor.device())); }
inline void mark_read(backend::CoordRows const& rows) { mark_read(rows.tensor); }

/// The number of slots for a fixed capacity, a power of two; nullopt without a capacity.
std::optional<std::uint64_t> slots_for(std::optional<Capacity> capacity);

/// Requires points [N, D] with D > 0, of any dtype but bool, in host memory.
void check_points(Tensor const& points, std::string const& argument);
/// The same for memory of `device` or of the CPU. Returns the points there, contiguous.
Tensor take_points(Tensor const& points, std::string const& argument, Device device);

/// Requires queries with as many columns as the points have.
void check_axes(Tensor const& queries, std::int64_t axes);
void check_radius(double radius, std::optional<std::int64_t> max_neighbors);
void check_at_least_zero(std::int64_t number, std::string_view argument);

bool is_integer(Dtype dtype) noexcept;

/// Requires [rows] of any integer dtype, in host memory.
void check_batch_of(Tensor const& batch, std::int64_t rows, std::string const& argument);
/// As take_points().
std::optional<Tensor> take_batch(std::optional<Tensor> const& batch, std::int64_t rows,
                                 std::string const& argument, Device device);

}  // namespace tensorhash::coords
