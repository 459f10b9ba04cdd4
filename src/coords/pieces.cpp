// Joining pieces: the counts say where each goes, then all are copied at once.
#include "coords/pieces.hpp"

#include <algorithm>
#include <utility>

#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

std::size_t begin_of(Piece const& piece, std::size_t group) {
    return group == 0 ? 0 : piece.ends[group - 1];
}

}  // namespace

Answer join_pieces(std::vector<Piece>& pieces, std::size_t groups) {
    Answer answer;
    answer.offsets = Tensor::zeros({static_cast<std::int64_t>(groups) + 1}, Dtype::Int64);
    auto const offsets = answer.offsets.as_mutable<std::int64_t>();
    std::vector<std::int64_t> places(pieces.size() * groups);  // [piece, group]
    std::int64_t next = 0;
    for (std::size_t group = 0; group < groups; ++group) {
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            places[i * groups + group] = next;
            next += static_cast<std::int64_t>(pieces[i].ends[group] - begin_of(pieces[i], group));
        }
        offsets[group + 1] = next;
    }
    answer.in_maps = Tensor::empty({next}, Dtype::Int32);
    answer.out_maps = Tensor::empty({next}, Dtype::Int32);
    auto* const in = answer.in_maps.as_mutable<std::int32_t>().data();
    auto* const out = answer.out_maps.as_mutable<std::int32_t>().data();
    for (Piece const& piece : pieces) {
        answer.coarse_probes += piece.coarse_probes;
        answer.fine_probes += piece.fine_probes;
    }
    runtime::run_tasks(pieces.size(), [&](std::size_t i) {
        Piece const piece = std::exchange(pieces[i], {});
        auto const first_row = static_cast<std::int32_t>(i * kPieceRows);
        for (std::size_t group = 0; group < groups; ++group) {
            std::int64_t at = places[i * groups + group];
            for (std::size_t from = begin_of(piece, group); from < piece.ends[group]; ++from) {
                in[at] = piece.in[from];
                out[at++] = first_row + piece.out[from];
            }
        }
    });
    return answer;
}

}  // namespace tensorhash::coords
