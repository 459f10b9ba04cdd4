// Appends rows and indexes them, all or nothing. Views share the memory of slots and rows.
#include "coords/tables/cpu_coord_store.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "backend/capacities.hpp"
#include "coords/tables/new_rows.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

using runtime::Block;

Tensor int32_vector(std::size_t rows) {
    return Tensor::empty({static_cast<std::int64_t>(rows)}, Dtype::Int32);
}

std::int32_t* int32_data(Tensor& tensor) { return static_cast<std::int32_t*>(tensor.data()); }

std::uint64_t* keys_in(Block& scratch) { return reinterpret_cast<std::uint64_t*>(scratch.data()); }

/// A view of the int32 rows from row `first` on.
CoordRows rows_from(CoordRows const& rows, std::size_t first) {
    std::size_t const count = rows.rows - first;
    Shape shape{static_cast<std::int64_t>(count), static_cast<std::int64_t>(rows.columns)};
    void const* const data = rows.data() + first * rows.columns;
    return {Tensor::borrow(data, std::move(shape), Dtype::Int32), count, rows.columns};
}

/// One member of every slot; the view keeps the slots alive.
Tensor slot_members(index::FlatIndex const& flat, std::size_t offset, Dtype dtype) {
    return Tensor::borrow_strided(
        flat.block()->data() + offset, {static_cast<std::int64_t>(flat.capacity())},
        {static_cast<std::int64_t>(sizeof(step::FlatSlot))}, dtype, true, flat.block());
}

backend::CoordSlots views_of(index::FlatIndex const& flat) {
    return {slot_members(flat, offsetof(step::FlatSlot, key), Dtype::Int64),
            slot_members(flat, offsetof(step::FlatSlot, row), Dtype::Int32)};
}

}  // namespace

CpuCoordStore::CpuCoordStore(backend::CoordStoreRules const& rules, std::uint32_t columns)
    : rules_(rules), buffer_(0) {
    if (columns != 0) {
        set_columns(columns);
    }
}

backend::CoordStoreInfo CpuCoordStore::info() const noexcept {
    backend::CoordStoreInfo info;
    info.entries = buffer_.rows().rows;
    info.distinct = index_ ? index_->distinct() : 0;
    bool const flat = index_ && index_->packed() != nullptr;
    info.slots = rules_.slots ? *rules_.slots
                 : flat       ? index_->packed()->capacity()
                              : backend::default_slots(info.distinct);
    info.columns = columns_;
    info.key = index_ ? index_->kind() : CoordKey::Packed64;
    info.grows = !rules_.slots;
    return info;
}

CoordIndex CpuCoordStore::make_index(CoordRows const& rows) const {
    return CoordIndex(rows, rules_);
}

void CpuCoordStore::set_columns(std::uint32_t columns) {
    RowBuffer none(columns);
    CoordIndex index = make_index(none.rows());
    index_.emplace(std::move(index));
    buffer_ = std::move(none);
    columns_ = columns;
}

void CpuCoordStore::insert(CoordRows const& rows, std::string_view argument) {
    if (rules_.range == RowRange::Packed64 && rows.wide()) {
        // Refuses an int64 out of range before it is narrowed.
        Block scratch(rows.rows * sizeof(std::uint64_t));
        if (index::pack_rows(flat_rows(rows), rows.rows, keys_in(scratch)) != 0) {
            fail_range(rows, argument, rules_.range);
        }
    }
    append(narrowed(rows, argument), argument);
}

void CpuCoordStore::append(CoordRows const& fresh, std::string_view argument) {
    RowBuffer::Appended all = buffer_.with(fresh, argument);
    CoordRows const own = rows_from(all.rows, buffer_.rows().rows);
    Block scratch;
    std::uint64_t* keys = nullptr;
    if (rules_.range == RowRange::Packed64) {
        scratch = Block(own.rows * sizeof(std::uint64_t));
        keys = keys_in(scratch);
        if (index::pack_rows(flat_rows(own), own.rows, keys) != 0) {
            fail_range(own, argument, rules_.range);
        }
    } else if (rules_.range == RowRange::Packed128 && !all_in_range(own, rules_.range)) {
        fail_range(own, argument, rules_.range);
    }
    if (index_) {
        index_->extend(all.rows, keys);
    } else {
        index_.emplace(make_index(all.rows));
    }
    columns_ = fresh.columns;
    buffer_.adopt(std::move(all));
}

