// BoundedHashMap: a HashMap of fixed capacity. A full table evicts entries and returns them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorhash/eviction.hpp"
#include "tensorhash/hash_map.hpp"

namespace tensorhash {

/// What a batch did in a bounded table, and what it evicted.
struct Admitted {
    Tensor indices;  ///< [N]: buffer index after the batch, -1 if evicted; int64 if sharded
    Tensor mask;     ///< bool [N]: the row added its key
    Evicted evicted;
};

/// A HashMap that holds at most `max_capacity` keys. Rows apply in order. Each row uses its key and
/// adds it if it is missing. If that is one key too many, the lowest-ranked entry is evicted and
/// its index reused. With scores, the row itself may rank lowest: it is returned, not added.
/// `find`, `contains` and `get` do not count as use. Buffers never grow, so views show the table
/// until compact(). Otherwise HashMap's contract holds.
class TH_API BoundedHashMap {
public:
    /// The seed works as in HashMap.
    BoundedHashMap(Capacity max_capacity, Element key, std::vector<Element> values,
                   Eviction eviction = Eviction::Lru, Device device = {},
                   std::optional<std::uint64_t> seed = {});
    BoundedHashMap(BoundedHashMap&&) noexcept;
    BoundedHashMap& operator=(BoundedHashMap&&) noexcept;
    /// To copy a table, call clone().
    BoundedHashMap(BoundedHashMap const&) = delete;
    BoundedHashMap& operator=(BoundedHashMap const&) = delete;
    ~BoundedHashMap();

    /// As in HashMap. A table that evicts by score needs `scores`, int64 [N]: each row sets the
    /// score of its key. Other tables take none.
    Admitted insert(Tensor const& keys, std::vector<Tensor> const& values,
                    Tensor const& scores = {});
    Admitted activate(Tensor const& keys, Tensor const& scores = {});
    Admitted insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values,
                              Tensor const& scores = {});
    Admitted accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                        std::vector<Reduce> const& reduce, Tensor const& scores = {});
    /// As in HashMap, and counts as use of the keys. Refuses Missing::Insert, because it could not
    /// return evicted entries: insert the keys first.
    Located update(Tensor const& keys, Tensor const& gradients, Optimizer const& optimizer,
                   UpdateOptions const& options = {});
    Located find(Tensor const& keys) const;
    Tensor contains(Tensor const& keys) const;
    Tensor erase(Tensor const& keys);
    /// Overwrites the values of keys in the table; of equal keys the last row wins. It is no use of
    /// the keys. Returns which keys were found.
    Tensor assign(Tensor const& keys, std::vector<Tensor> const& values);
    std::vector<Tensor> get(Tensor const& keys, std::vector<Tensor> const& defaults = {}) const;
    /// get() into the caller's memory, as in HashMap.
    void get_into(Tensor const& keys, std::vector<Tensor> const& defaults,
                  std::vector<void*> const& out, bool* found) const;
    /// get() that counts as use of the keys found, so it is a writer. `scores`, if given, replace
    /// theirs.
    std::vector<Tensor> get_and_touch(Tensor const& keys, std::vector<Tensor> const& defaults = {},
                                      Tensor const& scores = {});

    Tensor active_buf_indices() const;
    Tensor keys() const;
    Items items() const;
    /// int64 [size], ascending by buffer index like all listings.
    Tensor scores() const;
    /// Copies of the live entries with their scores, of one moment.
    Evicted entries() const;
    Tensor key_tensor() const;
    Tensor value_tensor(std::size_t column = 0) const;

    void clear();
    Tensor compact();
    BoundedHashMap clone() const;

    std::int64_t size() const;
    /// Always max_capacity.
    std::int64_t capacity() const noexcept;
    /// The number of batches so far of insert, insert_or_assign, accumulate, activate, update,
    /// erase and get_and_touch.
    std::uint64_t clock() const;
    Eviction eviction() const noexcept;
    Element const& key_element() const noexcept;
    std::vector<Element> const& value_elements() const noexcept;
    Device device() const noexcept;
    MemoryUsage memory_usage() const;
    /// As in HashMap. Also checks that last uses are distinct and in the past, and with
    /// Eviction::Lru that scores follow the order of last uses.
    void validate() const;

    void save(std::string const& file_name) const;
    /// As in HashMap, but throws FormatError if max_capacity takes more than load_limit() bytes.
    static BoundedHashMap load(std::string const& file_name,
                               std::optional<std::uint64_t> max_bytes = {});
    Tensor to_bytes() const;
    static BoundedHashMap from_bytes(Tensor const& bytes,
                                     std::optional<std::uint64_t> max_bytes = {});

private:
    struct Impl;
    explicit BoundedHashMap(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tensorhash
