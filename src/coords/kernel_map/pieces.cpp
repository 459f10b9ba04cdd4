// Joining pieces: the counts say where each goes, then all are copied at once.
#include "coords/kernel_map/pieces.hpp"

#include <utility>

#include "runtime/parallel.hpp"

namespace tensorhash::coords {

Answer join_pieces(std::vector<Piece>& pieces, std::size_t groups) {
    Answer answer;
    answer.offsets = Tensor::zeros({static_cast<std::int64_t>(groups) + 1}, Dtype::Int64);
    auto const offsets = answer.offsets.as_mutable<std::int64_t>();
    for (Piece const& piece : pieces) {
        for (Piece::Run const& run : piece.runs) offsets[run.group + 1] += run.count;
    }
    for (std::size_t group = 0; group < groups; ++group) offsets[group + 1] += offsets[group];
    std::vector<std::int64_t> next(offsets.begin(), offsets.end());
    for (Piece& piece : pieces) {
        for (Piece::Run& run : piece.runs) {
            run.place = next[run.group];
            next[run.group] += run.count;
        }
    }
    answer.in_maps = Tensor::empty({offsets[groups]}, Dtype::Int32);
    answer.out_maps = Tensor::empty({offsets[groups]}, Dtype::Int32);
    auto* const in = answer.in_maps.as_mutable<std::int32_t>().data();
    auto* const out = answer.out_maps.as_mutable<std::int32_t>().data();
    for (Piece const& piece : pieces) {
        answer.coarse_probes += piece.coarse_probes;
        answer.fine_probes += piece.fine_probes;
    }
    runtime::run_tasks(pieces.size(), [&](std::size_t i) {
        Piece const piece = std::exchange(pieces[i], {});
        auto const first_row = static_cast<std::int32_t>(piece.first_row);
        std::size_t from = 0;
        for (Piece::Run const& run : piece.runs) {
            for (std::int64_t at = run.place; at < run.place + run.count; ++at, ++from) {
                in[at] = piece.in[from];
                out[at] = first_row + piece.out[from];
            }
        }
    });
    return answer;
}

}  // namespace tensorhash::coords
