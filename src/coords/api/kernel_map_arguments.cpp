// Checks the arguments of a kernel map. Messages are built here, off every hot path.
#include "coords/api/kernel_map_arguments.hpp"

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "coords/api/arguments.hpp"
#include "coords/rows/rows.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

using backend::CoordRows;
using backend::KernelMapRequest;

constexpr std::int64_t kMaxOffsets = std::int64_t{1} << 24;
constexpr std::size_t kWarpConvNetThreshold = 125;  // hierarchical from this many offsets on
constexpr std::uint32_t kTableColumns = 4;          // batch, x, y, z
constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt32Min = std::numeric_limits<std::int32_t>::min();

void check_axes(Shape const& numbers, std::size_t axes, char const* argument) {
    if (numbers.size() != axes) {
        throw ValueError(std::string(argument) + ": expected " + std::to_string(axes) +
                         " numbers, one per axis, got " + std::to_string(numbers.size()));
    }
}

void check_positive(Shape const& numbers, char const* argument) {
    for (std::size_t axis = 0; axis < numbers.size(); ++axis) {
        if (numbers[axis] < 1 || numbers[axis] > kInt32Max) {
            throw ValueError(std::string(argument) + ": axis " + std::to_string(axis) +
                             ": expected 1 to " + std::to_string(kInt32Max) + ", got " +
                             std::to_string(numbers[axis]));
        }
    }
}

/// The first and the last offset of an axis must fit int32.
void check_offsets_fit(Kernel const& kernel, std::size_t axis) {
    std::int64_t const center = kernel.center[axis];
    std::int64_t const dilation = kernel.dilation[axis];
    auto const fits = [](std::int64_t offset) {
        return offset >= kInt32Min && offset <= kInt32Max;
    };
    // Check the center first: then the products cannot overflow.
    if (fits(center) && fits(-center * dilation) &&
        fits((kernel.size[axis] - 1 - center) * dilation)) {
        return;
    }
    throw ValueError("kernel_size: axis " + std::to_string(axis) + ": the offsets of size " +
                     std::to_string(kernel.size[axis]) + ", dilation " + std::to_string(dilation) +
                     ", center " + std::to_string(center) + " do not fit int32");
}

/// The offsets [K, axes] of a list [K, axes + 1]. Throws ValueError unless its column 0 is all 0.
std::vector<std::int32_t> offsets_in(CoordRows const& list) {
    std::vector<std::int32_t> offsets;
    offsets.reserve(list.rows * (list.columns - 1));
    for (std::size_t k = 0; k < list.rows; ++k) {
        std::int32_t const* const row = backend::row_of(list, k);
        if (row[0] != 0) {
            throw ValueError("kernel_offsets: row " + std::to_string(k) +
                             ", column 0: expected 0, because a map joins rows of one batch, got " +
                             std::to_string(row[0]));
        }
        offsets.insert(offsets.end(), row + 1, row + list.columns);
    }
    return offsets;
}

/// The checks that are the same for a kernel and for a list of offsets.
KernelMapRequest check_rows_and_stride(Tensor const& in_coords, Tensor const& out_coords,
                                       Shape const& stride, Columns columns) {
    KernelMapRequest request;
    Device const device = device_of(in_coords, "in_coords");
    request.in = check_rows(in_coords, "in_coords", columns, device);
    request.out = check_rows(out_coords, "out_coords", request.in.columns, device);
    request.axes = request.in.columns - 1;
    check_axes(stride, request.axes, "in_to_out_stride_ratio");
    check_positive(stride, "in_to_out_stride_ratio");
    request.stride = stride;
    request.unstrided = stride == Shape(request.axes, 1);
    return request;
}

/// Sets everything that follows from the kernel.
void set_kernel(KernelMapRequest& request, Kernel const& kernel) {
    check_axes(kernel.size, request.axes, "kernel_size");
    Kernel const whole = check_kernel(kernel);
    request.size = whole.size;
    request.dilation = whole.dilation;
    request.offsets = offsets_of(whole);
    request.all = request.offsets.size() / request.axes;
    request.groups = request.all;
    request.odd = true;
    request.centered = true;
    for (std::size_t axis = 0; axis < request.axes; ++axis) {
        request.odd = request.odd && whole.size[axis] % 2 == 1;
        request.centered = request.centered && whole.size[axis] - 1 == 2 * whole.center[axis];
    }
}

/// Sets the strategy. Throws ValueError if the strategy does not take the kernel.
void set_strategy(KernelMapRequest& request, Strategy strategy) {
    if (strategy == Strategy::WarpConvNet) {
        bool const large = request.all >= kWarpConvNetThreshold && request.groups == request.all;
        strategy =
            large && backend::hierarchical_takes(request) ? Strategy::Hierarchical : Strategy::Flat;
    }
    if (strategy == Strategy::Hierarchical) backend::check_hierarchical_takes(request);
    if (strategy == Strategy::Blocks) backend::check_blocks_take(request);
    request.strategy = strategy;
}

}  // namespace

