// The vector-key table: slots point at rows of integers, which are hashed with Murmur3 and compared
// column by column.
#pragma once

#include "tensorhash/step/atomic.hpp"

namespace tensorhash::step {

// Outside the per-level namespace: host code passes these to every instruction-set level.

/// The slot's own index in the low half, the row in the high half: in memory two int32, (slot,
/// row). All ones, (-1, -1), is empty.
using VectorSlot = std::uint64_t;
inline constexpr VectorSlot kEmptyVectorSlot = ~0ull;

struct VectorView {
    VectorSlot* slots;         // [mask + 1]
    std::int32_t const* rows;  // [rows, columns]: the rows that slots point at
    std::uint32_t columns;
    std::uint32_t mask;
    std::uint32_t longest;  // no key is more than this many steps from where its probe begins
};

inline namespace TH_STEP_NAMESPACE {

TH_STEP constexpr std::uint32_t rotated(std::uint32_t x, unsigned by) {
    return x << by | x >> (32 - by);
}

/// Murmur3 over the columns of a row, 32 bits.
TH_STEP std::uint32_t murmur(std::int32_t const* row, std::uint32_t columns) {
    std::uint32_t h = 0x9747b28cu;
    for (std::uint32_t c = 0; c < columns; ++c) {
        std::uint32_t k = static_cast<std::uint32_t>(row[c]) * 0xcc9e2d51u;
        h ^= rotated(k, 15) * 0x1b873593u;
        h = rotated(h, 13) * 5 + 0xe6546b64u;
    }
    h ^= 4 * columns;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

TH_STEP bool equal_rows(std::int32_t const* a, std::int32_t const* b, std::uint32_t columns) {
    std::uint32_t difference = 0;
    for (std::uint32_t c = 0; c < columns; ++c) {
        difference |= static_cast<std::uint32_t>(a[c] ^ b[c]);
    }
    return difference == 0;
}

TH_STEP std::uint32_t vector_row(VectorSlot slot) { return static_cast<std::uint32_t>(slot >> 32); }
TH_STEP VectorSlot to_vector_slot(std::uint32_t at, std::uint32_t row) {
    return static_cast<VectorSlot>(row) << 32 | at;
}
TH_STEP std::int32_t const* vector_row_at(VectorView const& table, std::uint32_t row,
                                          std::uint32_t columns) {
    return table.rows + static_cast<std::size_t>(row) * columns;
}

/// The row equal to `key`, or all ones. The probe begins at slot `at`. No thread may write
/// meanwhile. `columns` is the table's; as an argument it can be a compile-time constant.
TH_STEP std::uint32_t vector_find(VectorView const& table, std::int32_t const* key,
                                  std::uint32_t columns, std::uint32_t at) {
    for (std::uint32_t steps = 0;; ++steps, at = (at + 1) & table.mask) {
        VectorSlot const slot = table.slots[at];
        if (slot == kEmptyVectorSlot) {
            return vector_row(slot);
        }
        if (equal_rows(vector_row_at(table, vector_row(slot), columns), key, columns)) {
            return vector_row(slot);
        }
        if (steps == table.longest) {
            return vector_row(kEmptyVectorSlot);
        }
    }
}

struct VectorClaim {
    std::uint32_t steps;
    bool claimed;  // the slot was empty
    bool full;     // the key is absent and no slot is empty: nothing changed
};

/// Puts `row`, one of the table's rows, into a slot. Of equal rows the smallest stays. Relaxed
/// order suffices: the rows were written before the batch began, and a slot is one word.
template <class Access>
TH_STEP VectorClaim vector_claim(VectorView const& table, std::uint32_t row,
                                 std::uint32_t columns) {
    std::int32_t const* const key = vector_row_at(table, row, columns);
    std::uint32_t at = murmur(key, columns) & table.mask;
    for (std::uint32_t steps = 0;; ++steps, at = (at + 1) & table.mask) {
        VectorSlot seen = Access::load(&table.slots[at]);
        if (seen == kEmptyVectorSlot &&
            Access::cas(&table.slots[at], seen, to_vector_slot(at, row))) {
            return {steps, true, false};
        }
        // Here `seen` is a row, perhaps one that another thread has just claimed.
        if (equal_rows(vector_row_at(table, vector_row(seen), columns), key, columns)) {
            while (row < vector_row(seen) &&
                   !Access::cas(&table.slots[at], seen, to_vector_slot(at, row))) {
            }
            return {steps, false, false};
        }
        if (steps == table.mask) {
            return {steps, false, true};
        }
    }
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
