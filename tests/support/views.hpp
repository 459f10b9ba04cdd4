// Writes to views of a table's buffers, on the CPU or on a device, as a framework would.
#pragma once

#include <cstddef>

#include "tensorhash/tensor.hpp"

namespace th_test {

/// Writes to the view's memory, in order with the work that writes the view.
void write_bytes(tensorhash::Tensor& view, std::size_t offset, void const* bytes, std::size_t size);

template <class T>
void write_element(tensorhash::Tensor& view, std::size_t at, T value) {
    write_bytes(view, at * sizeof(T), &value, sizeof(T));
}

}  // namespace th_test
