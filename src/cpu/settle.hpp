// Which row of a batch won its key's slot. If a row claims a slot and an earlier row of the key
// comes later, on another thread, the earlier one takes the slot over. It notes the row that it
// overtook, so no slot need be read again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensorhash/step/view.hpp"

namespace tensorhash::cpu {

// Masks of rows that are not decided yet.
/// The row overtook another one: its position is that row until settle().
inline constexpr unsigned char kOvertook = 2;
/// The row's slot had no ticket yet: join_late() decides.
inline constexpr unsigned char kUndecidedRow = 4;

inline namespace TH_STEP_NAMESPACE {
/// Are any of eight rows undecided? Hardly any are.
TH_STEP bool is_any_marked(unsigned char const* mask) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, mask, 8);
    return (eight & 0x0101010101010101u * (kOvertook | kUndecidedRow)) != 0;
}
}  // namespace TH_STEP_NAMESPACE

/// After claims that overtook, for the rows of these claims: the mask says which rows have a slot,
/// and every row has its own position. A row that was overtaken, or that was undecided and lost,
/// keeps base + its own row in buf_indices.
void settle(step::BatchView const& batch, std::size_t begin, std::size_t end) noexcept;

}  // namespace tensorhash::cpu
