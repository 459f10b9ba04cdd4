// Pairs that were found piece by piece of the out rows, put together by offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coords/question.hpp"

namespace tensorhash::coords {

/// Out rows that one task asks for at once: what it needs of them fits L2, and their places fit 16 bits.
inline constexpr std::size_t kPieceRows = 2048;

/// The pairs of some consecutive out rows, offset by offset, ascending by row within one.
struct Piece {
    std::vector<std::int32_t> in{};
    std::vector<std::uint16_t> out{};  // from the first row of the piece on
    std::vector<std::size_t> ends{};   // one per offset: where its pairs end
    std::int64_t coarse_probes = 0;
    std::int64_t fine_probes = 0;

    void add(std::int32_t in_row, std::size_t place) {
        in.push_back(in_row);
        out.push_back(static_cast<std::uint16_t>(place));
    }
    void end_group() { ends.push_back(in.size()); }
};

/// One map of all pieces; piece i holds the rows from i * kPieceRows on. Each is freed as soon as it is copied.
Answer join_pieces(std::vector<Piece>& pieces, std::size_t groups);

}  // namespace tensorhash::coords
