// ShardedMap: HashMap's verbs over several tables, one per device, that act as one.
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

/// Where a key of a sharded table lives, as one number: shard << 32 | index within the shard.
inline constexpr std::int64_t global_index(std::int64_t shard, std::int64_t local) noexcept {
    return shard << 32 | local;
}

/// What a bounded sharded table holds at most: never more than `max_capacity` keys in all. Each shard has an equal share of
/// it, the first ones one more if it does not divide, and evicts when its own share is full, as BoundedHashMap does.
struct Bound {
    Capacity max_capacity;
    Eviction eviction = Eviction::Lru;
};

/// ExportRoom with the indices of a sharded table.
struct ShardedRoom {
    void* keys = nullptr;
    std::vector<void*> values;
    std::int64_t* indices = nullptr;
};

/// A table cut into shards. The policy says which shard a key belongs to; each shard is a table on a device of its own,
/// "cpu:0", "cpu:1", …, with threads of its own.
///
/// HashMap's contract holds for the whole: a batch acts as if its rows were applied one by one, in order; a call that
/// throws changed no shard; many may read, a writer is alone. Indices are int64, see global_index().
class TH_API ShardedMap {
public:
    /// Every shard gets its part of the capacity and some more, so that so many evenly spread keys
    /// fit without growth. The seed is as HashMap's, another one for each shard. Which shard a key
    /// belongs to is the policy's choice alone.
    ShardedMap(Capacity init_capacity, Element key, std::vector<Element> values,
               std::vector<Device> devices, ShardPolicy policy = hash_policy(),
               std::optional<std::uint64_t> seed = {});
    /// Bounded: keys come in through admit(), and the verbs that would add or overwrite without it are refused.
    ShardedMap(Bound bound, Element key, std::vector<Element> values, std::vector<Device> devices,
               ShardPolicy policy = hash_policy(), std::optional<std::uint64_t> seed = {});
    static ShardedMap from_items(Tensor const& keys, std::vector<Tensor> const& values,
                                 std::vector<Device> devices, ShardPolicy policy = hash_policy());

    ShardedMap(ShardedMap&&) noexcept;
    ShardedMap& operator=(ShardedMap&&) noexcept;
    /// Copying a table is never an accident: call clone().
    ShardedMap(ShardedMap const&) = delete;
    ShardedMap& operator=(ShardedMap const&) = delete;
    ~ShardedMap();

