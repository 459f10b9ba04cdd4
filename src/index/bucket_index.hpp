// The index as host code sees it: memory for the lines, how full they are, and the row loops run over threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cpu/engine.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/step/view.hpp"

namespace tensorhash::table {

/// What the index must know of a key.
struct KeyLayout {
    std::uint32_t bytes = 0;
    std::uint32_t float_bytes = 0;  // 4 or 8 for float keys, else 0
};

/// Lines walked by lookups: 1 is best.
struct ProbeLengths {
    double mean = 0;
    std::uint64_t longest = 0;
};

/// How many rows won in the chunks before each. On the stack: nothing may fail once claims are made.
using Ranks = std::array<std::uint64_t, runtime::kMaxChunks + 1>;

class Index {
public:
    /// An empty index of so many lines, a power of two of at least 2. Filled otherwise than with
    /// zeros it is not even empty: it has memory, and the next thing to do is to place() another's
    /// entries. Where keys lie follows from the seed; no answer does.
    Index(KeyLayout layout, std::uint64_t lines, std::uint64_t seed,
          runtime::Fill fill = runtime::Fill::Zero);

    /// Lines that a table of this capacity has.
    static std::uint64_t lines_for(KeyLayout layout, std::uint64_t capacity);
    /// The largest capacity that so many lines serve.
    static std::uint64_t capacity_of(KeyLayout layout, std::uint64_t lines);

    /// The same lines in memory of their own.
    Index copy() const;

    std::uint64_t lines() const noexcept { return lines_; }
    std::uint64_t seed() const noexcept { return seed_; }
    std::uint64_t slots() const noexcept { return lines_ * cpu::line_rule(layout_.bytes).lanes; }
    std::size_t bytes() const noexcept { return memory_.bytes(); }
    /// New keys that surely fit, whatever slots they fall on.
    std::uint64_t room() const noexcept { return limit_ > occupied_ ? limit_ - occupied_ : 0; }

    using Batch = kernel::BatchView;

    void find(unsigned char const* key_buffer, Batch const& batch, std::size_t rows) const;
    cpu::ClaimCount claim(unsigned char const* key_buffer, Batch const& batch, std::size_t begin,
                          std::size_t end);
    /// Undoes the claims of rows [0, rows).
    void release_claims(unsigned char const* key_buffer, Batch const& batch,
                        std::size_t rows) noexcept;
    /// After all claims, says who won its key in mask, and in numbers base + the row that did.
    void settle(unsigned char const* key_buffer, Batch const& batch, runtime::Chunks const& chunks,
                Ranks& ranks) const noexcept;
    /// Numbers the rows that claimed: first `reusable` indices off the stack that ends at `free_top`, then from base on.
    void publish(unsigned char const* key_buffer, Batch const& batch, std::size_t rows,
                 std::uint32_t const* free_top, std::uint64_t reusable) noexcept;
    /// Finds, and says where the slots are.
    void locate(unsigned char const* key_buffer, Batch const& batch,
                std::size_t rows) const noexcept;
    /// Releases the slots of located rows; where an entry is wanted `twice`, its first row does. The mask says which rows
    /// did, and the sum is returned.
    std::uint64_t release(unsigned char const* key_buffer, Batch const& batch, std::size_t rows,
                          bool twice) noexcept;
    /// Fills an empty index with the entries [0, top) whose bit is set; `count` of them.
    void place(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
               std::uint64_t count) noexcept;
    /// The same from another index of the same seed that holds exactly these entries, faster where
    /// its slots tell enough; whatever was in this one is overwritten.
    void place(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
               std::uint64_t count, Index const& other) noexcept;
    void clear() noexcept;

    /// Memory for so many lines, which are still as many as before; null: this memory cannot grow.
    runtime::Extension make_room(std::uint64_t lines);
    /// Becomes an empty index of as many lines as there is room for.
    void clear(std::uint64_t lines) noexcept;

    /// Entries that the lines really hold, counted.
    std::uint64_t count_entries() const;
    ProbeLengths probe_lengths(unsigned char const* key_buffer, Batch const& batch,
                               std::size_t rows) const;

private:
    void set_lines(std::uint64_t lines) noexcept;
    bool spread(Index const& smaller) noexcept;
    kernel::IndexView view(unsigned char const* key_buffer) const noexcept;
    cpu::Kernels::Writers const& writers(bool shared) const noexcept {
        return shared ? kernels_->shared : kernels_->sole;
    }

    KeyLayout layout_;
    std::uint64_t seed_;
    kernel::HashSecret secret_;
    cpu::Kernels const* kernels_;
    runtime::Block memory_;
    std::uint64_t lines_ = 0;
    std::uint64_t limit_ = 0;
    std::uint64_t occupied_ = 0;  // live and erased slots
};

}  // namespace tensorhash::table
