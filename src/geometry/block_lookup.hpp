// Finds one block at a time, for rays that meet blocks one after the other. Batches of keys are
// HashMap's business. The hash has a random seed, like those of all tables.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/seed.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/step/hash.hpp"

namespace tensorhash::geometry {

using BlockKey = std::array<std::int32_t, 3>;

class BlockLookup {
public:
    static constexpr std::int32_t kNone = -1;

    explicit BlockLookup(HashMap const& map) : secret_(step::secret_of(runtime::new_seed())) {
        Tensor const active = map.active_buf_indices();
        Tensor const keys = map.key_tensor();
        auto const indices = active.as<std::int32_t>();
        slots_.assign(std::bit_ceil(2 * indices.size() + 2), {});
        auto const* const rows = static_cast<std::int32_t const*>(keys.data());
        for (std::int32_t const index : indices) {
            std::int32_t const* const key = rows + 3 * static_cast<std::size_t>(index);
            insert({key[0], key[1], key[2]}, index);
        }
    }

    /// The buffer index of a block, or kNone.
    std::int32_t find(BlockKey const& key) const noexcept {
        std::size_t at = home(key);
        while (slots_[at].index != kNone && slots_[at].key != key) at = next(at);
        return slots_[at].index;
    }

private:
    struct Slot {
        BlockKey key{};
        std::int32_t index = kNone;
    };

    void insert(BlockKey const& key, std::int32_t index) noexcept {
        std::size_t at = home(key);
        while (slots_[at].index != kNone) at = next(at);
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
    std::vector<Slot> slots_;  // at most half full
};

}  // namespace tensorhash::geometry