void CpuCoordStore::expand(CoordRows const& base, CoordRows const& offsets) {
    CoordIndex const nothing(RowBuffer(base.columns).rows());
    append(new_rows(index_ ? *index_ : nothing, narrowed(base, "base"),
                    narrowed(offsets, "offsets"), rules_.range),
           "base");
}

void CpuCoordStore::clear() {
    if (index_) {
        set_columns(columns_);
    }
}

void CpuCoordStore::grow_on_demand() noexcept {
    rules_.slots.reset();
    if (index_) {
        index_->grow_on_demand();
    }
}

Tensor CpuCoordStore::search(CoordRows const& queries, SearchMode mode) const {
    Tensor found = int32_vector(queries.rows);
    if (index_) {
        index_->find(
            queries, int32_data(found),
            mode == SearchMode::WarpCoop ? cpu::FlatWindow::FourBuckets : cpu::FlatWindow::Bucket);
    } else {
        std::fill_n(int32_data(found), queries.rows, -1);
    }
    return found;
}

Tensor CpuCoordStore::search(CoordRows const& queries, CoordRows const& offsets) const {
    CoordRows const by = narrowed(offsets, "offsets");
    Tensor found =
        Tensor::empty({static_cast<std::int64_t>(by.rows), static_cast<std::int64_t>(queries.rows)},
                      Dtype::Int32);
    std::int32_t* const out = int32_data(found);
    if (!index_) {
        std::fill_n(out, by.rows * queries.rows, -1);
        return found;
    }
    NarrowQueries const narrow = narrow_queries(queries);
    runtime::for_ranges(queries.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t k = 0; k < by.rows; ++k) {
            Shift shift;
            std::copy_n(row_of(by, k), by.columns, shift.offset.begin());
            index_->find_shifted(narrow.rows.data(), begin, end, shift,
                                 out + k * queries.rows + begin);
        }
    });
    for (std::size_t const row : narrow.outside) {
        find_outside(queries, row, by, out);
    }
    return found;
}

void CpuCoordStore::find_outside(CoordRows const& queries, std::size_t row,
                                 CoordRows const& offsets, std::int32_t* out) const {
    // Outside these limits, no int32 offset leads back into int32. Inside, sums cannot overflow.
    constexpr Limits kNear{-(std::int64_t{1} << 33), std::int64_t{1} << 33};
    for (std::size_t k = 0; k < offsets.rows; ++k) {
        std::array<std::int32_t, kMaxColumns> sum{};
        bool fits = true;
        for (std::uint32_t c = 0; c < queries.columns; ++c) {
            std::int64_t const value = value_at(queries, row, c);
            std::int64_t const moved = kNear.has(value) ? value + value_at(offsets, k, c) : value;
            sum[c] = static_cast<std::int32_t>(moved);
            fits = fits && sum[c] == moved;
        }
        std::int32_t& place = out[k * queries.rows + row];
        place = -1;
        if (fits) {
            index_->find_shifted(sum.data(), 0, 1, Shift{}, &place);
        }
    }
}

Tensor CpuCoordStore::rows() const { return buffer_.rows().tensor; }

Tensor CpuCoordStore::unique() const {
    Tensor first = int32_vector(buffer_.rows().rows);
    if (index_) {
        index_->find(buffer_.rows(), int32_data(first));
    }
    return own_rows(first);
}

std::optional<backend::CoordSlots> CpuCoordStore::slots() const {
    if (!index_) {
        std::uint64_t const empty = rules_.slots.value_or(backend::default_slots(0));
        return views_of(index::FlatIndex(empty, false, {}));
    }
    index::FlatIndex const* const packed = index_->packed();
    return packed != nullptr ? std::optional(views_of(*packed)) : std::nullopt;
}

}  // namespace tensorhash::coords
