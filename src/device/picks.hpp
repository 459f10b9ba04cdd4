// Bodies that pick a row of each voxel: the nearest to a target, or the first with the most
// frequent label. One thread per voxel.
#pragma once

#include <cstdint>

#include "device/voxels.hpp"

namespace tensorhash::device {

/// The centre of each voxel, from its first row.
struct VoxelCenters {
    using Shared = NoShared;
    double const* points;  // [rows, axes]
    VoxelRows grouped;
    double const* size;    // [axes]
    double const* origin;  // [axes]
    double* centers;       // [voxels, axes]
    std::uint64_t axes;
    std::uint64_t voxels;

    TH_STEP void operator()(NoShared&) const {
        for_rows(voxels * axes, [&](std::uint64_t i) {
            std::uint64_t const begin = grouped.starts[i / axes];
            if (begin == grouped.starts[i / axes + 1]) {
                return;  // the call fails
            }
            std::uint64_t const axis = i % axes;
            double const at = points[grouped.order[begin] * axes + axis] - origin[axis];
            double const voxel = round_down(at / size[axis]);
            centers[i] = (voxel + 0.5) * size[axis] + origin[axis];
        });
    }
};

/// The row nearest to the target of each voxel; of equally near ones the first.
struct NearestRows {
    using Shared = NoShared;
    double const* points;   // [rows, axes]
    double const* targets;  // [voxels, axes]
    VoxelRows grouped;
    std::int64_t* picked;  // [voxels]
    std::uint64_t axes;
    std::uint64_t voxels;

    TH_STEP void operator()(NoShared&) const {
        for_rows(voxels, [&](std::uint64_t voxel) {
            double best = 0;
            std::int64_t found = -1;
            for (std::uint64_t i = grouped.starts[voxel]; i < grouped.starts[voxel + 1]; ++i) {
                std::uint32_t const row = grouped.order[i];
                double const squared = squared_between(points + std::uint64_t{row} * axes,
                                                       targets + voxel * axes, axes);
                if (found < 0 || squared < best) {
                    best = squared;
                    found = row;
                }
            }
            picked[voxel] = found;
        });
    }
};

/// Half of the bits of each row's number, as keys to sort by.
struct HalfKeys {
    using Shared = NoShared;
    std::int64_t const* numbers;
    std::uint32_t const* order;
    std::uint32_t* keys;
    std::uint32_t shift;  // 0 or 32
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t i) {
            auto const bits = static_cast<std::uint64_t>(numbers[order[i]]);
            keys[i] = static_cast<std::uint32_t>(bits >> shift);
        });
    }
};

/// The first row with the most frequent label of each voxel; of equally frequent labels the one
/// that came first. The rows of a voxel are sorted by label, then by row.
struct ModeRows {
    using Shared = NoShared;
    std::int64_t const* labels;  // [rows]
    VoxelRows grouped;
    bool ignores;
    std::int64_t ignored;  // this label does not count, unless there is no other
    std::int64_t* picked;  // [voxels]
    std::uint64_t voxels;

    TH_STEP void operator()(NoShared&) const {
        for_rows(voxels, [&](std::uint64_t voxel) {
            std::uint64_t const end = grouped.starts[voxel + 1];
            std::uint64_t most = 0;
            std::uint32_t found = ~0u;
            std::uint32_t first = ~0u;  // of all rows
            for (std::uint64_t i = grouped.starts[voxel]; i < end;) {
                std::uint32_t const row = grouped.order[i];
                std::int64_t const label = labels[row];
                std::uint64_t const begin = i;
                while (i < end && labels[grouped.order[i]] == label) {
                    ++i;
                }
                first = row < first ? row : first;
                bool const counts = !ignores || label != ignored;
                std::uint64_t const votes = counts ? i - begin : 0;
                if (votes > most || (votes == most && votes != 0 && row < found)) {
                    most = votes;
                    found = row;
                }
            }
            picked[voxel] = most != 0 ? found : first;
        });
    }
};

}  // namespace tensorhash::device
