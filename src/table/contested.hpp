// Rows of one erase whose keys several threads may have had at once. Threads erase their chunks of
// rows side by side, so a key that is in two chunks may go to the wrong row, or to two rows:
// - Two rows took the same entry. The live bits show that.
// - A row took an entry, and an earlier row in another chunk then found nothing.
// Such rows are decided again: their entries are put back, and each goes to the first row that
// wants it. The keys may change meanwhile. Then any row may get an entry, but the same entries are
// erased.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "index/bucket_index.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::table {

/// A batch that was erased, chunk by chunk.
struct ErasedBatch {
    unsigned char const* key_buffer;
    step::BatchView rows;
    runtime::Chunks chunks;
    std::span<std::uint64_t const> taken;  // [chunks.count]: rows that took an entry
};

class ContestedRows {
public:
    /// The memory that it needs for so many rows.
    static std::size_t bytes(std::size_t rows) noexcept;
    ContestedRows(runtime::Block& memory, std::size_t rows) noexcept;

    /// All rows.
    void choose_all(ErasedBatch const& batch) noexcept;
    /// The rows of keys that an earlier chunk missed and a later one took, and a few others. True
    /// if there are any.
    bool choose_missed(index::BucketIndex const& index, ErasedBatch const& batch) noexcept;
    /// Decides the chosen rows again, as if in row order. Corrects mask and buf_indices.
    void decide(index::BucketIndex& index, ErasedBatch const& batch) noexcept;

private:
    /// Chosen rows of one kind, a bit per row, and a filter of their hashes. The filter may also
    /// say yes for others.
    struct Kind {
        std::uint64_t* rows;
        std::uint64_t* filter;
    };

    bool choose_candidates(ErasedBatch const& batch) noexcept;
    std::uint64_t keep_common(index::BucketIndex const& index, ErasedBatch const& batch,
                              std::uint64_t factor) noexcept;
    void choose(ErasedBatch const& batch, std::size_t begin, std::size_t end, bool with_took,
                bool with_missed) noexcept;
    std::uint64_t place(std::uint64_t hash, std::uint64_t factor) const noexcept {
        return hash * factor >> shift_;
    }

    Kind took_;
    Kind missed_;
    std::size_t rows_;
    unsigned shift_;  // of a hash, to a place in a filter
};

}  // namespace tensorhash::table
