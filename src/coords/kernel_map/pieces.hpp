// Pairs that were found piece by piece of the out rows, put together by offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coords/kernel_map/question.hpp"

namespace tensorhash::coords {

/// Out rows that one task asks for at once: what it needs of them fits L2, and their places fit 16 bits.
inline constexpr std::size_t kPieceRows = 2048;

/// The pairs of some consecutive out rows, offset by offset, ascending by row within one. Offsets without pairs leave no
/// trace: many pieces of a large kernel take no more than their pairs do.
struct Piece {
    struct Run {
        std::uint32_t group;
        std::uint32_t count;
        std::int64_t place;  // in the map, once all pieces are known
    };
    std::size_t first_row = 0;
    std::vector<std::int32_t> in{};
    std::vector<std::uint16_t> out{};  // from the first row of the piece on
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

/// One map of all pieces, which are in the order of their rows. Each is freed as soon as it is copied.
Answer join_pieces(std::vector<Piece>& pieces, std::size_t groups);

}  // namespace tensorhash::coords
