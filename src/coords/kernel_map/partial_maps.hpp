// The pairs of some out rows at a time. They are joined by offset later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coords/kernel_map/paths.hpp"

namespace tensorhash::coords {

/// The most out rows per task: its working set fits L2, and a row's place in it fits 16 bits.
inline constexpr std::size_t kPartRows = 2048;

/// The pairs of some consecutive out rows, by offset, then by row. Offsets without pairs take no
/// memory, so a large kernel may have many parts.
struct PartialMap {
    struct Run {
        std::uint32_t group;
        std::uint32_t count;
        std::int64_t place;  // in the map; set when all parts are known
    };
    std::size_t first_row = 0;
    std::vector<std::int32_t> in{};
    std::vector<std::uint16_t> out{};  // counted from first_row
    std::vector<Run> runs{};           // ascending by group
    std::size_t closed = 0;            // pairs that are in runs
    std::int64_t coarse_probes = 0;
    std::int64_t fine_probes = 0;

    void add(std::int32_t in_row, std::size_t place) {
        in.push_back(in_row);
        out.push_back(static_cast<std::uint16_t>(place));
    }
    void end_group(std::size_t group) {
        if (in.size() == closed) return;
        runs.push_back(
            {static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(in.size() - closed), 0});
        closed = in.size();
    }
};

/// Parts in the order of their rows.
using PartialMaps = std::vector<PartialMap>;

/// Joins all parts to one map. Frees each part as soon as it is copied.
KernelMapPairs join_partial_maps(PartialMaps& parts, std::size_t groups);

}  // namespace tensorhash::coords
