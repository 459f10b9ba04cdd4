// The checks and messages that kernel maps share on every device.
#include "backend/kernel_map_request.hpp"

#include <algorithm>
#include <string>

#include "tensorhash/error.hpp"

namespace tensorhash::backend {
namespace {

constexpr std::size_t kHierarchicalAxes = 3;
constexpr std::size_t kMostBlockAxes = 3;
constexpr std::int64_t kMostBlockSize = 16;  // such a kernel overlaps at most three blocks per axis

std::string axis_takes(std::size_t axis, char const* path) {
    return "axis " + std::to_string(axis) + ": the " + path + " path takes ";
}

}  // namespace

bool hierarchical_takes(KernelMapRequest const& request) noexcept {
    return request.axes == kHierarchicalAxes && request.odd && request.centered &&
           request.dilation == Shape(kHierarchicalAxes, 1);
}

void check_hierarchical_takes(KernelMapRequest const& request) {
    std::string const end = "; use the strategy flat or merge";
    if (request.axes != kHierarchicalAxes) {
        throw ValueError("kernel_size: the hierarchical path takes 3 axes, got " +
                         std::to_string(request.axes) + end);
    }
    for (std::size_t axis = 0; axis < request.axes; ++axis) {
        std::string const at = axis_takes(axis, "hierarchical");
        if (request.size[axis] % 2 == 0) {
            throw ValueError("kernel_size: " + at + "odd sizes, got " +
                             std::to_string(request.size[axis]) + end);
        }
        if (request.dilation[axis] != 1) {
            throw ValueError("kernel_dilation: " + at + "1, got " +
                             std::to_string(request.dilation[axis]) + end);
        }
        if (request.offset(0)[axis] != -(request.size[axis] / 2)) {
            throw ValueError("kernel_center_offset: " + at + "the middle, " +
                             std::to_string(request.size[axis] / 2) + ", got " +
                             std::to_string(-std::int64_t{request.offset(0)[axis]}) + end);
        }
    }
}

bool blocks_take(KernelMapRequest const& request) noexcept {
    return request.axes <= kMostBlockAxes &&
           std::all_of(request.dilation.begin(), request.dilation.end(),
                       [](std::int64_t dilation) { return dilation == 1; }) &&
           std::all_of(request.size.begin(), request.size.end(),
                       [](std::int64_t size) { return size <= kMostBlockSize; });
}

void check_blocks_take(KernelMapRequest const& request) {
    std::string const end = "; use the strategy merge or the default";
    if (request.axes > kMostBlockAxes) {
        throw ValueError("kernel_size: the blocks path takes 2 or 3 axes, got " +
                         std::to_string(request.axes) + end);
    }
    for (std::size_t axis = 0; axis < request.axes; ++axis) {
        std::string const at = axis_takes(axis, "blocks");
        if (request.size[axis] > kMostBlockSize) {
            throw ValueError("kernel_size: " + at + "1 to " + std::to_string(kMostBlockSize) +
                             ", got " + std::to_string(request.size[axis]) + end);
        }
        if (request.dilation[axis] != 1) {
            throw ValueError("kernel_dilation: " + at + "1, got " +
                             std::to_string(request.dilation[axis]) + end);
        }
    }
}

void check_skip_symmetric(KernelMapRequest const& request) {
    std::string const argument = "skip_symmetric_kernel_map: ";
    if (!request.odd || !request.centered) {
        throw ValueError(argument + "expected an odd, centered kernel, got kernel_size " +
                         to_string(request.size));
    }
    if (!request.unstrided || !request.equal) {
        throw ValueError(argument +
                         "expected out_coords equal to in_coords and a stride of 1; "
                         "otherwise half of the groups do not mirror the other half");
    }
}

void fail_changed(char const* argument) {
    throw ValueError(std::string(argument) +
                     ": expected rows that do not change, but some were written to during this "
                     "call; pass a copy");
}

void fail_repeated(std::size_t row, std::size_t first) {
    throw ValueError("in_coords: row " + std::to_string(row) + " repeats row " +
                     std::to_string(first) + "; drop repeated rows, or set duplicates to first");
}

}  // namespace tensorhash::backend
