// PackedHashTable, PackedHashTable128 and CoordTable: tables that map integer coordinates to the
// row of their first occurrence.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tensorhash/coords/kernel_map.hpp"
#include "tensorhash/coords/packed_key.hpp"
#include "tensorhash/coords/types.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::backend {
struct CoordStoreRules;
}

namespace tensorhash::coords {

/// The base of the three tables. Coordinates are int32 or int64 [N, columns], any strides.
/// Rows are numbered in the order of insertion, duplicates included; `search` gives the first of
/// equal rows. A call that throws changes nothing. Many threads may search at once; a writer waits
/// for them and excludes them.
class TH_API CoordTableBase {
public:
    CoordTableBase(CoordTableBase&&) noexcept;
    CoordTableBase& operator=(CoordTableBase&&) noexcept;
    ~CoordTableBase();

    /// Appends the rows. TableFull if a table of fixed capacity has no room for the new keys.
    void insert(Tensor const& coords);
    /// int32 [M]: the row of each query, or -1 if it is not in the table or out of range.
    Tensor search(Tensor const& query, SearchMode mode = SearchMode::Linear) const;
    /// int32 [K, M]: the row of queries[m] + offsets[k], or -1 if the sum is not in the table or
    /// out of range.
    Tensor batched_search(Tensor const& queries, Tensor const& offsets) const;
    /// Appends base[n] + offsets[k] where that is new, offset by offset.
    void expand_with_offsets(Tensor const& base, Tensor const& offsets);

    /// Drops all rows; the next row is row 0. A fixed capacity and the columns stay. Views keep
    /// their contents.
    void clear();
    /// From now on the table grows, even if it was made with a fixed capacity.
    void grow_on_demand();
    bool grows() const;

    /// int32 [num_entries, key_dim]: every inserted row, in order. Later inserts change no view.
    Tensor vector_keys() const;
    /// int32: the first row of each key, ascending.
    Tensor unique_index() const;
    /// The slots: int64 [capacity], 0 where empty, and int32 [capacity], -1 where empty. Read-only
    /// views with a stride of 16 bytes. Which slot a key gets is storage, not a result. ValueError
    /// if keys are wider than 64 bits.
    Tensor keys_tensor() const;
    Tensor values_tensor() const;

    /// The number of slots, a power of two.
    std::int64_t capacity() const;
    std::int64_t num_entries() const;
    std::int64_t num_distinct() const;
    /// The number of columns; 0 until the first batch, which may be empty, sets it.
    int key_dim() const;
    Device device() const noexcept;
    bool use_double_hash() const noexcept;
    CoordKey key() const;

protected:
    CoordTableBase(Device device, backend::CoordStoreRules const& rules, std::uint32_t columns);

private:
    struct Impl;
    friend KernelMap kernel_map_from_size_hierarchical(CoordTableBase const&, Tensor const&,
                                                       Shape const&, std::int64_t);
    std::unique_ptr<Impl> impl_;
};

/// Coordinates (b, x, y, z): b from 0 to kBatchMax, the others from kCoordMin to kCoordMax.
/// ValueError for numbers out of range. The hash is Splitmix64Hash, without a seed. For untrusted
/// coordinates use CoordTable, which draws a random seed.
class TH_API PackedHashTable : public CoordTableBase {
public:
    /// Takes `capacity` distinct keys, rounded up to a power of two, and refuses more. Without a
    /// capacity the table grows and stays at most half full.
    explicit PackedHashTable(std::optional<Capacity> capacity, Device device = {},
                             bool use_double_hash = false);
    static PackedHashTable from_coords(Tensor const& coords, std::optional<Capacity> capacity = {},
                                       bool use_double_hash = false);
};

/// Coordinates of 1 to 7 columns over all of int32. The width of the key follows from the data.
class TH_API CoordTable : public CoordTableBase {
public:
    /// Without a capacity the table grows. Without `key_dim` the first batch sets the number of
    /// columns. The seed works as in HashMap: it decides which slots keys get, and no result
    /// depends on it.
    explicit CoordTable(std::optional<Capacity> capacity = {}, Device device = {},
                        bool use_double_hash = false, std::optional<int> key_dim = {},
                        std::optional<std::uint64_t> seed = {});
    static CoordTable from_coords(Tensor const& coords, std::optional<Capacity> capacity = {},
                                  bool use_double_hash = false,
                                  std::optional<std::uint64_t> seed = {});
};

/// Coordinates of 1 to 7 columns, each from kCoordMin to kCoordMax; ValueError for others.
class TH_API PackedHashTable128 : public CoordTableBase {
public:
    static constexpr std::int64_t kCoordMin = kPacked128Min;
    static constexpr std::int64_t kCoordMax = kPacked128Max;

    /// Like CoordTable, but the seed is always random.
    explicit PackedHashTable128(std::optional<Capacity> capacity, Device device = {},
                                std::optional<int> key_dim = {});
    static PackedHashTable128 from_keys(Tensor const& coords,
                                        std::optional<Capacity> capacity = {});
};

}  // namespace tensorhash::coords
