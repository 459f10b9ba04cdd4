// The numbers of rows that a condition picks, on all threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/scan.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// The rows below `rows` with is_picked(row), ascending. Number is std::int32_t or std::int64_t.
template <class Number, class Pick>
Tensor numbers_where(std::size_t rows, Pick&& is_picked) {
    Tensor out;
    runtime::select(
        runtime::cut(rows, runtime::kGrain),
        [&](std::size_t begin, std::size_t end) {
            std::size_t count = 0;
            for (std::size_t row = begin; row < end; ++row) count += is_picked(row) ? 1 : 0;
            return count;
        },
        [&](std::size_t total) { out = Tensor::empty(with_rows(total, {}), dtype_of<Number>); },
        [&](std::size_t begin, std::size_t end, std::size_t place) {
            auto* const numbers = static_cast<Number*>(out.data());
            for (std::size_t row = begin; row < end; ++row) {
                if (is_picked(row)) numbers[place++] = static_cast<Number>(row);
            }
        });
    return out;
}

}  // namespace tensorhash
