// Rows that share a number, listed together: what voxels, cells and batches are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "table/table.hpp"

namespace tensorhash::coords {

/// Group g is rows[offsets[g]] to rows[offsets[g + 1]], ascending.
struct Groups {
    std::vector<std::uint64_t> offsets{0};
    std::vector<std::uint32_t> rows;

    std::size_t count() const noexcept { return offsets.size() - 1; }
    std::span<std::uint32_t const> of(std::size_t group) const noexcept {
        return {rows.data() + offsets[group], offsets[group + 1] - offsets[group]};
    }
};

/// Every number is below `count`.
template <class Number>
Groups group_rows(std::span<Number const> numbers, std::size_t count) {
    Groups groups;
    groups.offsets.assign(count + 1, 0);
    groups.rows.resize(numbers.size());
    for (Number const number : numbers) ++groups.offsets[static_cast<std::size_t>(number) + 1];
    for (std::size_t g = 0; g < count; ++g) groups.offsets[g + 1] += groups.offsets[g];
    std::vector<std::uint64_t> next(groups.offsets.begin(), groups.offsets.end() - 1);
    for (std::size_t row = 0; row < numbers.size(); ++row) {
        groups.rows[next[static_cast<std::size_t>(numbers[row])]++] =
            static_cast<std::uint32_t>(row);
    }
    return groups;
}

/// Groups of equal 64-bit keys, in order of first occurrence, with the table that finds them.
class KeyGroups {
public:
    static constexpr std::uint32_t kMissing = 0xffffffffu;

    explicit KeyGroups(std::span<std::uint64_t const> keys);
    Groups const& groups() const noexcept { return groups_; }
    /// The group of each key, or kMissing. Many threads may ask at once.
    void find(std::span<std::uint64_t const> keys, std::uint32_t* numbers,
              unsigned char* mask) const {
        table_.find(reinterpret_cast<table::Bytes>(keys.data()), keys.size(), {numbers, mask});
    }

private:
    table::Table table_;
    Groups groups_;
};

}  // namespace tensorhash::coords
