// Checks of the arguments of the public functions: everything that does not need the numbers in an
// array. A back end checks those.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backend/coords_backend.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

/// The back end that works with arrays on `device`, which is usable.
backend::CoordsBackend const& coords_backend(Device device);

/// How many columns rows may have.
struct Columns {
    std::uint32_t least;
    std::uint32_t most;
};

/// TypeError, ValueError or DeviceError that names `argument` unless it is int32 or int64
/// [N, least..most]. Takes any strides. An empty list, shape (0,), is no rows of `least` columns.
backend::CoordRows check_rows(Tensor const& tensor, std::string_view argument, Columns columns);
inline backend::CoordRows check_rows(Tensor const& tensor, std::string_view argument,
                                     std::uint32_t columns) {
    return check_rows(tensor, argument, Columns{columns, columns});
}

/// The slots of a table of fixed capacity: a power of two. Nothing without a capacity.
std::optional<std::uint64_t> slots_for(std::optional<Capacity> capacity);

/// Points [N, D] of any real dtype, D > 0.
void check_points(Tensor const& points, std::string const& argument);

/// Integers [rows] of any dtype.
void check_batch_of(Tensor const& batch, std::int64_t rows, std::string const& argument);

}  // namespace tensorhash::coords
