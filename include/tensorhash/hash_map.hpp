// HashMap and HashSet: batches of keys in, batches of buffer indices out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorhash/device.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"
#include "tensorhash/memory_usage.hpp"
#include "tensorhash/optimizer.hpp"
#include "tensorhash/reduce.hpp"
#include "tensorhash/tensor.hpp"
#include "tensorhash/unique.hpp"

namespace tensorhash {

/// Rows of a table's buffers: so many distinct keys fit before it grows.
struct Capacity {
    std::int64_t rows;
};

/// Where each row's key lives, and what happened to the row.
struct Located {
    Tensor indices;  ///< int32 [N]: right for every row, new or not; -1 where `find` found nothing
    Tensor mask;     ///< bool [N]: newly inserted; for `find`: found
};

struct Items {
    Tensor keys;
    std::vector<Tensor> values;
};

/// Memory of the caller's for exported rows; what is null or absent is not wanted.
struct ExportRoom {
    void* keys = nullptr;
    std::vector<void*> values;
    std::int32_t* indices = nullptr;
};
using MakeRoom = std::function<ExportRoom(std::int64_t rows)>;

/// A parallel hash table whose keys and values are rows of dense tensors.
///
/// A batch acts as if its rows were applied one by one, in order, on any number of threads. Keys and values
/// are given as [N, *element_shape], any strides. A call that throws changes nothing. Many threads may read
/// at once; a writer waits for them and excludes them. docs/contract.md has the rules and their tests.
class TH_API HashMap {
public:
    /// The seed says where keys lie inside the index, and nothing else: no result depends on it.
    /// Without one the table draws its own, so that keys cannot be chosen to collide.
    HashMap(Capacity init_capacity, Element key, std::vector<Element> values, Device device = {},
            std::optional<std::uint64_t> seed = {});
    /// Dtypes and element shapes from the arrays: row i of each is one item; of equal keys the first wins.
    static HashMap from_items(Tensor const& keys, std::vector<Tensor> const& values);

    HashMap(HashMap&&) noexcept;
    HashMap& operator=(HashMap&&) noexcept;
    /// Copying a table is never an accident: call clone().
    HashMap(HashMap const&) = delete;
    HashMap& operator=(HashMap const&) = delete;
    ~HashMap();

