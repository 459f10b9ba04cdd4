// Rows are appended and indexed, all or nothing; slots and rows are handed out as views.
#include "coords/tables/coord_store.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include "coords/tables/new_rows.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

using runtime::Block;
using Reading = std::shared_lock<runtime::ReadWriteLock>;
using Writing = std::unique_lock<runtime::ReadWriteLock>;

Tensor int32_vector(std::size_t rows) {
    return Tensor::empty({static_cast<std::int64_t>(rows)}, Dtype::Int32);
}

std::uint64_t* keys_in(Block& scratch) { return reinterpret_cast<std::uint64_t*>(scratch.data()); }

/// A view of the int32 rows from number `first` on.
CoordRows rows_from(CoordRows const& rows, std::size_t first) {
    std::size_t const count = rows.rows - first;
    Shape shape{static_cast<std::int64_t>(count), static_cast<std::int64_t>(rows.columns)};
    void const* const data = rows.data() + first * rows.columns;
    return {Tensor::borrow(data, std::move(shape), Dtype::Int32), count, rows.columns};
}

/// One member of every slot; the view keeps the slots alive.
Tensor slots_of(FlatIndex const& flat, std::size_t offset, Dtype dtype) {
    return Tensor::borrow_strided(
        flat.block()->data() + offset, {static_cast<std::int64_t>(flat.capacity())},
        {static_cast<std::int64_t>(sizeof(kernel::FlatSlot))}, dtype, true, flat.block());
}

}  // namespace

CoordStore::CoordStore(StoreRules rules, std::uint32_t columns) : rules_(rules), buffer_(0) {
    if (columns != 0) {
        settle(columns);
    }
}

CoordRows CoordStore::checked(Tensor const& tensor, std::string_view argument) const {
    Columns const any{1, kMaxColumns};
    return check_rows(tensor, argument, columns_ == 0 ? any : Columns{columns_, columns_});
}

void CoordStore::insert(Tensor const& coords, std::string_view argument) {
    Writing const guard(lock_);
    CoordRows const rows = checked(coords, argument);
    if (rows.rows == 0) {
        if (columns_ == 0 && coords.shape().size() == 2) {  // an empty list does not say
            settle(rows.columns);
        }
        return;
    }
    if (rules_.range == RowRange::Packed64 && rows.wide()) {
        // An int64 out of range is seen before it is narrowed.
        Block scratch(rows.rows * sizeof(std::uint64_t));
        if (pack_rows(rows.flat(), rows.rows, keys_in(scratch)) != 0) {
            fail_range(rows, argument, rules_.range);
        }
    }
    append(narrowed(rows, argument), argument);
}

void CoordStore::settle(std::uint32_t columns) {
    RowBuffer none(columns);
    CoordIndex index(none.rows(), rules_.index);
    index_.emplace(std::move(index));
    buffer_ = std::move(none);
    columns_ = columns;
}

void CoordStore::clear() {
    Writing const guard(lock_);
    if (index_) {
        settle(columns_);
    }
}

void CoordStore::grow_on_demand() noexcept {
    Writing const guard(lock_);
    rules_.index.capacity.reset();
    if (index_) {
        index_->grow_on_demand();
    }
}

void CoordStore::append(CoordRows const& fresh, std::string_view argument) {
    RowBuffer::Appended all = buffer_.with(fresh, "coords");
    CoordRows const own = rows_from(all.rows, buffer_.rows().rows);
    Block scratch;
    std::uint64_t* keys = nullptr;
    if (rules_.range == RowRange::Packed64) {
        scratch = Block(own.rows * sizeof(std::uint64_t));
        keys = keys_in(scratch);
        if (pack_rows(own.flat(), own.rows, keys) != 0) {
            fail_range(own, argument, rules_.range);
        }
    } else if (rules_.range == RowRange::Packed128 && !all_in_range(own, rules_.range)) {
        fail_range(own, argument, rules_.range);
    }
    if (index_) {
        index_->extend(all.rows, keys);
    } else {
        index_.emplace(all.rows, rules_.index);
    }
    columns_ = fresh.columns;
    buffer_.adopt(std::move(all));
}

void CoordStore::expand(Tensor const& base, Tensor const& offsets) {
    Writing const guard(lock_);
    CoordRows const from = checked(base, "base");
    CoordRows const by =
        from.rows == 0 ? checked(offsets, "offsets") : check_rows(offsets, "offsets", from.columns);
    if (from.rows == 0 || by.rows == 0) {
        return;
    }
    CoordIndex const nothing(RowBuffer(from.columns).rows());
    append(new_rows(index_ ? *index_ : nothing, narrowed(from, "base"), narrowed(by, "offsets"),
                    rules_.range),
           "base");
}

