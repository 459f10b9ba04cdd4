// The flat path: one lookup per out row and offset.
#include <algorithm>

#include "coords/kernel_map/pieces.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {

Answer flat_kernel_map(Question const& question, CoordIndex const& index) {
    std::size_t const rows = question.out.rows;
    std::vector<Piece> pieces((rows + kPieceRows - 1) / kPieceRows);
    runtime::run_tasks(pieces.size(), [&](std::size_t number) {
        Piece& piece = pieces[number];
        std::size_t const begin = number * kPieceRows;
        std::size_t const end = std::min(rows, begin + kPieceRows);
        piece.first_row = begin;
        std::int32_t found[kPieceRows];
        for (std::size_t k = 0; k < question.groups; ++k) {
            index.find_shifted(question.out.data(), begin, end, question.shift(k), found);
            for (std::size_t place = 0; place < end - begin; ++place) {
                if (found[place] >= 0) {
                    piece.add(found[place], place);
                }
            }
            piece.end_group(k);
        }
        piece.fine_probes = static_cast<std::int64_t>((end - begin) * question.groups);
    });
    return join_pieces(pieces, question.groups);
}

}  // namespace tensorhash::coords
