// Bodies that reduce the rows of each voxel in row order. The formulas are those of
// src/coords/voxels/voxel_reduce.cpp, operation by operation, so results have the CPU's bits.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "device/points.hpp"
#include "device/reduce.hpp"
#include "device/wide_sum.hpp"
#include "tensor/stored.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::device {

/// Counts the rows of each voxel, and lists rows and voxels for a sort. Rows with a voxel that does
/// not exist are not counted, but reported.
struct CountVoxelRows {
    using Shared = NoShared;
    std::int64_t const* inverse;  // [rows]
    std::int64_t voxels;
    std::uint32_t* keys;    // [rows]: the voxel
    std::uint32_t* order;   // [rows]: the row
    std::uint64_t* counts;  // [voxels]
    std::uint64_t* wrong;   // the first such row; kNoElement before the launch
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        std::uint64_t first = kNoElement;
        for_rows(rows, [&](std::uint64_t row) {
            std::int64_t const voxel = inverse[row];
            bool const exists = voxel >= 0 && voxel < voxels;
            order[row] = static_cast<std::uint32_t>(row);
            keys[row] = exists ? static_cast<std::uint32_t>(voxel) : ~0u;
            if (exists) {
                fetch_add(&counts[voxel], std::uint64_t{1});
            } else {
                first = row < first ? row : first;
            }
        });
        report_first(wrong, first);
    }
};

/// Finds the first voxel without rows.
struct FindEmptyVoxel {
    using Shared = NoShared;
    std::uint64_t const* starts;  // [voxels + 1]
    std::uint64_t* empty;         // kNoElement before the launch
    std::uint64_t voxels;

    TH_STEP void operator()(NoShared&) const {
        std::uint64_t first = kNoElement;
        for_rows(voxels, [&](std::uint64_t voxel) {
            first = starts[voxel] == starts[voxel + 1] && voxel < first ? voxel : first;
        });
        report_first(empty, first);
    }
};

/// The rows of each voxel, ascending.
struct VoxelRows {
    std::uint32_t const* order;
    std::uint64_t const* starts;  // [voxels + 1]
};

/// As float64, with the bits that x86 gives a NaN.
template <class Value>
TH_STEP double widened(Value value) {
    if constexpr (std::is_same_v<Value, float>) {
        if (value != value) {
            auto const bits = std::uint64_t{std::bit_cast<std::uint32_t>(value)};
            return std::bit_cast<double>(bits >> 31 << 63 | 0x7ff8000000000000u |
                                         (bits & 0x3fffffu) << 29);
        }
    }
    return static_cast<double>(value);
}
/// The reverse.
template <class Value>
TH_STEP Value narrowed(double value) {
    if constexpr (std::is_same_v<Value, float>) {
        if (value != value) {
            auto const bits = std::bit_cast<std::uint64_t>(value);
            return std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 63 << 31 | 0x7fc00000u |
                                                                   (bits >> 29 & 0x3fffffu)));
        }
    }
    return static_cast<Value>(value);
}

/// One channel of the rows of one voxel; there is at least one row.
template <class Type>
struct Channel {
    using Value = typename Type::Computed;
    typename Type::Stored const* values;
    std::uint64_t width;
    std::uint32_t const* rows;
    std::uint64_t size;

    TH_STEP Value operator[](std::uint64_t i) const { return Type::load(values[rows[i] * width]); }

