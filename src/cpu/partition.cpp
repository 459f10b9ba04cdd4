// Runs the scatter loops on all threads: one piece of consecutive rows per thread.
#include "cpu/partition.hpp"

#include <algorithm>

#include "runtime/parallel.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::cpu {
namespace {

/// Below this many rows a piece is not worth its lists of parts.
constexpr std::size_t kMinPiece = std::size_t{1} << 16;

std::size_t pieces_for(std::size_t rows) {
    auto const threads = static_cast<std::size_t>(num_threads());
    return std::clamp<std::size_t>(rows / kMinPiece, 1, threads);
}

}  // namespace

Partition::Partition(PartitionSource const& source, std::size_t rows, std::size_t carried)
    : carried_(carried), pieces_(pieces_for(rows)) {
    std::size_t const count = pieces_.size();
    runtime::run_tasks(count, [&](std::size_t i) {
        fill(pieces_[i], source, rows * i / count, rows * (i + 1) / count);
    });
}

void Partition::fill(Piece& piece, PartitionSource const& source, std::size_t begin,
                     std::size_t end) {
    // Every part may leave its last block half empty.
    std::size_t const blocks = (end - begin) / kBlockRows + kParts;
    piece.arena = runtime::Block(blocks * block_bytes(carried_));
    piece.combined = runtime::Block(kParts * combine_bytes(carried_));
    piece.next = runtime::Block(blocks * sizeof(std::uint32_t), runtime::Fill::Zero);
    piece.writer.arena = piece.arena.data();
    piece.writer.combined = piece.combined.data();
    piece.writer.next = reinterpret_cast<std::uint32_t*>(piece.next.data());

    std::vector<std::uint64_t> memory(kReadRows * (1 + kMaxCarried));
    std::uint64_t* const words = memory.data();
    std::array<std::uint64_t*, kMaxCarried> room{};
    std::array<std::uint64_t const*, kMaxCarried> values{};
    for (std::size_t k = 0; k < kMaxCarried; ++k) room[k] = words + kReadRows * (1 + k);

    GroupLoops::Scatter const& scatter = group_loops().scatter[carried_];
    scatter.begin(piece.writer);
    for (std::size_t row = begin; row < end; row += kReadRows) {
        std::size_t const count = std::min(kReadRows, end - row);
        source.read(row, count, words, room.data(), values.data());
        scatter.add(piece.writer, words, values.data(), static_cast<std::uint32_t>(row), count);
    }
    scatter.end(piece.writer);
}

std::size_t Partition::rows(std::size_t part) const noexcept {
    std::size_t sum = 0;
    for (Piece const& piece : pieces_) sum += piece.writer.rows[part];
    return sum;
}

PartBlock Partition::block_of(Piece const& piece, std::uint32_t block,
                              std::size_t count) const noexcept {
    unsigned char const* const at = piece.arena.data() + block * block_bytes(carried_);
    auto const words = [&](std::size_t column) {
        return reinterpret_cast<std::uint64_t const*>(at + kBlockRows * 8 * column);
    };
    PartBlock out{words(0), {}, reinterpret_cast<std::uint32_t const*>(words(1 + carried_)), count};
    for (std::size_t k = 0; k < carried_; ++k) out.values[k] = words(1 + k);
    return out;
}

void Partition::prefetch_block(Piece const& piece, std::uint32_t block) const noexcept {
    prefetch_bytes(piece.arena.data() + block * block_bytes(carried_), block_bytes(carried_));
}

}  // namespace tensorhash::cpu
