// An index from rows of coordinates to row numbers. The rows decide how wide its keys are.
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

/// Looks up q[c] * scale[c] + offset[c] in place of a query row q, in 64-bit arithmetic, column 0
/// included.
struct Shift {
    std::array<std::int32_t, kMaxColumns> scale{1, 1, 1, 1, 1, 1, 1};
    std::array<std::int32_t, kMaxColumns> offset{};
};

/// An index over rows that it keeps: row -> its number, the first of equal rows. Deterministic on
/// any number of threads. It has no lock: readers may run together, extend() must run alone.
class CoordIndex {
public:
    /// Over int32 rows (`narrowed`). Uses packed keys if every row fits them. With a number of
    /// slots the index refuses more distinct rows (TableFull); without one it grows.
    explicit CoordIndex(CoordRows rows, backend::CoordStoreRules const& rules = {});

    /// `rows` are the rows so far, perhaps in other memory, followed by new rows. The key widens if
    /// it must. All or nothing. `keys`: the packed keys of the new rows, if the caller has them.
    void extend(CoordRows rows, std::uint64_t const* keys = nullptr);

    /// From now on the index grows.
    void grow_on_demand() noexcept { slots_.reset(); }

    CoordKey kind() const noexcept { return kind_; }
    std::uint32_t columns() const noexcept { return rows_.columns; }
    CoordRows const& rows() const noexcept { return rows_; }
    /// Distinct rows: fewer than rows().rows if there are duplicates.
    std::uint64_t distinct() const noexcept { return flat_ ? flat_->size() : wide_distinct_; }
    /// The flat index of packed keys, or null if the keys are wider.
    FlatIndex const* packed() const noexcept { return flat_ ? &*flat_ : nullptr; }

    /// out[i] = the first row equal to query i, or -1. Takes int32 or int64 queries with the same
    /// number of columns; a query out of range is not found. Runs on all threads, or on the
    /// caller's thread inside a task.
    void find(CoordRows const& queries, std::int32_t* out,
              cpu::FlatWindow window = cpu::FlatWindow::Line) const;
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
    std::optional<FlatIndex> flat_;
    std::optional<table::Index> wide_;
    std::uint64_t wide_distinct_ = 0;
};

}  // namespace tensorhash::coords
