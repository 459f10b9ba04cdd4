// ShardedHashMap: several tables, one per device, that act as one HashMap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorhash/bounded_map.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/optimizer.hpp"
#include "tensorhash/sharded/policy.hpp"

namespace tensorhash {

/// The index of an entry in a sharded table: shard << 32 | index within the shard.
inline constexpr std::int64_t global_index(std::int64_t shard, std::int64_t local) noexcept {
    return shard << 32 | local;
}

/// Where each row's key lives, and what happened to the row.
struct ShardedLocated {
    Tensor indices;  ///< int64 [N]: global indices, valid for every row; -1 if not found
    Tensor mask;     ///< bool [N]: `insert`: the row added its key; `find`: found
};

/// The limit of a bounded sharded table: `max_capacity` keys in all. Each shard has an equal share;
/// the first shards get the remainder. A shard evicts when its own share is full, as BoundedHashMap
/// does.
struct Bound {
    Capacity max_capacity;
    Eviction eviction = Eviction::Lru;
};

/// ExportRoom with int64 indices.
struct ShardedRoom {
    void* keys = nullptr;
    std::vector<void*> values;
    std::int64_t* indices = nullptr;
};

/// One table in several shards. Each shard is a table on its own device, "cpu:0", "cpu:1" …, with
/// its own threads, or "cuda:0", "cuda:1" …. The policy decides which shard a key belongs to; on
/// GPUs hash_policy() or mod_policy(). HashMap's contract holds for the whole table: batches apply
/// in row order, a call that throws changes no shard, readers run together, a writer alone. Keys
/// are on the CPU or on one of the devices, other arrays on the CPU or beside the keys, and results
/// are where the keys came from. Indices are int64: see global_index().
class TH_API ShardedHashMap {
public:
    /// Each shard gets its part of the capacity and a margin, so that `init_capacity` evenly spread
    /// keys fit without growth. The seed works as in HashMap; each shard has its own.
    ShardedHashMap(Capacity init_capacity, Element key, std::vector<Element> values,
                   std::vector<Device> devices, ShardPolicy policy = hash_policy(),
                   std::optional<std::uint64_t> seed = {});
    /// A bounded table. Add keys with the verbs that take scores; the others that add or assign are
    /// refused.
    ShardedHashMap(Bound bound, Element key, std::vector<Element> values,
                   std::vector<Device> devices, ShardPolicy policy = hash_policy(),
                   std::optional<std::uint64_t> seed = {});
    static ShardedHashMap from_items(Tensor const& keys, std::vector<Tensor> const& values,
                                     std::vector<Device> devices,
                                     ShardPolicy policy = hash_policy());

    ShardedHashMap(ShardedHashMap&&) noexcept;
    ShardedHashMap& operator=(ShardedHashMap&&) noexcept;
    /// To copy a table, call clone().
    ShardedHashMap(ShardedHashMap const&) = delete;
    ShardedHashMap& operator=(ShardedHashMap const&) = delete;
    ~ShardedHashMap();