    /// Adds the keys that are new, with their values; of equal keys the first row wins.
    Located insert(Tensor const& keys, std::vector<Tensor> const& values);
    /// Adds the keys that are new, values zero.
    Located activate(Tensor const& keys);
    /// Adds the new keys and overwrites the others; of equal keys the last row wins.
    Located insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values);
    /// Adds the new keys with their first row, then joins each further row, in row order. One reduce for all columns or
    /// one each.
    Located accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                       std::vector<Reduce> const& reduce);
    /// A step for each row on the values of its key; gradients are rows of column 0's element. The mask is True where the
    /// key was there when its row came. docs/update.md has the steps.
    Located update(Tensor const& keys, Tensor const& gradients, Optimizer const& optimizer,
                   UpdateOptions const& options = {});
    /// The same with a step of one's own; gradients are rows of any dtype and shape.
    Located update(Tensor const& keys, Tensor const& gradients, RowStep const& step,
                   UpdateOptions const& options = {});
    Located find(Tensor const& keys) const;
    /// bool [N]: which rows are there.
    Tensor contains(Tensor const& keys) const;
    /// bool [N]: which rows erased; of equal keys the first. Freed indices are reused last in, first out.
    Tensor erase(Tensor const& keys);
    /// The values of each key, a tensor a column; where a key is missing, the row of `defaults`
    /// ([*shape] for every key or [N, *shape] one per key; an empty list means zeros). Name the
    /// result before you loop over it: `for (float v : map.get(keys)[0].as<float>())` compiles, and
    /// reads freed memory, because the vector goes before the loop begins.
    std::vector<Tensor> get(Tensor const& keys, std::vector<Tensor> const& defaults = {}) const;

    /// The same into memory of the caller's, one address a column, [N, *shape]; null columns are skipped.
    /// `found`, if not null, gets which rows are there.
    void get_into(Tensor const& keys, std::vector<Tensor> const& defaults,
                  std::vector<void*> const& out, bool* found) const;
    /// One column's rows at buffer indices, int32 [N], into memory of the caller's; -1 gives a row of `missing` (as in
    /// get; a tensor without a dtype means zeros). Throws IndexError for indices that were never given out.
    void gather_into(Tensor const& indices, std::size_t column, Tensor const& missing,
                     void* out) const;

    /// int32 [size], ascending. All listings are in this order.
    Tensor active_buf_indices() const;
    /// Copies of the live keys, and of their values.
    Tensor keys() const;
    Items items() const;
    /// The whole buffers, [capacity, *shape], shared. A view taken before growth or compact() keeps the old memory:
    /// safe to use, no longer the table's. Keys are read-only; rows that are not live read as zeros or as erased keys.
    Tensor key_tensor() const;
    Tensor value_tensor(std::size_t column = 0) const;
    std::vector<Tensor> value_tensors() const;

    /// Makes room for `capacity` keys; never shrinks, never moves an entry.
    void reserve(Capacity capacity);
    void clear();
    /// Everything out, these items in; of equal keys the last row wins. Readers see the old table or the new one.
    void replace(Tensor const& keys, std::vector<Tensor> const& values);
    /// Copies up to `limit` live entries, from buffer index `begin` on, ascending, into memory that `make_room` gives
    /// once it is told how many; returns where to go on, or -1. `make_room` must not call the table.
    std::int64_t export_from(std::int64_t begin, std::int64_t limit,
                             MakeRoom const& make_room) const;
    /// Moves live entries to 0..size-1 in ascending order; returns int32 [capacity], old index -> new, -1 for none.
    Tensor compact();
    /// An independent copy: indices, free stack and seed included.
    HashMap clone() const;

    std::int64_t size() const;
    std::int64_t capacity() const;
    Element const& key_element() const noexcept;
    std::vector<Element> const& value_elements() const noexcept;
    Device device() const noexcept;
    MemoryUsage memory_usage() const;
    /// Bytes that a new table of this capacity takes: memory_usage() but for rounding up to pages.
    static std::uint64_t memory_for(Capacity capacity, Element const& key,
                                    std::vector<Element> const& values);
    /// Throws CorruptTable unless every live key is found at its index, live and free indices are
    /// all indices, and bool keys are 0 or 1.
    void validate() const;

    /// Writes the native file: a temporary file beside it, synced, then renamed over it.
    void save(std::string const& file_name) const;
    /// Reads any file without harm: it takes no more memory than load_limit() says. A capacity
    /// beyond that is not restored: the table has the rows that it uses, and grows. FormatError if
    /// these are too many.
    static HashMap load(std::string const& file_name, std::optional<std::uint64_t> max_bytes = {});
    /// The same bytes in memory, uint8 [n].
    Tensor to_bytes() const;
    static HashMap from_bytes(Tensor const& bytes, std::optional<std::uint64_t> max_bytes = {});
    /// A table whose live entries sit at the given indices, int32 [n], distinct; capacity is the largest + 1.
    static HashMap from_parts(Tensor const& keys, std::vector<Tensor> const& values,
                              Tensor const& buf_indices);

private:
    struct Impl;
    explicit HashMap(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// A HashMap without value columns, less the verbs that need them.
class TH_API HashSet {
public:
    HashSet(Capacity init_capacity, Element key, Device device = {},
            std::optional<std::uint64_t> seed = {})
        : map_(init_capacity, std::move(key), {}, device, seed) {}
    explicit HashSet(HashMap map);  ///< throws ValueError if the map has value columns

    Located insert(Tensor const& keys) { return map_.insert(keys, {}); }
    Located find(Tensor const& keys) const { return map_.find(keys); }
    Tensor contains(Tensor const& keys) const { return map_.contains(keys); }
    Tensor erase(Tensor const& keys) { return map_.erase(keys); }
    Tensor active_buf_indices() const { return map_.active_buf_indices(); }
    Tensor keys() const { return map_.keys(); }
    Tensor key_tensor() const { return map_.key_tensor(); }
    void reserve(Capacity capacity) { map_.reserve(capacity); }
    void clear() { map_.clear(); }
    Tensor compact() { return map_.compact(); }
    HashSet clone() const { return HashSet(map_.clone()); }
    std::int64_t size() const { return map_.size(); }
    std::int64_t capacity() const { return map_.capacity(); }
    Element const& key_element() const noexcept { return map_.key_element(); }
    Device device() const noexcept { return map_.device(); }
    MemoryUsage memory_usage() const { return map_.memory_usage(); }
    void validate() const { map_.validate(); }
    void save(std::string const& file_name) const { map_.save(file_name); }
    static HashSet load(std::string const& file_name, std::optional<std::uint64_t> max_bytes = {}) {
        return HashSet(HashMap::load(file_name, max_bytes));
    }

private:
    HashMap map_;
};

}  // namespace tensorhash
