// Finds one block at a time, for rays that meet blocks one after the other; HashMap looks up
// batches. Blocks that lie close together are in a dense box, others in a hash table with a random
// seed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/seed.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/step/hash.hpp"

namespace tensorhash::geometry {

using BlockKey = std::array<std::int32_t, 3>;

class BlockLookup {
public:
    static constexpr std::int32_t kNoBlock = -1;

    explicit BlockLookup(HashMap const& map) : secret_(step::secret_of(runtime::new_seed())) {
        Tensor const active = map.active_buf_indices();
        Tensor const keys = map.key_tensor();
        auto const indices = active.as<std::int32_t>();
        auto const* const rows = static_cast<std::int32_t const*>(keys.data());
        auto const for_each = [&](auto&& body) {
            for (std::int32_t const index : indices) {
                std::int32_t const* const key = rows + 3 * static_cast<std::size_t>(index);
                body(BlockKey{key[0], key[1], key[2]}, index);
            }
        };
        if (make_box(indices.size(), for_each)) {
            for_each([&](BlockKey const& key, std::int32_t index) { box_[in_box(key)] = index; });
        } else {
            slots_.assign(std::bit_ceil(2 * indices.size() + 2), {});
            for_each([&](BlockKey const& key, std::int32_t index) { insert(key, index); });
        }
    }

    /// The buffer index of a block, or kNoBlock.
    std::int32_t find(BlockKey const& key) const noexcept {
        if (!box_.empty()) return is_in_box(key) ? box_[in_box(key)] : kNoBlock;
        std::size_t at = home(key);
        while (slots_[at].index != kNoBlock && slots_[at].key != key) at = next(at);
        return slots_[at].index;
    }

private:
    struct Slot {
        BlockKey key{};
        std::int32_t index = kNoBlock;
    };

    /// Makes the box around all blocks, unless most of it would be empty.
    template <class ForEach>
    bool make_box(std::size_t blocks, ForEach const& for_each) {
        constexpr std::uint64_t kMostPerBlock = 64;
        BlockKey low;
        BlockKey high;
        low.fill(std::numeric_limits<std::int32_t>::max());
        high.fill(std::numeric_limits<std::int32_t>::min());
        for_each([&](BlockKey const& key, std::int32_t) {
            for (std::size_t axis = 0; axis < 3; ++axis) {
                low[axis] = std::min(low[axis], key[axis]);
                high[axis] = std::max(high[axis], key[axis]);
            }
        });
        std::uint64_t const most = kMostPerBlock * blocks;
        std::uint64_t cells = 1;
        for (std::size_t axis = 0; axis < 3 && cells <= most; ++axis) {
            extent_[axis] = static_cast<std::uint64_t>(std::int64_t{high[axis]} - low[axis] + 1);
            cells = extent_[axis] <= most ? cells * extent_[axis] : most + 1;
        }
        if (blocks == 0 || cells > most) return false;
        low_ = low;
        box_.assign(cells, kNoBlock);
        return true;
    }
    std::uint64_t offset(BlockKey const& key, std::size_t axis) const noexcept {
        return static_cast<std::uint64_t>(std::int64_t{key[axis]} - low_[axis]);
    }
    bool is_in_box(BlockKey const& key) const noexcept {
        return offset(key, 0) < extent_[0] && offset(key, 1) < extent_[1] &&
               offset(key, 2) < extent_[2];
    }
    std::size_t in_box(BlockKey const& key) const noexcept {
        return (offset(key, 2) * extent_[1] + offset(key, 1)) * extent_[0] + offset(key, 0);
    }

    void insert(BlockKey const& key, std::int32_t index) noexcept {
        std::size_t at = home(key);
        while (slots_[at].index != kNoBlock) at = next(at);
        slots_[at] = {key, index};
    }
    std::size_t home(BlockKey const& key) const noexcept {
        auto const x = static_cast<std::uint32_t>(key[0]);
        auto const y = static_cast<std::uint32_t>(key[1]);
        std::uint64_t const start =
            step::fold_in(secret_.start, std::uint64_t{x} << 32 | y, secret_);
        return step::end_with(start, static_cast<std::uint32_t>(key[2]), secret_) &
               (slots_.size() - 1);
    }
    std::size_t next(std::size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }

    step::HashSecret secret_;
    std::vector<Slot> slots_;        // at most half full; not used if there is a box
    std::vector<std::int32_t> box_;  // the buffer index of each place, or kNoBlock
    BlockKey low_{};
    std::array<std::uint64_t, 3> extent_{};
};

}  // namespace tensorhash::geometry
