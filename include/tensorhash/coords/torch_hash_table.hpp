// TorchHashTable: keys are rows of any number of integers, hashed with Murmur and compared in full.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tensorhash/hash_map.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

/// Rows are numbered in the order of insertion, duplicates included; `search` gives the first of
/// equal rows. Keys are int32 or int64 [N, key_dim] within int32, in memory of the table's device
/// or of the CPU; results of search are where the keys are. A call that throws changes nothing;
/// many threads may search at once. For coordinates PackedHashTable and CoordTable are faster.
class TH_API TorchHashTable {
public:
    /// Takes `capacity` distinct keys, rounded up to a power of two, and refuses more (TableFull).
    explicit TorchHashTable(Capacity capacity, Device device = {});
    /// Without a capacity the table grows and stays at most half full. It is on the device of the
    /// keys unless another one is given.
    static TorchHashTable from_keys(Tensor const& vec_keys, std::optional<Capacity> capacity = {},
                                    std::optional<Device> device = {});
    /// Rebuilds a table on the CPU from its vector_keys(), capacity() and grows().
    static TorchHashTable restore(Tensor const& vec_keys, Capacity capacity, bool grows);

    TorchHashTable(TorchHashTable&&) noexcept;
    TorchHashTable& operator=(TorchHashTable&&) noexcept;
    ~TorchHashTable();

    void insert(Tensor const& vec_keys);
    /// int32 [M]: the row of each key, or -1.
    Tensor search(Tensor const& search_keys) const;

    /// int32 [num_entries, key_dim]: every inserted row, in order.
    Tensor vector_keys() const;
    /// int32: the first row of each key, ascending.
    Tensor unique_index() const;
    /// A copy of the slots, int32 [capacity, 2]: slot number and row, or -1 and -1 where empty.
    Tensor table_kvs() const;
    bool grows() const;

    std::int64_t capacity() const;
    std::int64_t num_entries() const;
    std::int64_t num_distinct() const;
    /// -1 until the first batch, which may be empty, sets it.
    int key_dim() const;
    Device device() const noexcept;

private:
    struct Impl;
    explicit TorchHashTable(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tensorhash::coords