    // HashMap's verbs, with int64 indices.
    Located insert(Tensor const& keys, std::vector<Tensor> const& values);
    Located activate(Tensor const& keys);
    Located insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values);
    Located accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                       std::vector<Reduce> const& reduce);
    Located find(Tensor const& keys) const;
    Tensor contains(Tensor const& keys) const;
    Tensor erase(Tensor const& keys);
    std::vector<Tensor> get(Tensor const& keys, std::vector<Tensor> const& defaults = {}) const;

    // Of a bounded table only, as BoundedHashMap's, with int64 indices.
    /// BoundedHashMap's accumulate on every shard. Those that leave come in the order of the rows for which they did.
    Admitted admit(Tensor const& keys, std::vector<Tensor> const& values,
                   std::vector<Reduce> const& reduce, Tensor const& scores = {});
    /// The same with zeros for the new keys, and the values of the others as they are.
    Admitted admit(Tensor const& keys, Tensor const& scores = {});
    std::vector<Tensor> get_and_touch(Tensor const& keys, std::vector<Tensor> const& defaults = {},
                                      Tensor const& scores = {});
    /// int64 [size], in the order of all listings.
    Tensor scores() const;
    /// The batches so far that could change the table, on whatever shards.
    std::uint64_t clock() const;
    /// Nothing if the table is not bounded.
    std::optional<Bound> bound() const;

    /// What `get` and `contains` give, of one moment.
    struct Found {
        std::vector<Tensor> values;
        Tensor mask;
    };
    Found get_with_mask(Tensor const& keys, std::vector<Tensor> const& defaults = {}) const;

    // Into and out of memory of the caller's, as HashMap's.
    void get_into(Tensor const& keys, std::vector<Tensor> const& defaults,
                  std::vector<void*> const& out, bool* found) const;
    /// Everything out, these items in; of equal keys the last row wins. Readers see the old table
    /// or the new one.
    void replace(Tensor const& keys, std::vector<Tensor> const& values);
    /// Up to `limit` live entries at global indices begin <= index < end; returns where to go on,
    /// or -1.
    std::int64_t export_from(std::int64_t begin, std::int64_t end, std::int64_t limit,
                             std::function<ShardedRoom(std::int64_t rows)> const& make_room) const;

    /// Overwrites the values of keys that are there, the last of equal keys wins. bool [N]: which rows were there.
    Tensor assign(Tensor const& keys, std::vector<Tensor> const& values);
    /// HashMap's update: an optimizer's step for each row.
    Located update(Tensor const& keys, Tensor const& gradients, Optimizer const& optimizer,
                   UpdateOptions const& options = {});
    /// Called with a row and the addresses of its key's values, one per column.
    using RowUpdate = std::function<void(std::size_t row, void* const* values)>;
    /// Calls `change` for each row whose key is there: rows of one key in order, different keys from several threads at
    /// once. It must not use this table. If it throws, every value is what it was. bool [N]: which rows were there.
    Tensor update(Tensor const& keys, RowUpdate const& change);

    /// `insert` into one shard. Throws ValueError that names the first row whose key belongs to another shard.
    Located insert_into(std::size_t shard, Tensor const& keys, std::vector<Tensor> const& values);
    /// int32 [N]: the shard each key belongs to, there or not.
    Tensor shard_of(Tensor const& keys) const;

    // Listings go shard by shard, within a shard by index: they ascend by global index.
    Tensor active_buf_indices() const;
    Tensor keys() const;
    Items items() const;
    /// One shard's, at one moment.
    Items items(std::size_t shard) const;
    /// One shard's buffers, [capacity(shard), *shape], shared, as HashMap's.
    Tensor key_tensor(std::size_t shard) const;
    Tensor value_tensor(std::size_t shard, std::size_t column = 0) const;

    /// Makes room for `capacity` evenly spread keys; never shrinks, never moves an entry.
    void reserve(Capacity capacity);
    void clear();
    /// HashMap's compact() on every shard: int32 [capacity(shard)] each.
    std::vector<Tensor> compact();
    ShardedMap clone() const;

    std::int64_t size() const;
    std::int64_t size(std::size_t shard) const;
    std::int64_t capacity() const;
    std::int64_t capacity(std::size_t shard) const;
    Element const& key_element() const noexcept;
    std::vector<Element> const& value_elements() const noexcept;
    std::size_t shards() const noexcept;
    std::vector<Device> const& devices() const noexcept;
    /// The shard that lives on `device`; throws ValueError that lists the devices.
    std::size_t shard_on(Device device) const;
    ShardPolicy const& policy() const noexcept;
    MemoryUsage memory_usage() const;
    /// Throws CorruptTable unless every shard is sound and holds only keys of its own, and all of a
    /// bounded table's have the same clock.
    void validate() const;

    /// One file with all shards.
    void save(std::string const& file_name) const;
    Tensor to_bytes() const;
    /// A bounded table's file goes onto as many shards with the same policy only: on others its shares would not hold.
    /// Reads what save() or HashMap::save() wrote onto `devices` (none: "cpu:0", …, as many as were saved). Where shards
    /// and policy are the saved ones, indices are too; otherwise keys are routed anew. Without a policy the saved one is
    /// used; a policy that has no name of ours must be given.
    /// `max_bytes` is HashMap's, for all shards together; a bounded table's file may need it.
    static ShardedMap load(std::string const& file_name, std::vector<Device> devices = {},
                           std::optional<ShardPolicy> policy = {},
                           std::optional<std::uint64_t> max_bytes = {});
    static ShardedMap from_bytes(Tensor const& bytes, std::vector<Device> devices = {},
                                 std::optional<ShardPolicy> policy = {},
                                 std::optional<std::uint64_t> max_bytes = {});

private:
    struct Impl;
    explicit ShardedMap(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tensorhash
