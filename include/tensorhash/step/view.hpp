// What the per-row steps work on: plain structs of pointers, the same on every device.
#pragma once

#include "tensorhash/step/key.hpp"
#include "tensorhash/step/line.hpp"

namespace tensorhash::kernel {

// Not in the instruction set's namespace: host code hands these to every level of the back end.

/// An index and the key buffer that its tickets point into.
struct IndexView {
    void* lines;                      // NarrowLine or WideLine [line_mask + 1], line_mask >= 1
    std::uint64_t line_mask;          // a power of two less one
    unsigned char const* key_buffer;  // [capacity, key bytes]
    std::uint32_t key_bytes;
    std::uint32_t float_bytes;
    HashSecret secret{};  // travels with the lines: they mean nothing under another one
};

/// One batch under way: what comes in and where each row's answer goes.
struct BatchView {
    unsigned char const* keys;  // [rows, key bytes], contiguous
    std::uint32_t base;         // above every buffer index in use
    std::uint32_t* positions;   // [rows]: the slot of each row's key
    std::uint32_t* numbers;  // [rows]: buffer index, or base + row of the row that claims the key
    unsigned char* mask;     // [rows]: 0 or 1
};

}  // namespace tensorhash::kernel
