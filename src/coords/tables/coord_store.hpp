// What PackedHashTable and CoordTable are made of: every row that was inserted, an index over them, a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <utility>

#include "coords/rows/row_buffer.hpp"
#include "coords/tables/coord_index.hpp"
#include "runtime/lock.hpp"
#include "tensorhash/memory_usage.hpp"

namespace tensorhash::coords {

/// How a store differs from another; fixed for its life.
struct StoreRules {
    CoordRules index;
    RowRange range = RowRange::Int32;  // a row out of it is refused
};

/// Rows are numbered as they come, duplicates too. Writers take the lock alone, readers together.
class CoordStore {
public:
    /// Columns of 0: as many as the first batch has, be it [0, columns].
    CoordStore(StoreRules rules, std::uint32_t columns);

    void insert(Tensor const& coords, std::string_view argument);
    /// Appends every base row plus every offset that is new, offset by offset.
    void expand(Tensor const& base, Tensor const& offsets);
    /// No rows; capacity and columns stay. Views that were given out keep what they show.
    void clear();
    /// A store of fixed capacity grows from here on.
    void grow_on_demand() noexcept;
    /// int32 [M].
    Tensor search(Tensor const& queries, cpu::FlatWindow window) const;
    /// int32 [K, M]: the row of queries[m] + offsets[k], or -1.
    Tensor batched_search(Tensor const& queries, Tensor const& offsets) const;

    /// read(index) with writers kept out; a null pointer as long as nobody said how many columns there are.
    template <class Read> auto read(Read&& read) const {
        std::shared_lock const guard(lock_);
        return std::forward<Read>(read)(index_ ? &*index_ : nullptr);
    }

    /// int32 [entries, columns], a view that later inserts do not change.
    Tensor vector_keys() const;
    /// int32 [distinct]: the first row of each key, ascending.
    Tensor unique_index() const;
    /// The slots of packed keys, shared: int64 and int32 [capacity], 16 bytes apart. Throws ValueError for wider keys.
    Tensor keys_tensor() const;
    Tensor values_tensor() const;

    std::int64_t num_entries() const;
    std::int64_t num_distinct() const;
    /// Slots; for keys wider than packed ones, those that as many keys would have.
    std::int64_t capacity() const;
    /// 0 as long as nobody said.
    std::uint32_t columns() const;
    CoordKey key() const;
    bool double_hash() const noexcept { return rules_.index.double_hash; }
    bool grows() const;

private:
    CoordRows checked(Tensor const& tensor, std::string_view argument) const;
    /// The rows of queries beyond int32: a sum with an offset may lie within.
    void find_outside(CoordRows const& queries, std::size_t row, CoordRows const& offsets,
                      std::int32_t* out) const;
    /// An index over no rows of so many columns, in place of any that there was. All or nothing.
    void settle(std::uint32_t columns);
    /// `fresh`, as int32, behind the rows so far and into the index. The range is checked and the
    /// index made on the copy behind the rows: the caller's array may change meanwhile.
    void append(CoordRows const& fresh, std::string_view argument);
    Tensor slots(std::size_t offset, Dtype dtype, char const* name) const;

    StoreRules rules_;
    std::uint32_t columns_ = 0;
    RowBuffer buffer_;
    std::optional<CoordIndex> index_;
    mutable runtime::ReadWriteLock lock_;
};

}  // namespace tensorhash::coords
