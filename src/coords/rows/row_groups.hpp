// Rows grouped by a number: the rows of each voxel, cell or batch, listed together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/scan.hpp"
#include "table/table.hpp"

namespace tensorhash::coords {

/// Group g is rows[i] for offsets[g] <= i < offsets[g + 1], ascending.
struct RowGroups {
    std::vector<std::uint64_t> offsets{0};
    std::vector<std::uint32_t> rows;

    std::size_t count() const noexcept { return offsets.size() - 1; }
    std::span<std::uint32_t const> of(std::size_t group) const noexcept {
        return {rows.data() + offsets[group], offsets[group + 1] - offsets[group]};
    }
};

/// Lists the rows by group. Every entry of `group_of_row` must be below `count`.
template <class Group>
RowGroups group_rows(std::span<Group const> group_of_row, std::size_t count) {
    RowGroups groups;
    groups.offsets.assign(count + 1, 0);
    groups.rows.resize(group_of_row.size());
    for (Group const group : group_of_row) ++groups.offsets[static_cast<std::size_t>(group)];
    runtime::scan(groups.offsets);
    std::vector<std::uint64_t> next(groups.offsets.begin(), groups.offsets.end() - 1);
    for (std::size_t row = 0; row < group_of_row.size(); ++row) {
        groups.rows[next[static_cast<std::size_t>(group_of_row[row])]++] =
            static_cast<std::uint32_t>(row);
    }
    return groups;
}

/// Groups rows by their 64-bit keys, in order of first occurrence, and finds the group of a key.
class KeyGroups {
public:
    static constexpr std::uint32_t kNoGroup = 0xffffffffu;

    explicit KeyGroups(std::span<std::uint64_t const> keys);
    RowGroups const& groups() const noexcept { return groups_; }
    /// The group of each key, or kNoGroup. Many threads may call this at once.
    void find(std::span<std::uint64_t const> keys, std::uint32_t* groups,
              unsigned char* mask) const {
        table_.find(reinterpret_cast<table::Bytes>(keys.data()), keys.size(), {groups, mask});
    }

private:
    table::Table table_;
    RowGroups groups_;
};

}  // namespace tensorhash::coords
