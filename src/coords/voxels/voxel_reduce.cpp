// Reduces the values of each voxel. Rows are grouped first, so that one thread has all rows of a
// voxel and reduces them in row order.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/points.hpp"
#include "coords/rows/row_groups.hpp"
#include "coords/voxels/voxels.hpp"
#include "runtime/parallel.hpp"
#include "table/rows.hpp"
#include "tensor/numbers.hpp"

namespace tensorhash::coords {
namespace {

__extension__ using Wide = __int128;  // holds the sum of 2^31 numbers of any integer dtype

/// One channel of the rows of one voxel.
template <class Type>
struct Channel {
    typename Type::Stored const* values;
    std::size_t width;
    std::span<std::uint32_t const> rows;

    std::size_t size() const noexcept { return rows.size(); }
    auto operator[](std::size_t i) const noexcept { return Type::load(values[rows[i] * width]); }
};

template <class Type>
constexpr bool kIsFloat = std::is_floating_point_v<typename Type::Computed>;

template <class Type>
double float_sum(Channel<Type> const& channel) {
    double sum = 0;
    for (std::size_t i = 0; i < channel.size(); ++i) sum += static_cast<double>(channel[i]);
    return sum;
}

template <class Type>
Wide integer_sum(Channel<Type> const& channel) {
    Wide sum = 0;
    for (std::size_t i = 0; i < channel.size(); ++i) sum += static_cast<Wide>(channel[i]);
    return sum;
}

/// The first value plus the mean deviation from it. The mean of equal values is exactly that value,
/// and the mean stays in the range of the values unless float64 overflows.
template <class Type>
double float_mean(Channel<Type> const& channel) {
    auto const count = static_cast<double>(channel.size());
    auto const first = static_cast<double>(channel[0]);
    double low = first;
    double high = first;
    double deviation = 0;
    for (std::size_t i = 1; i < channel.size(); ++i) {
        auto const value = static_cast<double>(channel[i]);
        low = std::min(low, value);
        high = std::max(high, value);
        deviation += value - first;
    }
    double const mean = first + deviation / count;
    if (std::isfinite(mean)) return std::clamp(mean, low, high);
    return float_sum(channel) / count;  // infinities, NaN, or a difference that overflows
}

template <class Type>
double integer_mean(Channel<Type> const& channel) {
    Wide const sum = integer_sum(channel);
    auto const count = static_cast<Wide>(channel.size());
    Wide const whole = sum / count;
    return static_cast<double>(whole) +
           static_cast<double>(sum % count) / static_cast<double>(count);
}

/// A NaN stays, as in NumPy's minimum and maximum.
template <bool Greatest, class Type>
auto extreme(Channel<Type> const& channel) {
    auto best = channel[0];
    for (std::size_t i = 1; i < channel.size(); ++i) {
        auto const value = channel[i];
        if (best != best) break;
        if (value != value || (Greatest ? value > best : value < best)) best = value;
    }
    return best;
}

/// Fills `out`, one row per voxel, with `join` of every channel.
template <class Type, class Out, class Join>
void join_channels(Tensor const& values, RowGroups const& groups, Out* out, Join&& join) {
    auto const width = static_cast<std::size_t>(values.size() / values.shape()[0]);
    auto const* const data = static_cast<typename Type::Stored const*>(values.data());
    runtime::for_ranges(groups.count(), 1024, [&](std::size_t begin, std::size_t end) {
        for (std::size_t voxel = begin; voxel < end; ++voxel) {
            for (std::size_t c = 0; c < width; ++c) {
                out[voxel * width + c] = join(Channel<Type>{data + c, width, groups.of(voxel)});
            }
        }
    });
}

template <class Type>
void sum_integers(Tensor const& values, RowGroups const& groups, Tensor& out) {
    constexpr bool kIsSigned =
        std::is_signed_v<typename Type::Computed> || std::is_same_v<Type, Truth>;
    using Out = std::conditional_t<kIsSigned, std::int64_t, std::uint64_t>;
    std::atomic<std::int64_t> outside{0};
    join_channels<Type>(values, groups, static_cast<Out*>(out.data()), [&](auto const& channel) {
        Wide const sum = integer_sum(channel);
        if (sum < static_cast<Wide>(std::numeric_limits<Out>::min()) ||
            sum > static_cast<Wide>(std::numeric_limits<Out>::max())) {
            outside.fetch_add(1, std::memory_order_relaxed);  // a count: read after the join
        }
        return static_cast<Out>(sum);
    });
    if (std::int64_t const count = outside.load(std::memory_order_relaxed); count > 0) {
        backend::fail_voxel_sums(static_cast<std::uint64_t>(count), dtype_of<Out>);
    }
}

template <class Type>
void join_into(Tensor const& values, RowGroups const& groups, VoxelReduce reduce, Tensor& out) {
    using Value = typename Type::Computed;
    auto* const stored = static_cast<typename Type::Stored*>(out.data());
    switch (reduce) {
        case VoxelReduce::Min:
            return join_channels<Type>(values, groups, stored, [](auto const& channel) {
                return Type::store(extreme<false>(channel));
            });
        case VoxelReduce::Max:
            return join_channels<Type>(values, groups, stored, [](auto const& channel) {
                return Type::store(extreme<true>(channel));
            });
        case VoxelReduce::Sum:
            if constexpr (kIsFloat<Type>) {
                return join_channels<Type>(values, groups, stored, [](auto const& channel) {
                    return Type::store(static_cast<Value>(float_sum(channel)));
                });
            } else {
                return sum_integers<Type>(values, groups, out);
            }
        case VoxelReduce::Mean:
            if constexpr (kIsFloat<Type>) {
                return join_channels<Type>(values, groups, stored, [](auto const& channel) {
                    return Type::store(static_cast<Value>(float_mean(channel)));
                });
            } else {
                return join_channels<Type>(
                    values, groups, static_cast<double*>(out.data()),
                    [](auto const& channel) { return integer_mean(channel); });
            }
        case VoxelReduce::First:
        case VoxelReduce::Last:
            break;  // no arithmetic: pick_rows
    }
}

void pick_rows(Tensor const& values, RowGroups const& groups, bool last, Tensor& out) {
    std::vector<std::uint32_t> picked(groups.count());
    for (std::size_t voxel = 0; voxel < picked.size(); ++voxel) {
        auto const rows = groups.of(voxel);
        picked[voxel] = last ? rows.back() : rows.front();
    }
    table::gather_rows(
        static_cast<unsigned char*>(out.data()), static_cast<unsigned char const*>(values.data()),
        values.bytes() / static_cast<std::size_t>(values.shape()[0]), picked.data(), picked.size());
}

}  // namespace

RowGroups group_by_voxel(Tensor const& inverse, std::int64_t voxels) {
    Tensor const numbers = inverse.contiguous();
    auto const span = numbers.as<std::int64_t>();
    for (std::int64_t const number : span) {
        if (number < 0 || number >= voxels) {
            backend::fail_voxel_number(number, voxels);
        }
    }
    RowGroups groups = group_rows(span, static_cast<std::size_t>(voxels));
    for (std::size_t voxel = 0; voxel < groups.count(); ++voxel) {
        if (groups.of(voxel).empty()) {
            backend::fail_empty_voxel(voxel);
        }
    }
    return groups;
}

Tensor reduce_rows(Tensor const& values, Tensor const& inverse, std::int64_t voxels,
                   VoxelReduce reduce) {
    RowGroups const groups = group_by_voxel(inverse, voxels);
    Shape shape = values.shape();
    shape[0] = voxels;
    Tensor out = Tensor::empty(shape, backend::reduced_dtype(values.dtype(), reduce));
    if (values.size() == 0) return out;
    Tensor const rows = values.contiguous();
    if (reduce == VoxelReduce::First || reduce == VoxelReduce::Last) {
        pick_rows(rows, groups, reduce == VoxelReduce::Last, out);
        return out;
    }
    visit_number(values.dtype(), "features",
                 [&](auto type) { join_into<decltype(type)>(rows, groups, reduce, out); });
    return out;
}

}  // namespace tensorhash::coords