Kernel check_kernel(Kernel const& kernel) {
    std::size_t const axes = kernel.size.size();
    if (axes < 2 || axes > backend::kMaxCoordColumns - 1) {
        throw ValueError("kernel_size: expected 2 to 6 axes, got " + std::to_string(axes));
    }
    check_positive(kernel.size, "kernel_size");
    Kernel whole = kernel;
    if (whole.dilation.empty()) {
        whole.dilation.assign(axes, 1);
    }
    check_axes(whole.dilation, axes, "kernel_dilation");
    check_positive(whole.dilation, "kernel_dilation");
    if (whole.center.empty()) {
        for (std::int64_t const extent : whole.size) {
            whole.center.push_back(extent % 2 == 1 ? (extent - 1) / 2 : 0);
        }
    }
    check_axes(whole.center, axes, "center_offset");
    std::int64_t count = 1;
    for (std::size_t axis = 0; axis < axes; ++axis) {
        if (whole.size[axis] > kMaxOffsets / count) {
            throw ValueError("kernel_size: expected at most " + std::to_string(kMaxOffsets) +
                             " offsets in all, got the box " + to_string(kernel.size));
        }
        count *= whole.size[axis];
        check_offsets_fit(whole, axis);
    }
    return whole;
}

std::vector<std::int32_t> offsets_of(Kernel const& kernel) {
    std::size_t const axes = kernel.size.size();
    auto const count = static_cast<std::size_t>(num_elements(kernel.size));
    std::vector<std::int32_t> offsets(count * axes);
    for (std::size_t k = 0; k < count; ++k) {
        auto rest = static_cast<std::int64_t>(k);
        for (std::size_t axis = axes; axis-- > 0;) {
            std::int64_t const place = rest % kernel.size[axis];
            rest /= kernel.size[axis];
            offsets[k * axes + axis] =
                static_cast<std::int32_t>((place - kernel.center[axis]) * kernel.dilation[axis]);
        }
    }
    return offsets;
}

KernelMapRequest check_request(Tensor const& in_coords, Tensor const& out_coords,
                               Shape const& stride, Kernel const& kernel,
                               KernelMapOptions const& options) {
    Columns columns{3, backend::kMaxCoordColumns};
    std::size_t const kernel_axes = kernel.size.size();
    if (in_coords.shape() == Shape{0} && kernel_axes >= 2 &&
        kernel_axes < backend::kMaxCoordColumns) {  // an empty list takes its axes from the kernel
        columns.least = static_cast<std::uint32_t>(kernel_axes) + 1;
    }
    KernelMapRequest request = check_rows_and_stride(in_coords, out_coords, stride, columns);
    set_kernel(request, kernel);
    request.duplicates = options.duplicates;
    if (options.skip_symmetric) {
        request.groups = request.all / 2;
    }
    set_strategy(request, options.strategy);
    return request;
}

KernelMapRequest check_offsets_request(Tensor const& in_coords, Tensor const& out_coords,
                                       Shape const& stride, Tensor const& kernel_offsets,
                                       Duplicates duplicates) {
    KernelMapRequest request =
        check_rows_and_stride(in_coords, out_coords, stride, Columns{3, backend::kMaxCoordColumns});
    // The host lays out the groups, so it needs the offsets.
    CoordRows const list =
        check_rows(kernel_offsets.to(Device{}), "kernel_offsets", request.in.columns);
    if (list.rows > static_cast<std::size_t>(kMaxOffsets)) {
        throw ValueError("kernel_offsets: expected at most " + std::to_string(kMaxOffsets) +
                         " rows, got " + std::to_string(list.rows));
    }
    request.offsets = offsets_in(narrowed(list, "kernel_offsets"));
    request.all = list.rows;
    request.groups = list.rows;
    request.duplicates = duplicates;
    request.odd = true;
    request.strategy = Strategy::Flat;
    return request;
}

KernelMapRequest check_table_request(Tensor const& query_coords, Shape const& kernel_size,
                                     std::int64_t coarse_stride, Device device) {
    KernelMapRequest request;
    request.out = check_rows(query_coords, "query_coords", kTableColumns, device);
    request.out_name = "query_coords";
    request.axes = kTableColumns - 1;
    request.stride = Shape(request.axes, 1);
    request.unstrided = true;
    set_kernel(request, Kernel{kernel_size});
    set_strategy(request, Strategy::Hierarchical);
    if (coarse_stride < 1 || coarse_stride > (std::int64_t{1} << 30) ||
        !std::has_single_bit(static_cast<std::uint64_t>(coarse_stride))) {
        throw ValueError("stride: expected a power of two from 1 to 2^30, got " +
                         std::to_string(coarse_stride));
    }
    request.coarse_stride = coarse_stride;
    return request;
}

}  // namespace tensorhash::coords
