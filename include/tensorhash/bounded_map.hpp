// BoundedHashMap: a HashMap that never holds more than so many keys, and hands back those it lets go.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorhash/eviction.hpp"
#include "tensorhash/hash_map.hpp"

namespace tensorhash {

struct Admitted {
    Tensor indices;  ///< int32 [N]: where each row's key is now; -1 if it has left again
    Tensor mask;     ///< bool [N]: the row added its key
    Evicted evicted;
};

/// At most `max_capacity` keys. A batch acts as if its rows were applied one by one: a row uses its key, adding it if it
/// is not there; if that makes one too many, the entry that ranks lowest leaves and its index is free for the new one. With
/// scores that may be the row itself, which is then reported like any other.
///
/// The clock counts the batches that change the table: insert, insert_or_assign, accumulate, activate, update, erase and
/// get_and_touch. Last use is the batch and, within it, the row. `find`, `contains` and `get` are readers and touch nothing.
/// The rest is HashMap's contract. Buffers are allocated once: views stay the table's, and indices below max_capacity.
class TH_API BoundedHashMap {
public:
    /// The seed is as HashMap's.
    BoundedHashMap(Capacity max_capacity, Element key, std::vector<Element> values,
                   Eviction eviction = Eviction::Lru, Device device = {},
                   std::optional<std::uint64_t> seed = {});
    BoundedHashMap(BoundedHashMap&&) noexcept;
    BoundedHashMap& operator=(BoundedHashMap&&) noexcept;
    /// Copying a table is never an accident: call clone().
    BoundedHashMap(BoundedHashMap const&) = delete;
    BoundedHashMap& operator=(BoundedHashMap const&) = delete;
    ~BoundedHashMap();

    /// As HashMap's. `scores` is int64 [N], and given if and only if the table evicts by score: a row sets its key's score.
    Admitted insert(Tensor const& keys, std::vector<Tensor> const& values,
                    Tensor const& scores = {});
    Admitted activate(Tensor const& keys, Tensor const& scores = {});
    Admitted insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values,
                              Tensor const& scores = {});
    Admitted accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                        std::vector<Reduce> const& reduce, Tensor const& scores = {});
    /// As HashMap's; Missing::Insert is refused, since what is inserted must be able to evict.
    Located update(Tensor const& keys, Tensor const& gradients, Optimizer const& optimizer,
                   UpdateOptions const& options = {});
    Located find(Tensor const& keys) const;
    Tensor contains(Tensor const& keys) const;
    Tensor erase(Tensor const& keys);
    std::vector<Tensor> get(Tensor const& keys, std::vector<Tensor> const& defaults = {}) const;
    /// The same, and uses the keys that are there: a writer. Scores, if given, are set.
    std::vector<Tensor> get_and_touch(Tensor const& keys, std::vector<Tensor> const& defaults = {},
                                      Tensor const& scores = {});

    Tensor active_buf_indices() const;
    Tensor keys() const;
    Items items() const;
    /// int64 [size], in the order of all listings: ascending by buffer index.
    Tensor scores() const;
    Tensor key_tensor() const;
    Tensor value_tensor(std::size_t column = 0) const;

    void clear();
    Tensor compact();
    BoundedHashMap clone() const;

    std::int64_t size() const;
    /// max_capacity, always.
    std::int64_t capacity() const noexcept;
    std::uint64_t clock() const;
    Eviction eviction() const noexcept;
    Element const& key_element() const noexcept;
    std::vector<Element> const& value_elements() const noexcept;
    Device device() const noexcept;
    MemoryUsage memory_usage() const;
    /// As HashMap's; also, uses are distinct and in the past, and with Eviction::Lru scores are the
    /// clock of these uses.
    void validate() const;

    void save(std::string const& file_name) const;
    /// As HashMap's. A max_capacity that takes more memory than load_limit() says is refused.
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