Tensor CoordStore::search(Tensor const& queries, cpu::FlatWindow window) const {
    Reading const guard(lock_);
    CoordRows const rows = checked(queries, "query");
    Tensor found = int32_vector(rows.rows);
    auto* const out = static_cast<std::int32_t*>(found.data());
    if (index_) {
        index_->find(rows, out, window);
    } else {
        std::fill(out, out + rows.rows, -1);
    }
    return found;
}

Tensor CoordStore::batched_search(Tensor const& queries, Tensor const& offsets) const {
    Reading const guard(lock_);
    CoordRows const rows = checked(queries, "queries");
    CoordRows const given =
        rows.rows == 0 ? checked(offsets, "offsets") : check_rows(offsets, "offsets", rows.columns);
    CoordRows const by = narrowed(given, "offsets");
    Tensor found = Tensor::empty(
        {static_cast<std::int64_t>(by.rows), static_cast<std::int64_t>(rows.rows)}, Dtype::Int32);
    auto* const out = static_cast<std::int32_t*>(found.data());
    if (!index_) {
        std::fill(out, out + by.rows * rows.rows, -1);
        return found;
    }
    NarrowQueries const narrow = narrow_queries(rows);
    runtime::for_ranges(rows.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t k = 0; k < by.rows; ++k) {
            Shift shift;
            std::copy_n(by.data() + k * by.columns, by.columns, shift.offset.begin());
            index_->find_shifted(narrow.rows.data(), begin, end, shift,
                                 out + k * rows.rows + begin);
        }
    });
    for (std::size_t const row : narrow.outside) {
        find_outside(rows, row, by, out);
    }
    return found;
}

void CoordStore::find_outside(CoordRows const& queries, std::size_t row, CoordRows const& offsets,
                              std::int32_t* out) const {
    // Farther out than this no int32 offset leads back, and sums cannot overflow.
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

Tensor CoordStore::vector_keys() const {
    Reading const guard(lock_);
    return buffer_.rows().tensor;
}

Tensor CoordStore::unique_index() const {
    Reading const guard(lock_);
    Tensor first = int32_vector(buffer_.rows().rows);
    if (index_) {
        index_->find(buffer_.rows(), static_cast<std::int32_t*>(first.data()));
    }
    return own_rows(first);
}

Tensor CoordStore::slots(std::size_t offset, Dtype dtype, char const* name) const {
    Reading const guard(lock_);
    if (!index_) {
        std::uint64_t const empty = rules_.index.capacity.value_or(FlatIndex::capacity_for(0));
        return slots_of(FlatIndex(empty, false, {}), offset, dtype);
    }
    if (index_->packed() == nullptr) {
        throw ValueError(
            std::string(name) +
            ": expected a table of 64-bit keys, whose slots hold them, got wider keys; "
            "vector_keys and unique_index list the keys of any table");
    }
    return slots_of(*index_->packed(), offset, dtype);
}

Tensor CoordStore::keys_tensor() const {
    return slots(offsetof(kernel::FlatSlot, key), Dtype::Int64, "keys_tensor");
}

Tensor CoordStore::values_tensor() const {
    return slots(offsetof(kernel::FlatSlot, row), Dtype::Int32, "values_tensor");
}

std::int64_t CoordStore::num_entries() const {
    Reading const guard(lock_);
    return static_cast<std::int64_t>(buffer_.rows().rows);
}

std::int64_t CoordStore::num_distinct() const {
    Reading const guard(lock_);
    return index_ ? static_cast<std::int64_t>(index_->distinct()) : 0;
}

std::int64_t CoordStore::capacity() const {
    Reading const guard(lock_);
    if (rules_.index.capacity) {
        return static_cast<std::int64_t>(*rules_.index.capacity);
    }
    bool const flat = index_ && index_->packed() != nullptr;
    return static_cast<std::int64_t>(
        flat ? index_->packed()->capacity()
             : FlatIndex::capacity_for(index_ ? index_->distinct() : 0));
}

bool CoordStore::grows() const {
    Reading const guard(lock_);
    return !rules_.index.capacity;
}

std::uint32_t CoordStore::columns() const {
    Reading const guard(lock_);
    return columns_;
}

CoordKey CoordStore::key() const {
    Reading const guard(lock_);
    return index_ ? index_->kind() : CoordKey::Packed64;
}

}  // namespace tensorhash::coords
