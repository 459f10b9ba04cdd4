// From rows of coordinates to row numbers, whatever their range: the key is chosen from the data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "coords/rows/rows.hpp"
#include "index/bucket_index.hpp"
#include "index/flat_index.hpp"
#include "tensorhash/coords/packed_hash_table.hpp"

namespace tensorhash::coords {

/// Rows have at most so many columns: a batch and six axes.
inline constexpr std::uint32_t kMaxColumns = 7;

/// What is sought in place of a query row q: q[c] * scale[c] + offset[c], in 64-bit arithmetic. Column 0 too.
struct Shift {
    std::array<std::int32_t, kMaxColumns> scale{1, 1, 1, 1, 1, 1, 1};
    std::array<std::int32_t, kMaxColumns> offset{};
};

/// How an index of coordinates differs from another; fixed for its life.
struct CoordRules {
    bool double_hash = false;
    std::optional<std::uint64_t> capacity{};  // a power of two: distinct rows beyond it are refused
    bool published_hash = false;  // of packed keys: Splitmix64Hash, which anyone can look up
    std::optional<std::uint64_t> seed{};  // else of this seed, or of one that the index draws
};

/// An index over rows that it holds on to: row -> its number, of equal rows the first. Deterministic on any number
/// of threads. Readers may come together; extend() comes alone (no lock in here).
class CoordIndex {
public:
    /// Over int32 rows (`narrowed`); packed keys are used if every row fits them. A capacity is the
    /// number of slots, and more distinct rows are refused (TableFull); without one the index
    /// grows.
    explicit CoordIndex(CoordRows rows, CoordRules const& rules = {});

    /// `rows` are the former rows and new ones after them, perhaps in other memory. The key widens if it must.
    /// All or nothing. `keys`: the packed keys of the new rows, if the caller has them already.
    void extend(CoordRows rows, std::uint64_t const* keys = nullptr);

    /// An index of fixed capacity grows from here on.
    void grow_on_demand() noexcept { capacity_.reset(); }

    CoordKey kind() const noexcept { return kind_; }
    std::uint32_t columns() const noexcept { return rows_.columns; }
    CoordRows const& rows() const noexcept { return rows_; }
    /// Distinct rows; less than rows().rows if there are duplicates.
    std::uint64_t distinct() const noexcept { return flat_ ? flat_->size() : wide_distinct_; }
    /// The flat index of packed keys, or null if the keys are wider. For loops of one's own.
    FlatIndex const* packed() const noexcept { return flat_ ? &*flat_ : nullptr; }

    /// out[i] = number of the first row equal to query i, or -1. int32 or int64 queries of as many columns; what is out of
    /// any range is not found. On all threads; inside a task, on the spot.
    void find(CoordRows const& queries, std::int32_t* out,
              cpu::FlatWindow window = cpu::FlatWindow::Line) const;
    /// The same for the shifted rows [begin, end) of int32 queries, on the caller's thread: out[i - begin].
    void find_shifted(std::int32_t const* queries, std::size_t begin, std::size_t end,
                      Shift const& shift, std::int32_t* out) const;

private:
    void extend_flat(std::uint64_t const* keys, std::size_t from, std::size_t added);
    void extend_wide(CoordRows const& rows);
    void rebuild_wide(CoordRows const& rows);
    void find_wide(std::int32_t const* rows, std::size_t count, std::int32_t* out) const;

    CoordRows rows_;
    CoordKey kind_ = CoordKey::Packed64;
    std::optional<std::uint64_t> capacity_;
    std::uint64_t seed_;
    std::optional<FlatIndex> flat_;
    std::optional<table::Index> wide_;
    std::uint64_t wide_distinct_ = 0;
};

}  // namespace tensorhash::coords
