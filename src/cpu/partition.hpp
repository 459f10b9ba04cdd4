// A stable partition of rows by the top bits of their mixed word, on all threads. Within a part,
// rows keep their order, so a part can be reduced in row order by one thread and from cache.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/group_engine.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::cpu {

/// Rows that are read together.
inline constexpr std::size_t kReadRows = 1024;

/// Prefetches memory that will be read in order. The processor does so by itself, but not at the
/// start of a block, after work on other memory.
inline void prefetch_bytes(unsigned char const* at, std::size_t bytes) {
    for (std::size_t byte = 0; byte < bytes; byte += 64) step::prefetch(at + byte);
}

/// Where words and values come from. One instance is read by several threads.
class PartitionSource {
public:
    virtual ~PartitionSource() = default;
    /// Fills words[0, count) for rows from `begin` on, count <= kReadRows. Points values[k] at the
    /// values of column k: at memory of the source, or at room[k], which has kReadRows words.
    virtual void read(std::size_t begin, std::size_t count, std::uint64_t* words,
                      std::uint64_t* const* room, std::uint64_t const** values) const = 0;
};

/// Rows of one part that lie together, at most kBlockRows.
struct PartBlock {
    std::uint64_t const* words;
    std::array<std::uint64_t const*, kMaxCarried> values;
    std::uint32_t const* rows;  // ascending over the whole part
    std::size_t count;
};

class Partition {
public:
    /// Reads all rows once. `carried` is the number of value columns, at most kMaxCarried; `rows`
    /// is below 2^31.
    Partition(PartitionSource const& source, std::size_t rows, std::size_t carried);

    std::size_t rows(std::size_t part) const noexcept;

    /// Calls body(PartBlock) for the blocks of a part, in row order.
    template <class Body>
    void for_blocks(std::size_t part, Body&& body) const {
        for (Piece const& piece : pieces_) {
            std::uint32_t left = piece.writer.rows[part];
            for (std::uint32_t block = piece.writer.head[part]; left > 0;) {
                std::uint32_t const next = piece.writer.next[block];
                auto const count =
                    left < kBlockRows ? left : static_cast<std::uint32_t>(kBlockRows);
                left -= count;
                if (left > 0) prefetch_block(piece, next);
                body(block_of(piece, block, count));
                block = next;
            }
        }
    }

    /// Calls make() on each thread and its result, reduce(part), for the parts with rows. Threads
    /// take part after part, because parts differ in size.
    template <class Make>
    void for_parts(Make&& make) const {
        std::atomic<std::size_t> next{0};
        runtime::run_tasks(static_cast<std::size_t>(num_threads()), [&](std::size_t) {
            auto reduce = make();
            // Relaxed: the number only picks a part; the tasks' join publishes the results.
            for (std::size_t part = next.fetch_add(1, std::memory_order_relaxed); part < kParts;
                 part = next.fetch_add(1, std::memory_order_relaxed)) {
                if (rows(part) > 0) reduce(part);
            }
        });
    }

private:
    /// The rows of one task.
    struct Piece {
        runtime::Block arena;
        runtime::Block combined;
        runtime::Block next;
        PartWriter writer{};
    };

    void fill(Piece& piece, PartitionSource const& source, std::size_t begin, std::size_t end);
    PartBlock block_of(Piece const& piece, std::uint32_t block, std::size_t count) const noexcept;
    void prefetch_block(Piece const& piece, std::uint32_t block) const noexcept;

    std::size_t carried_;
    std::vector<Piece> pieces_;
};

}  // namespace tensorhash::cpu
