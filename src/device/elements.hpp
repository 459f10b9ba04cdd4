// Bodies for elements of arrays: casts, and row numbers of the caller.
#pragma once

#include <cstdint>

#include "device/points.hpp"
#include "tensor/casts.hpp"

namespace tensorhash::device {

template <class Type>
TH_STEP void store_number(void* data, std::uint64_t i, AnyNumber number) {
    static_cast<typename Type::Stored*>(data)[i] = converted<Type>(number);
}

/// Writes element i of an array. As with_number(): the dtype is the same for all threads.
TH_STEP void store_number(void* data, Dtype dtype, std::uint64_t i, AnyNumber number) {
    switch (dtype) {
        case Dtype::Bool:
            return store_number<Truth>(data, i, number);
        case Dtype::Int8:
            return store_number<Plain<std::int8_t>>(data, i, number);
        case Dtype::Int16:
            return store_number<Plain<std::int16_t>>(data, i, number);
        case Dtype::Int32:
            return store_number<Plain<std::int32_t>>(data, i, number);
        case Dtype::Int64:
            return store_number<Plain<std::int64_t>>(data, i, number);
        case Dtype::UInt8:
            return store_number<Plain<std::uint8_t>>(data, i, number);
        case Dtype::UInt16:
            return store_number<Plain<std::uint16_t>>(data, i, number);
        case Dtype::UInt32:
            return store_number<Plain<std::uint32_t>>(data, i, number);
        case Dtype::UInt64:
            return store_number<Plain<std::uint64_t>>(data, i, number);
        case Dtype::Float16:
            return store_number<Half>(data, i, number);
        case Dtype::BFloat16:
            return store_number<BrainHalf>(data, i, number);
        case Dtype::Float32:
            return store_number<Plain<float>>(data, i, number);
        default:
            return store_number<Plain<double>>(data, i, number);
    }
}

/// Converts elements to another dtype. In two steps, through a number of any dtype: 26 branches
/// instead of 169.
struct CastElements {
    using Shared = NoShared;
    void const* from;
    Dtype from_dtype;
    void* to;
    Dtype to_dtype;
    std::uint64_t elements;

    TH_STEP void operator()(NoShared&) const {
        for_rows(elements, [&](std::uint64_t i) {
            AnyNumber number;
            with_number(from, from_dtype, i, [&](auto one) { number = AnyNumber::of(one); });
            store_number(to, to_dtype, i, number);
        });
    }
};

/// The caller's row numbers as unsigned ones: negative numbers count from the end. Reports the
/// first that does not exist.
struct NumberRows {
    using Shared = NoShared;
    std::int64_t const* indices;
    std::int64_t rows;
    std::uint32_t* out;    // [count]
    std::uint64_t* wrong;  // kNoElement before the launch
    std::uint64_t count;

    TH_STEP void operator()(NoShared&) const {
        std::uint64_t first = kNoElement;
        for_rows(count, [&](std::uint64_t i) {
            std::int64_t const given = indices[i];
            std::int64_t const number = given < 0 ? given + rows : given;
            bool const exists = number >= 0 && number < rows;
            out[i] = exists ? static_cast<std::uint32_t>(number) : 0;
            first = !exists && i < first ? i : first;
        });
        report_first(wrong, first);
    }
};

}  // namespace tensorhash::device
