// Checking the arguments of a kernel map; messages live here, off every hot path.
#include "coords/kernel_map/question.hpp"

#include <atomic>
#include <cstring>
#include <limits>
#include <string>

#include "runtime/parallel.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

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

/// Kernel with dilation and center written out.
Kernel check_kernel(Kernel const& kernel) {
    std::size_t const axes = kernel.size.size();
    if (axes < 2 || axes > kMaxColumns - 1) {
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
        // The center first, so that the products below stay inside 64 bits.
        bool const near = whole.center[axis] >= kInt32Min && whole.center[axis] <= kInt32Max;
        if (!near || -whole.center[axis] * whole.dilation[axis] < kInt32Min ||
            -whole.center[axis] * whole.dilation[axis] > kInt32Max ||
            (whole.size[axis] - 1 - whole.center[axis]) * whole.dilation[axis] > kInt32Max ||
            (whole.size[axis] - 1 - whole.center[axis]) * whole.dilation[axis] < kInt32Min) {
            throw ValueError("kernel_size: axis " + std::to_string(axis) +
                             ": the offsets of size " + std::to_string(whole.size[axis]) +
                             ", dilation " + std::to_string(whole.dilation[axis]) + ", center " +
                             std::to_string(whole.center[axis]) + " do not fit int32");
        }
    }
    return whole;
}

/// [K, axes] of a checked kernel: the last axis runs fastest.
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

bool same_rows(CoordRows const& a, CoordRows const& b) {
    if (a.rows != b.rows || a.columns != b.columns) {
        return false;
    }
    if (a.data() == b.data()) {
        return true;
    }
    std::atomic<bool> same{true};
    runtime::for_ranges(a.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        std::size_t const bytes = (end - begin) * a.columns * sizeof(std::int32_t);
        if (same.load(std::memory_order_relaxed) &&
            std::memcmp(row_of(a, begin), row_of(b, begin), bytes) != 0) {
            same.store(false, std::memory_order_relaxed);
        }
    });
    return same.load(std::memory_order_relaxed);
}

/// A copy: every path reads the rows more than once, and the caller's array may change between.
CoordRows copied(CoordRows const& rows, std::string_view argument) {
    CoordRows own = narrowed(rows, argument);
    if (!rows.wide()) {
        own.tensor = own.tensor.clone();
    }
    return own;
}

/// What a kernel and a list of offsets have in common.
Question check_rows_and_stride(Tensor const& in_coords, Tensor const& out_coords,
                               Shape const& stride, Columns columns, char const* out_name) {
    Question question;
    CoordRows const in = check_rows(in_coords, "in_coords", columns);
    CoordRows const out = check_rows(out_coords, out_name, in.columns);
    question.in = copied(in, "in_coords");
    bool const one_array =
        in.tensor.data() == out.tensor.data() && in.rows == out.rows && in.wide() == out.wide();
    question.out = one_array ? question.in : copied(out, out_name);
    question.axes = question.in.columns - 1;
    check_axes(stride, question.axes, "in_to_out_stride_ratio");
    check_positive(stride, "in_to_out_stride_ratio");
    question.stride = stride;
    question.unstrided = stride == Shape(question.axes, 1);
    question.equal = same_rows(question.in, question.out);
    return question;
}

/// [K, axes] of a list [K, axes + 1].
std::vector<std::int32_t> offsets_of(CoordRows const& list) {
    std::vector<std::int32_t> offsets;
    offsets.reserve(list.rows * (list.columns - 1));
    for (std::size_t k = 0; k < list.rows; ++k) {
        std::int32_t const* const row = row_of(list, k);
        if (row[0] != 0) {
            throw ValueError("kernel_offsets: row " + std::to_string(k) +
                             ", column 0: expected 0, a map joins rows of one batch, got " +
                             std::to_string(row[0]));
        }
        offsets.insert(offsets.end(), row + 1, row + list.columns);
    }
    return offsets;
}