    // As in HashMap, with int64 indices.
    ShardedLocated insert(Tensor const& keys, std::vector<Tensor> const& values);
    ShardedLocated activate(Tensor const& keys);
    ShardedLocated insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values);
    ShardedLocated accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                              std::vector<Reduce> const& reduce);
    ShardedLocated find(Tensor const& keys) const;
    Tensor contains(Tensor const& keys) const;
    Tensor erase(Tensor const& keys);
    std::vector<Tensor> get(Tensor const& keys, std::vector<Tensor> const& defaults = {}) const;

    // For bounded tables only, as in BoundedHashMap, with int64 indices. `scores` is empty if the
    // table evicts by last use. Evicted entries are in the order of the rows that evicted them.
    Admitted insert(Tensor const& keys, std::vector<Tensor> const& values, Tensor const& scores);
    Admitted activate(Tensor const& keys, Tensor const& scores);
    Admitted insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values,
                              Tensor const& scores);
    Admitted accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                        std::vector<Reduce> const& reduce, Tensor const& scores);
    std::vector<Tensor> get_and_touch(Tensor const& keys, std::vector<Tensor> const& defaults = {},
                                      Tensor const& scores = {});
    /// int64 [size], in the order of the listings.
    Tensor scores() const;
    /// The number of batches so far that could change the table. All shards have the same clock.
    std::uint64_t clock() const;
    /// Empty if the table is not bounded.
    std::optional<Bound> bound() const;

    /// The results of get() and contains() at the same moment.
    struct ValuesAndMask {
        std::vector<Tensor> values;
        Tensor mask;
    };
    ValuesAndMask get_with_mask(Tensor const& keys, std::vector<Tensor> const& defaults = {}) const;

    // As in HashMap. With shards on devices besides the CPU, get_into() writes to memory where the
    // keys are, and export_from() to memory of the CPU.
    void get_into(Tensor const& keys, std::vector<Tensor> const& defaults,
                  std::vector<void*> const& out, bool* found) const;
    void replace(Tensor const& keys, std::vector<Tensor> const& values);
    /// HashMap::export_from for global indices begin <= index < end.
    std::int64_t export_from(std::int64_t begin, std::int64_t end, std::int64_t limit,
                             std::function<ShardedRoom(std::int64_t rows)> const& make_room) const;

    /// Overwrites the values of keys in the table; of equal keys the last row wins. bool [N]: which
    /// keys were found.
    Tensor assign(Tensor const& keys, std::vector<Tensor> const& values);
    /// As in HashMap.
    ShardedLocated update(Tensor const& keys, Tensor const& gradients, Optimizer const& optimizer,
                          UpdateOptions const& options = {});
    /// Calls `change` for each row with a key in the table: rows of one key in order, different
    /// keys on several threads at once. It must not use this table. If it throws, all values are
    /// restored. bool [N]: which keys were found.
    Tensor update(Tensor const& keys, RowChange const& change);

    /// insert() into one shard. If keys belong to another shard, throws a ValueError that names the
    /// first such row.
    ShardedLocated insert_into(std::size_t shard, Tensor const& keys,
                               std::vector<Tensor> const& values);
    /// int32 [N]: the shard of each key, whether the key is in the table or not.
    Tensor shard_of(Tensor const& keys) const;

    // Listings ascend by global index, so they go shard by shard.
    Tensor active_buf_indices() const;
    Tensor keys() const;
    Items items() const;
    /// The items of one shard.
    Items items(std::size_t shard) const;
    /// Views of one shard's buffers, [capacity(shard), *shape], as in HashMap.
    Tensor key_tensor(std::size_t shard) const;
    Tensor value_tensor(std::size_t shard, std::size_t column = 0) const;

    /// Makes room for `capacity` evenly spread keys. Never shrinks, never moves an entry.
    void reserve(Capacity capacity);
    /// HashMap::shrink_to_fit on every shard, or on none if memory runs out. A bounded table keeps
    /// its memory.
    void shrink_to_fit();
    void clear();
    /// HashMap::compact on every shard: one int32 [capacity(shard)] per shard.
    std::vector<Tensor> compact();
    ShardedHashMap clone() const;

    std::int64_t size() const;
    std::int64_t size(std::size_t shard) const;
    std::int64_t capacity() const;
    std::int64_t capacity(std::size_t shard) const;
    Element const& key_element() const noexcept;
    std::vector<Element> const& value_elements() const noexcept;
    std::size_t shards() const noexcept;
    std::vector<Device> const& devices() const noexcept;
    /// The shard on `device`. If there is none, throws a ValueError that lists the devices.
    std::size_t shard_on(Device device) const;
    ShardPolicy const& policy() const noexcept;
    MemoryUsage memory_usage() const;
    /// Throws CorruptTable unless every shard is valid and holds only its own keys, and the shards
    /// of a bounded table have the same clock.
    void validate() const;

    /// Writes one file with all shards.
    void save(std::string const& file_name) const;
    Tensor to_bytes() const;
    /// Reads a file of save() or HashMap::save(). Without `devices`: one "cpu:<i>" per saved shard.
    /// Without `policy`: the saved one; a custom policy must be given. With as many shards and the
    /// same policy, indices stay the same; otherwise keys are routed again, which is refused for a
    /// bounded table because its shares would not fit. `max_bytes` is as in HashMap::load, for all
    /// shards together. A bounded table with few keys may need a higher one than the default: its
    /// whole capacity counts.
    static ShardedHashMap load(std::string const& file_name, std::vector<Device> devices = {},
                               std::optional<ShardPolicy> policy = {},
                               std::optional<std::uint64_t> max_bytes = {});
    static ShardedHashMap from_bytes(Tensor const& bytes, std::vector<Device> devices = {},
                                     std::optional<ShardPolicy> policy = {},
                                     std::optional<std::uint64_t> max_bytes = {});

private:
    struct Impl;
    explicit ShardedHashMap(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tensorhash