    TH_STEP double float_sum() const {
        double sum = 0;
        for (std::uint64_t i = 0; i < size; ++i) {
            sum = join_like_x86<JoinSum>(sum, widened((*this)[i]));
        }
        return sum;
    }
    TH_STEP WideSum integer_sum() const {
        WideSum sum;
        for (std::uint64_t i = 0; i < size; ++i) {
            sum.add((*this)[i]);
        }
        return sum;
    }
    TH_STEP double float_mean() const {
        auto const count = static_cast<double>(size);
        auto const first = static_cast<double>((*this)[0]);
        double low = first;
        double high = first;
        double deviation = 0;
        for (std::uint64_t i = 1; i < size; ++i) {
            auto const value = static_cast<double>((*this)[i]);
            low = value < low ? value : low;
            high = high < value ? value : high;
            deviation += value - first;
        }
        double const mean = first + deviation / count;
        if (mean - mean == 0) {
            return mean < low ? low : high < mean ? high : mean;
        }
        double const sum = float_sum();
        return sum != sum ? sum : sum / count;
    }
    template <bool Greatest>
    TH_STEP Value extreme() const {
        Value best = (*this)[0];
        for (std::uint64_t i = 1; i < size && best == best; ++i) {
            Value const value = (*this)[i];
            if (value != value || (Greatest ? value > best : value < best)) {
                best = value;
            }
        }
        return best;
    }
};

/// One number per voxel and channel: min, max, sum or mean of its rows. One thread per number: a
/// voxel that all rows share is a sequential loop.
template <class Type>
struct ReduceVoxels {
    using Shared = NoShared;
    using Stored = typename Type::Stored;
    using Value = typename Type::Computed;
    Stored const* values;  // [rows, width]
    VoxelRows grouped;
    std::uint64_t width;
    coords::VoxelReduce reduce;
    void* out;               // [voxels, width]
    std::uint64_t* outside;  // counts sums that do not fit; 0 before the launch
    std::uint64_t voxels;

    TH_STEP void operator()(NoShared&) const {
        for_rows(voxels * width, [&](std::uint64_t i) {
            std::uint64_t const begin = grouped.starts[i / width];
            std::uint64_t const size = grouped.starts[i / width + 1] - begin;
            if (size != 0) {  // else the call fails
                write(i, {values + i % width, width, grouped.order + begin, size});
            }
        });
    }

private:
    static constexpr bool kIsFloat = std::is_floating_point_v<Value>;
    static constexpr bool kIsSigned = std::is_signed_v<Value> || std::is_same_v<Type, Truth>;

    TH_STEP void write(std::uint64_t i, Channel<Type> const& channel) const {
        auto* const stored = static_cast<Stored*>(out);
        switch (reduce) {
            case coords::VoxelReduce::Min:
                stored[i] = Type::store(channel.template extreme<false>());
                return;
            case coords::VoxelReduce::Max:
                stored[i] = Type::store(channel.template extreme<true>());
                return;
            case coords::VoxelReduce::Sum:
                return write_sum(i, channel);
            default:
                return write_mean(i, channel);
        }
    }
    TH_STEP void write_sum(std::uint64_t i, Channel<Type> const& channel) const {
        if constexpr (kIsFloat) {
            static_cast<Stored*>(out)[i] = Type::store(narrowed<Value>(channel.float_sum()));
        } else {
            WideSum const sum = channel.integer_sum();
            static_cast<std::uint64_t*>(out)[i] = sum.low;
            if (!(kIsSigned ? sum.fits_int64() : sum.fits_uint64())) {
                fetch_add(outside, std::uint64_t{1});
            }
        }
    }
    TH_STEP void write_mean(std::uint64_t i, Channel<Type> const& channel) const {
        if constexpr (kIsFloat) {
            static_cast<Stored*>(out)[i] = Type::store(narrowed<Value>(channel.float_mean()));
        } else {
            static_cast<double*>(out)[i] =
                channel.integer_sum().mean(static_cast<std::uint32_t>(channel.size));
        }
    }
};

/// The first or the last row of each voxel.
struct PickVoxelRows {
    using Shared = NoShared;
    VoxelRows grouped;
    bool last;
    std::uint32_t* picked;  // [voxels]
    std::uint64_t voxels;

    TH_STEP void operator()(NoShared&) const {
        for_rows(voxels, [&](std::uint64_t voxel) {
            std::uint64_t const begin = grouped.starts[voxel];
            std::uint64_t const end = grouped.starts[voxel + 1];
            // An empty voxel picks no row; the call fails.
            picked[voxel] = begin == end ? step::kNotFound : grouped.order[last ? end - 1 : begin];
        });
    }
};

}  // namespace tensorhash::device
