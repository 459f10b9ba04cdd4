// An index from rows of coordinates to row numbers. Its keys are as wide as the rows need.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "backend/coords_backend.hpp"
#include "coords/rows/rows.hpp"
#include "index/bucket_index.hpp"
#include "index/flat_index.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// Looks up q[c] * scale[c] + offset[c] instead of a query row q, in 64-bit arithmetic, column 0
/// included.
struct Shift {
    std::array<std::int32_t, kMaxColumns> scale{1, 1, 1, 1, 1, 1, 1};
    std::array<std::int32_t, kMaxColumns> offset{};
};

/// Maps each of its rows to a row number, the first of equal rows. Deterministic on any number of
/// threads. It has no lock: readers may run together, extend() must run alone.
class CoordIndex {
public:
    /// Takes int32 rows (see narrowed()). Uses packed keys if every row fits them. With
    /// `rules.slots` the index refuses more distinct rows (TableFull); without it the index grows.
    explicit CoordIndex(CoordRows rows, backend::CoordStoreRules const& rules = {});

    /// `rows`: the rows so far, possibly in other memory, then the new rows. Widens the key if
    /// needed. All or nothing. `keys`: the packed keys of the new rows, if the caller has them.
    void extend(CoordRows rows, std::uint64_t const* keys = nullptr);

    /// From now on the index grows.
    void grow_on_demand() noexcept { slots_.reset(); }

    CoordKey kind() const noexcept { return kind_; }
    std::uint32_t columns() const noexcept { return rows_.columns; }
    CoordRows const& rows() const noexcept { return rows_; }
    /// Distinct rows: fewer than rows().rows if there are duplicates.
    std::uint64_t distinct() const noexcept { return flat_ ? flat_->size() : wide_distinct_; }
    /// The flat index of packed keys, or null if the keys are wider.
    index::FlatIndex const* packed() const noexcept { return flat_ ? &*flat_ : nullptr; }

    /// out[i] = the first row equal to query i, or -1. Takes int32 or int64 queries with the same
    /// number of columns; a query out of range is not found. Runs on all threads, or on the
    /// caller's thread inside a task.
    void find(CoordRows const& queries, std::int32_t* out,
              cpu::FlatWindow window = cpu::FlatWindow::Bucket) const;
    /// The same for the shifted rows [begin, end) of int32 queries, on the caller's thread:
    /// out[i - begin].
    void find_shifted(std::int32_t const* queries, std::size_t begin, std::size_t end,
                      Shift const& shift, std::int32_t* out) const;

private:
    void extend_flat(std::uint64_t const* keys, std::size_t from, std::size_t added);
    void extend_wide(CoordRows const& rows);
    void rebuild_wide(CoordRows const& rows);
    void find_wide(std::int32_t const* rows, std::size_t count, std::int32_t* out) const;

    CoordRows rows_;
    CoordKey kind_ = CoordKey::Packed64;
    std::optional<std::uint64_t> slots_;
    std::uint64_t seed_;
    std::optional<index::FlatIndex> flat_;
    std::optional<index::BucketIndex> wide_;
    std::uint64_t wide_distinct_ = 0;
};

}  // namespace tensorhash::coords
