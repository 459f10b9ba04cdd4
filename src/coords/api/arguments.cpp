// The checks of arguments.hpp. Messages are built here, off every hot path.
#include "coords/api/arguments.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "backend/loader.hpp"
#include "map/arguments.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

constexpr auto kMostRows = static_cast<std::int64_t>(backend::kMaxCoordRows);

[[noreturn]] void fail_shape(std::string_view argument, Columns columns, Shape const& got) {
    std::string wanted = "(N, " + std::to_string(columns.least) + ")";
    if (columns.least != columns.most) {
        wanted = "(N, C) with C from " + std::to_string(columns.least) + " to " +
                 std::to_string(columns.most);
    }
    throw ValueError(std::string(argument) + ": expected shape " + wanted + ", got " +
                     to_string(got));
}

/// Throws unless `points` are [N, D] with D > 0, of any dtype but bool.
void require_points(Tensor const& points, std::string const& argument) {
    Shape const& shape = points.shape();
    if (shape.size() != 2 || shape[1] < 1) {
        throw ValueError(argument + ": expected shape (N, D), one row per point, got " +
                         to_string(shape));
    }
    if (points.dtype() == Dtype::Bool) {
        throw TypeError(argument + ": expected floats or integers, got bool");
    }
    if (shape[0] > kMostRows) {
        throw ValueError(argument + ": expected at most " + std::to_string(kMostRows) +
                         " points, got " + std::to_string(shape[0]));
    }
}

/// Throws unless `batch` is [rows] of an integer dtype.
void require_batch(Tensor const& batch, std::int64_t rows, std::string const& argument) {
    if (batch.shape() != Shape{rows}) {
        throw ValueError(argument + ": expected shape (" + std::to_string(rows) +
                         ",), the batch of each row, got " + to_string(batch.shape()));
    }
    if (!is_integer(batch.dtype())) {
        throw TypeError(argument + ": expected integers, got " + std::string(name(batch.dtype())));
    }
}

}  // namespace

void check_axes(Tensor const& queries, std::int64_t axes) {
    std::int64_t const got = queries.shape()[1];
    if (got != axes) {
        throw ValueError("queries: expected " + std::to_string(axes) +
                         " columns, as many as points, got " + std::to_string(got));
    }
}

void check_at_least_zero(std::int64_t number, std::string_view argument) {
    if (number < 0) {
        throw ValueError(std::string(argument) + ": expected 0 or more, got " +
                         std::to_string(number));
    }
}

void check_radius(double radius, std::optional<std::int64_t> max_neighbors) {
    if (!std::isfinite(radius) || radius < 0) {
        throw ValueError("radius: expected a finite number, 0 or more, got " +
                         std::to_string(radius));
    }
    if (max_neighbors) check_at_least_zero(*max_neighbors, "max_neighbors");
}

bool is_integer(Dtype dtype) noexcept {
    switch (dtype) {
        case Dtype::Int8:
        case Dtype::Int16:
        case Dtype::Int32:
        case Dtype::Int64:
        case Dtype::UInt8:
        case Dtype::UInt16:
        case Dtype::UInt32:
        case Dtype::UInt64:
            return true;
        default:
            return false;
    }
}

backend::CoordsBackend const& coords_backend(Device device) {
    return backend::backend_for(device, "device").coords(device);
}

Device device_of(Tensor const& tensor, std::string_view argument) {
    require_usable(tensor.device(), argument);
    return tensor.device();
}

backend::CoordRows check_rows(Tensor const& tensor, std::string_view argument, Columns columns,
                              Device device) {
    if (tensor.dtype() != Dtype::Int32 && tensor.dtype() != Dtype::Int64) {
        throw TypeError(std::string(argument) + ": expected int32 or int64, got " +
                        std::string(name(tensor.dtype())));
    }
    map::check_device(tensor.device(), device, argument);
    Shape const& shape = tensor.shape();
    if (shape.size() == 1 && shape[0] == 0) {
        Shape none{0, static_cast<std::int64_t>(columns.least)};
        return {tensor.to(device).reshape(std::move(none)), 0, columns.least};
    }
    if (shape.size() != 2 || shape[1] < static_cast<std::int64_t>(columns.least) ||
        shape[1] > static_cast<std::int64_t>(columns.most)) {
        fail_shape(argument, columns, shape);
    }
    if (shape[0] > kMostRows) {
        throw ValueError(std::string(argument) + ": at most " + std::to_string(kMostRows) +
                         " rows at once, got " + std::to_string(shape[0]) + "; split it");
    }
    return {take_array(tensor, argument, device), static_cast<std::size_t>(shape[0]),
            static_cast<std::uint32_t>(shape[1])};
}

Tensor take_array(Tensor const& tensor, std::string_view argument, Device device) {
    map::check_device(tensor.device(), device, argument);
    Tensor rows = tensor.contiguous();
    return device.is_cpu() ? rows : map::on_device(rows, device);
}

std::optional<std::uint64_t> slots_for(std::optional<Capacity> capacity) {
    if (!capacity) {
        return {};
    }
    std::uint64_t const keys = map::check_capacity(*capacity, "capacity");
    return std::bit_ceil(std::max<std::uint64_t>(keys, 1));
}

void check_points(Tensor const& points, std::string const& argument) {
    require_host(points.device(), argument);
    require_points(points, argument);
}

Tensor take_points(Tensor const& points, std::string const& argument, Device device) {
    map::check_device(points.device(), device, argument);
    require_points(points, argument);
    return take_array(points, argument, device);
}

void check_batch_of(Tensor const& batch, std::int64_t rows, std::string const& argument) {
    require_host(batch.device(), argument);
    require_batch(batch, rows, argument);
}

std::optional<Tensor> take_batch(std::optional<Tensor> const& batch, std::int64_t rows,
                                 std::string const& argument, Device device) {
    if (!batch) {
        return {};
    }
    map::check_device(batch->device(), device, argument);
    require_batch(*batch, rows, argument);
    return take_array(*batch, argument, device);
}

}  // namespace tensorhash::coords
