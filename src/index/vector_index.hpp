// The index of the vector-key table, run over threads. No lock, no check of arguments: its callers' work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/vector_engine.hpp"
#include "runtime/memory.hpp"

namespace tensorhash::coords {

/// Row of integers -> its number, of equal rows the first. The rows themselves are the caller's.
class VectorIndex {
public:
    /// So many slots, a power of two up to 2^31.
    VectorIndex(std::uint64_t capacity, std::uint32_t columns);

    std::uint64_t capacity() const noexcept { return std::uint64_t{view_.mask} + 1; }
    std::uint64_t size() const noexcept { return size_; }
    std::uint32_t columns() const noexcept { return view_.columns; }

    /// `rows` are all rows, those from `begin` on new. Returns false, with the index as it was, if they do not fit.
    bool insert(std::int32_t const* rows, std::size_t begin, std::size_t end);
    /// Equal keys to their first row, -1 for none.
    void find(std::int32_t const* rows, std::int32_t const* queries, std::size_t count,
              std::int32_t* out) const;

    kernel::VectorSlot const* slots() const noexcept { return view_.slots; }

private:
    kernel::VectorView over(std::int32_t const* rows) const noexcept;

    runtime::Block memory_;
    kernel::VectorView view_;
    std::uint64_t size_ = 0;
};

}  // namespace tensorhash::coords
