// Bodies that read points and batches of any dtype, and quantize points to voxels.
#pragma once

#include <bit>
#include <cstdint>

#include "device/coord_rows.hpp"
#include "tensor/stored.hpp"
#include "tensorhash/dtype.hpp"

namespace tensorhash::device {

template <class Type>
TH_STEP auto load_stored(void const* data, std::uint64_t i) {
    return Type::load(static_cast<typename Type::Stored const*>(data)[i]);
}

/// Calls body(number) with element i of an array. The dtype is the same for all threads, so that
/// the branch costs little beside the read.
template <class Body>
TH_STEP void with_number(void const* data, Dtype dtype, std::uint64_t i, Body const& body) {
    switch (dtype) {
        case Dtype::Bool:
            return body(load_stored<Truth>(data, i));
        case Dtype::Int8:
            return body(load_stored<Plain<std::int8_t>>(data, i));
        case Dtype::Int16:
            return body(load_stored<Plain<std::int16_t>>(data, i));
        case Dtype::Int32:
            return body(load_stored<Plain<std::int32_t>>(data, i));
        case Dtype::Int64:
            return body(load_stored<Plain<std::int64_t>>(data, i));
        case Dtype::UInt8:
            return body(load_stored<Plain<std::uint8_t>>(data, i));
        case Dtype::UInt16:
            return body(load_stored<Plain<std::uint16_t>>(data, i));
        case Dtype::UInt32:
            return body(load_stored<Plain<std::uint32_t>>(data, i));
        case Dtype::UInt64:
            return body(load_stored<Plain<std::uint64_t>>(data, i));
        case Dtype::Float16:
            return body(load_stored<Half>(data, i));
        case Dtype::BFloat16:
            return body(load_stored<BrainHalf>(data, i));
        case Dtype::Float32:
            return body(load_stored<Plain<float>>(data, i));
        default:
            return body(load_stored<Plain<double>>(data, i));
    }
}

/// Adds the axes in order, as the CPU does.
TH_STEP double squared_between(double const* a, double const* b, std::uint64_t axes) {
    double sum = 0;
    for (std::uint64_t axis = 0; axis < axes; ++axis) {
        double const difference = a[axis] - b[axis];
        sum += difference * difference;
    }
    return sum;
}

/// What the device says about points and batches. Words, so that one copy sets all of them.
struct PointReport {
    std::uint64_t nan = 0;
    std::uint64_t infinite = 0;
    std::uint64_t inexact = 0;               // integers that float64 does not hold
    std::uint64_t first = kNoElement;        // the first number that is one of them
    std::uint64_t far = 0;                   // numbers beyond `limit`
    std::uint64_t largest = 0;               // the bits of the largest magnitude
    std::uint64_t wrong_batch = kNoElement;  // the first row with a batch that does not fit
    std::uint64_t outside = 0;               // coordinates outside the dtype of the voxels
    std::uint64_t first_outside = kNoElement;
};

/// Adds a thread's count, without an atomic operation if there is nothing to add.
TH_STEP void report_count(std::uint64_t* at, std::uint64_t count) {
    if (count != 0) {
        fetch_add(at, count);
    }
}
TH_STEP void report_first(std::uint64_t* at, std::uint64_t first) {
    if (first != kNoElement) {
        fetch_min(at, first);
    }
}

/// Converts numbers to float64 and reports the bad ones.
struct ReadPoints {
    using Shared = NoShared;
    void const* from;
    Dtype dtype;
    double* to;
    double limit;
    PointReport* report;
    std::uint64_t numbers;

    TH_STEP void operator()(NoShared&) const {
        PointReport mine;
        for_rows(numbers, [&](std::uint64_t i) {
            with_number(from, dtype, i, [&](auto number) {
                auto const value = static_cast<double>(number);
                to[i] = value;
                check(value, i, mine);
            });
        });
        report_count(&report->nan, mine.nan);
        report_count(&report->infinite, mine.infinite);
        report_count(&report->inexact, mine.inexact);
        report_count(&report->far, mine.far);
        report_first(&report->first, mine.first);
        if (mine.largest != 0) {
            fetch_max(&report->largest, mine.largest);
        }
    }

private:
    /// A thread visits its numbers in ascending order.
    TH_STEP void check(double value, std::uint64_t i, PointReport& mine) const {
        constexpr double kExact = 9007199254740992.0;  // 2^53
        bool const is_integer = dtype == Dtype::Int64 || dtype == Dtype::UInt64;
        double const size = value < 0 ? -value : value;
        bool const is_nan = value != value;
        bool const is_infinite = !is_nan && size - size != 0;
        bool const is_inexact = is_integer && size > kExact;
        mine.nan += is_nan ? 1 : 0;
        mine.infinite += is_infinite ? 1 : 0;
        mine.inexact += is_inexact ? 1 : 0;
        if (is_nan || is_infinite || is_inexact) {
            mine.first = i < mine.first ? i : mine.first;
            return;
        }
        mine.far += size > limit ? 1 : 0;
        // The bits of positive numbers sort like the numbers.
        auto const bits = std::bit_cast<std::uint64_t>(size);
        mine.largest = bits > mine.largest ? bits : mine.largest;
    }
};

/// Batches or labels of any integer dtype as int64. Reports the first uint64 that does not fit.
struct ReadBatch {
    using Shared = NoShared;
    void const* from;
    Dtype dtype;
    std::int64_t* to;
    std::uint64_t* wrong;  // kNoElement before the launch; null: not wanted
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        std::uint64_t first = kNoElement;
        for_rows(rows, [&](std::uint64_t row) {
            with_number(from, dtype, row,
                        [&](auto number) { to[row] = static_cast<std::int64_t>(number); });
            if (dtype == Dtype::UInt64 && to[row] < 0 && row < first) {
                first = row;
            }
        });
        if (wrong != nullptr) {
            report_first(wrong, first);
        }
    }
};

/// The voxel of each point, behind its batch if there is one. `Key` is int32 or int64.
template <class Key>
struct QuantizePoints {
    using Shared = NoShared;
    double const* points;       // [rows, axes]
    double const* size;         // [axes]
    double const* origin;       // [axes]
    std::int64_t const* batch;  // [rows]; null: none
    std::uint64_t axes;
    Key* keys;  // [rows, axes] or [rows, 1 + axes]
    PointReport* report;
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        std::uint64_t outside = 0;
        std::uint64_t first = kNoElement;
        std::uint64_t wrong = kNoElement;
        for_rows(rows, [&](std::uint64_t row) {
            Key* key = keys + row * (axes + (batch != nullptr ? 1 : 0));
            if (batch != nullptr) {
                *key = static_cast<Key>(batch[row]);
                wrong = *key != batch[row] && row < wrong ? row : wrong;
                ++key;
            }
            for (std::uint64_t axis = 0; axis < axes; ++axis) {
                std::uint64_t const at = row * axes + axis;
                double const voxel = round_down((points[at] - origin[axis]) / size[axis]);
                bool const fits = voxel >= kLow && voxel < -kLow;
                key[axis] = fits ? static_cast<Key>(voxel) : Key{0};
                outside += fits ? 0 : 1;
                first = !fits && at < first ? at : first;
            }
        });
        report_count(&report->outside, outside);
        report_first(&report->first_outside, first);
        report_first(&report->wrong_batch, wrong);
    }

private:
    // Both bounds are powers of two, which float64 represents exactly.
    static constexpr double kLow = sizeof(Key) == 4 ? -0x1p31 : -0x1p63;
};

}  // namespace tensorhash::device
