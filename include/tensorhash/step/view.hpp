// What the steps work on: plain structs of pointers, the same on every device.
#pragma once

#include "tensorhash/step/bucket.hpp"
#include "tensorhash/step/key.hpp"

namespace tensorhash::step {

// Outside the per-level namespace: host code passes these to every instruction-set level.

/// An index and the key buffer that its tickets point into.
struct IndexView {
    void* buckets;                    // NarrowBucket or WideBucket [bucket_count]
    std::uint64_t bucket_count;       // 2 to 2^29
    unsigned char const* key_buffer;  // [capacity, key bytes]
    std::uint32_t key_bytes;
    std::uint32_t float_bytes;
    HashSecret secret{};  // belongs to the buckets: another secret would not find their keys
};

/// One batch in progress: its keys, and where the results of each row go. On the CPU, rows that
/// overtook another row or are undecided have other masks until cpu::settle(), and rows that
/// overtook have a row as their position (cpu/settle.hpp).
struct BatchView {
    unsigned char const* keys;   // [rows, key bytes], contiguous
    std::uint32_t base;          // above every buffer index in use
    std::uint32_t* positions;    // [rows]: the slot of each row's key
    std::uint32_t* buf_indices;  // [rows]: buffer index, or base + the row that claims the key
    unsigned char* mask;         // [rows]: 0 or 1
};

}  // namespace tensorhash::step
