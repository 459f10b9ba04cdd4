// The index of the vector-key table, run on all threads. Callers lock and check arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/vector_engine.hpp"
#include "runtime/memory.hpp"

namespace tensorhash::index {

/// Maps a row of integers to its position; of equal rows to the first. The caller owns the rows.
class VectorIndex {
public:
    /// `capacity` slots, a power of two up to 2^31.
    VectorIndex(std::uint64_t capacity, std::uint32_t columns);

    std::uint64_t capacity() const noexcept { return std::uint64_t{view_.mask} + 1; }
    std::uint64_t size() const noexcept { return size_; }
    std::uint32_t columns() const noexcept { return view_.columns; }

    /// `rows` are all rows; those in [begin, end) are new. Returns false and leaves the index
    /// unchanged if they do not fit.
    bool insert(std::int32_t const* rows, std::size_t begin, std::size_t end);
    /// out[i] = the first row equal to query i, or -1.
    void find(std::int32_t const* rows, std::int32_t const* queries, std::size_t count,
              std::int32_t* out) const;

    step::VectorSlot const* slots() const noexcept { return view_.slots; }

private:
    step::VectorView over(std::int32_t const* rows) const noexcept;

    runtime::Block memory_;
    step::VectorView view_;
    std::uint64_t size_ = 0;
};

}  // namespace tensorhash::index
