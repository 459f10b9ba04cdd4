// One number per row, read from an array of any dtype and widened to 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensorhash/tensor.hpp"

namespace tensorhash::data {

/// One component of the rows of an array. The caller keeps the memory.
struct Column {
    unsigned char const* data = nullptr;
    std::ptrdiff_t step = 0;  // bytes from row to row
    Dtype dtype = Dtype::Undefined;
};

/// The components of an array's rows, in order. `array` is contiguous or has rank 1.
std::vector<Column> columns_of(Tensor const& array);

/// The widened values of rows [begin, begin + count): in the column's own memory if it has that
/// form, else in `room`.
std::uint64_t const* widen(Column const& column, std::size_t begin, std::size_t count,
                           std::uint64_t* room);

/// Writes widened values back as `dtype`: out[i * width] = the value of words[i * step].
void narrow(std::uint64_t const* words, std::size_t step, std::size_t count, Dtype dtype, void* out,
            std::size_t width);

}  // namespace tensorhash::data
