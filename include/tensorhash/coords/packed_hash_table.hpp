// PackedHashTable, PackedHashTable128 and CoordTable: batches of integer coordinates in, the rows where they first came out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tensorhash/coords/packed_key.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

class CoordStore;

/// How `search` reads slots. Every mode gives the same answer on every table: a table is always probed the way it was
/// filled. WarpCoop looks at sixteen slots at a time.
enum class SearchMode : int { Linear = 0, DoubleHash = 1, WarpCoop = 2 };

/// What stands for a coordinate in a table's index.
enum class CoordKey : unsigned char {
    Packed64,   ///< up to 4 columns within the packed key's range
    Packed128,  ///< 4 columns over all of int32
    Wide,       ///< 5 to 7 columns, or fewer than 4 out of the packed key's range
};

/// What the three tables have in common. Coordinates are int32 or int64 [N, columns], any strides.
/// Rows are numbered as they come, duplicates too; `search` gives the first row of equal ones. A call that throws
/// changes nothing. Many threads may search at once; a writer waits for them and excludes them.
class TH_API CoordTableBase {
public:
    CoordTableBase(CoordTableBase&&) noexcept;
    CoordTableBase& operator=(CoordTableBase&&) noexcept;
    ~CoordTableBase();

    /// Appends the rows. TableFull if a table of fixed capacity has no room for the new keys.
    void insert(Tensor const& coords);
    /// int32 [M]: the row of each query, or -1, as for queries out of range.
    Tensor search(Tensor const& query, SearchMode mode = SearchMode::Linear) const;
    /// int32 [K, M]: the row of queries[m] + offsets[k], or -1, as for sums out of range.
    Tensor batched_search(Tensor const& queries, Tensor const& offsets) const;
    /// Appends base[n] + offsets[k] where that is new, offset by offset.
    void expand_with_offsets(Tensor const& base, Tensor const& offsets);

    /// Drops all rows; numbers begin at 0 again. A fixed capacity and the columns stay. Views keep what they show.
    void clear();
    /// A table of fixed capacity grows from here on.
    void grow_on_demand();
    bool grows() const;

    /// int32 [num_entries, key_dim]: every row inserted, in order. Later inserts do not change a view.
    Tensor vector_keys() const;
    /// int32: the first row of each key, ascending.
    Tensor unique_index() const;
    /// The slots: int64 [capacity], 0 where empty, and int32 [capacity], -1 where empty; read-only views, 16 bytes
    /// apart. Where in the slots a key lies is storage, not a result. ValueError if keys are wider than 64 bits.
    Tensor keys_tensor() const;
    Tensor values_tensor() const;

    /// Slots, a power of two.
    std::int64_t capacity() const;
    std::int64_t num_entries() const;
    std::int64_t num_distinct() const;
    /// Columns; 0 for a table that does not know them yet: not even a batch [0, columns] came.
    int key_dim() const;
    Device device() const noexcept { return {}; }
    bool use_double_hash() const noexcept;
    CoordKey key() const;
    /// For the library itself.
    CoordStore const& store() const noexcept { return *store_; }

protected:
    explicit CoordTableBase(std::unique_ptr<CoordStore> store);

private:
    std::unique_ptr<CoordStore> store_;
};

/// Coordinates (b, x, y, z), b from 0 to kBatchMax, the others from kCoordMin to kCoordMax; ValueError for others.
/// The hash is Splitmix64Hash, which is published. For coordinates from strangers use CoordTable,
/// which has a random seed.
class TH_API PackedHashTable : public CoordTableBase {
public:
    /// Takes `capacity` distinct keys, rounded up to a power of two, and refuses more. Without one the table grows, and
    /// stays at most half full.
    explicit PackedHashTable(std::optional<Capacity> capacity, Device device = {},
                             bool use_double_hash = false);
    static PackedHashTable from_coords(Tensor const& coords, std::optional<Capacity> capacity = {},
                                       bool use_double_hash = false);
};

/// Coordinates of 1 to 7 columns over all of int32: the key is as wide as the data asks for.
class TH_API CoordTable : public CoordTableBase {
public:
    /// Without a capacity the table grows. Without `key_dim` the first batch says how many columns
    /// there are. The seed is as HashMap's: it says which slots keys get, and no answer depends on
    /// it.
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
    static constexpr std::int64_t kCoordMin = -65536;
    static constexpr std::int64_t kCoordMax = 65535;

    /// As CoordTable's; the seed is always drawn.
    explicit PackedHashTable128(std::optional<Capacity> capacity, Device device = {},
                                std::optional<int> key_dim = {});
    static PackedHashTable128 from_keys(Tensor const& coords,
                                        std::optional<Capacity> capacity = {});
};

}  // namespace tensorhash::coords