void check_skip_symmetric(Question const& question) {
    std::string const wish = "skip_symmetric_kernel_map: ";
    if (!question.odd || !question.centered) {
        throw ValueError(wish + "expected an odd, centered kernel, got kernel_size " +
                         to_string(question.size));
    }
    if (!question.unstrided || !question.equal) {
        throw ValueError(wish +
                         "expected out_coords equal to in_coords and a stride of 1; "
                         "the other half is no mirror of the first here");
    }
}

}  // namespace

Shift Question::shift(std::size_t k) const noexcept {
    Shift shift;
    for (std::size_t axis = 0; axis < axes; ++axis) {
        shift.scale[axis + 1] = static_cast<std::int32_t>(stride[axis]);
        shift.offset[axis + 1] = offset(k)[axis];
    }
    return shift;
}

void fail_repeated(std::size_t row, std::size_t first) {
    throw ValueError("in_coords: row " + std::to_string(row) + " repeats row " +
                     std::to_string(first) + "; drop repeated rows, or set duplicates to first");
}

Tensor kernel_offsets_from_size(Kernel const& kernel) {
    Kernel const whole = check_kernel(kernel);
    std::vector<std::int32_t> const offsets = offsets_of(whole);
    std::size_t const axes = whole.size.size();
    std::size_t const count = offsets.size() / axes;
    Tensor table = Tensor::zeros(
        {static_cast<std::int64_t>(count), static_cast<std::int64_t>(axes) + 1}, Dtype::Int32);
    auto const cells = table.as_mutable<std::int32_t>();
    for (std::size_t k = 0; k < count; ++k) {
        for (std::size_t axis = 0; axis < axes; ++axis) {
            cells[k * (axes + 1) + axis + 1] = offsets[k * axes + axis];
        }
    }
    return table;
}

Question check_question(Tensor const& in_coords, Tensor const& out_coords, Shape const& stride,
                        Kernel const& kernel, KernelMapOptions const& options,
                        char const* out_name) {
    Columns columns{3, kMaxColumns};
    if (in_coords.shape() == Shape{0} && kernel.size.size() >= 2 &&
        kernel.size.size() < kMaxColumns) {  // an empty list has the axes of the kernel
        columns.least = static_cast<std::uint32_t>(kernel.size.size()) + 1;
    }
    Question question = check_rows_and_stride(in_coords, out_coords, stride, columns, out_name);
    check_axes(kernel.size, question.axes, "kernel_size");
    Kernel const whole = check_kernel(kernel);
    question.size = whole.size;
    question.dilation = whole.dilation;
    question.offsets = offsets_of(whole);
    question.all = question.offsets.size() / question.axes;
    question.groups = question.all;
    question.duplicates = options.duplicates;
    question.odd = true;
    question.centered = true;
    for (std::size_t axis = 0; axis < question.axes; ++axis) {
        question.odd = question.odd && whole.size[axis] % 2 == 1;
        question.centered = question.centered && whole.size[axis] - 1 == 2 * whole.center[axis];
    }
    if (options.skip_symmetric) {
        check_skip_symmetric(question);
        question.groups = question.all / 2;
    }
    return question;
}

Question check_offsets_question(Tensor const& in_coords, Tensor const& out_coords,
                                Shape const& stride, Tensor const& kernel_offsets,
                                Duplicates duplicates) {
    Question question =
        check_rows_and_stride(in_coords, out_coords, stride, Columns{3, kMaxColumns}, "out_coords");
    CoordRows const list = check_rows(kernel_offsets, "kernel_offsets", question.in.columns);
    if (list.rows > static_cast<std::size_t>(kMaxOffsets)) {
        throw ValueError("kernel_offsets: expected at most " + std::to_string(kMaxOffsets) +
                         " rows, got " + std::to_string(list.rows));
    }
    question.offsets = offsets_of(narrowed(list, "kernel_offsets"));
    question.all = list.rows;
    question.groups = list.rows;
    question.duplicates = duplicates;
    question.odd = true;
    return question;
}

}  // namespace tensorhash::coords
