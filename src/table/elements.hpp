// Elements of arrays on the CPU: casts, rows by mask or by number, strided writes.
#pragma once

#include "backend/elements.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::table {

void cast_elements(backend::Cast const& request);
/// The numbers of the rows with a nonzero byte.
Tensor true_rows(backend::Bytes mask, std::uint64_t rows);
void take_rows(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to);
/// All or nothing. Of equal numbers the last row wins.
void put_rows(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to);
void paste(backend::Paste const& request);

}  // namespace tensorhash::table
