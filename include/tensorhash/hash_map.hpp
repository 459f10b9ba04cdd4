// HashMap and HashSet: parallel hash tables that take batches of keys and return buffer indices.
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

namespace step {
struct IndexView;
}
template <class Key>
class TableView;

/// The number of rows in a table's buffers: this many distinct keys fit without growth.
struct Capacity {
    std::int64_t rows;
};

/// Where each row's key lives, and what happened to the row.
struct Located {
    Tensor indices;  ///< int32 [N]: buffer indices, valid for every row; -1 if not found
    Tensor mask;     ///< bool [N]: `insert`: the row added its key; `find`: found
};

/// Keys and the values of each column, in the same order.
struct Items {
    Tensor keys;
    std::vector<Tensor> values;
};

/// The caller's memory for exported rows. Null or missing parts are not exported.
struct ExportRoom {
    void* keys = nullptr;
    std::vector<void*> values;
    std::int32_t* indices = nullptr;
};
/// Returns memory for this many rows.
using MakeRoom = std::function<ExportRoom(std::int64_t rows)>;

/// A parallel hash table with keys and values in dense buffers. Batches are tensors
/// [N, *element_shape] with any strides. A batch gives the same result as its rows applied one by
/// one, in order, on any number of threads. A call that throws changes nothing. Many threads may
/// read at once; a writer runs alone. docs/contract.md lists the rules and their tests.
class TH_API HashMap {
public:
    /// The seed decides which slots keys get; no result depends on it. Without one the table draws
    /// its own, so that keys cannot be chosen to collide.
    HashMap(Capacity init_capacity, Element key, std::vector<Element> values, Device device = {},
            std::optional<std::uint64_t> seed = {});
    /// Takes dtypes and element shapes from the arrays. Row i of all arrays is one item; of equal
    /// keys the first row wins.
    static HashMap from_items(Tensor const& keys, std::vector<Tensor> const& values);

    HashMap(HashMap&&) noexcept;
    HashMap& operator=(HashMap&&) noexcept;
    /// To copy a table, call clone().
    HashMap(HashMap const&) = delete;
    HashMap& operator=(HashMap const&) = delete;
    ~HashMap();

    /// Adds new keys with their values; of equal keys the first row wins.
    Located insert(Tensor const& keys, std::vector<Tensor> const& values);
    /// Adds new keys with zero values.
    Located activate(Tensor const& keys);
    /// Adds new keys and overwrites the values of the others; of equal keys the last row wins.
    Located insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values);
    /// Adds new keys with the values of their first row. Combines every other row with the stored
    /// values, in row order. `reduce` has one entry for all columns, or one per column.
    Located accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                       std::vector<Reduce> const& reduce);
    /// Applies one optimizer step per row to the values of its key. Gradients have the dtype and
    /// element shape of value column 0. The mask says whether the key was in the table when its
    /// row was applied. docs/update.md describes the steps.
    Located update(Tensor const& keys, Tensor const& gradients, Optimizer const& optimizer,
                   UpdateOptions const& options = {});
    /// The same with a custom step and gradients of any dtype and element shape.
    Located update(Tensor const& keys, Tensor const& gradients, RowStep const& step,
                   UpdateOptions const& options = {});
    Located find(Tensor const& keys) const;
    /// bool [N]: which keys are in the table.
    Tensor contains(Tensor const& keys) const;
    /// bool [N]: which rows erased an entry; of equal keys only the first. Freed indices are reused
    /// last in, first out.
    Tensor erase(Tensor const& keys);
    /// The values of each key, one tensor per column. Missing keys get `defaults`, per column
    /// [*shape] for all keys or [N, *shape] with one per key; an empty list means zeros. Name the
    /// result before you loop over it: `for (float v : map.get(keys)[0].as<float>())` compiles but
    /// reads freed memory, because the vector is destroyed before the loop starts.
    std::vector<Tensor> get(Tensor const& keys, std::vector<Tensor> const& defaults = {}) const;

    /// get() into the caller's memory, [N, *shape] at one address per column; null columns are
    /// skipped. `found`, if not null, gets the result of contains().
    void get_into(Tensor const& keys, std::vector<Tensor> const& defaults,
                  std::vector<void*> const& out, bool* found) const;
    /// Copies the rows of one column at buffer indices, int32 [N], into the caller's memory. -1
    /// gives `missing`, shaped like a default of get(); a tensor without a dtype means zeros.
    /// Throws IndexError for an index above all live and free ones.
    void gather_into(Tensor const& indices, std::size_t column, Tensor const& missing,
                     void* out) const;

    /// int32 [size], ascending. All listings have this order.
    Tensor active_buf_indices() const;
    /// Copies of the live entries.
    Tensor keys() const;
    Items items() const;
    /// Views of the whole buffers, [capacity, *shape]; keys are read-only. After growth or
    /// compact() an older view keeps the old memory: safe to use, but it no longer shows the table.
    /// Rows that are not live hold zeros or erased entries.
    Tensor key_tensor() const;
    Tensor value_tensor(std::size_t column = 0) const;
    std::vector<Tensor> value_tensors() const;
    /// Finds keys in the caller's own kernels. `Key` is the C++ type of one key: a number, a
    /// std::array of numbers, or a struct with the bytes of integers. Include
    /// tensorhash/device_view.hpp, which says how long a view is valid.
    template <class Key>
    TableView<Key> view() const {
        using View = TableView<Key>;
        return View(index_view(dtype_of<typename View::Item>, sizeof(Key)));
    }

    /// Makes room for `capacity` keys. Never shrinks, never moves an entry.
    void reserve(Capacity capacity);
    /// Gives back the memory that growth and erased keys left. The capacity becomes the last live
    /// index plus one. Never moves an entry; freed indices beyond the capacity are forgotten.
    void shrink_to_fit();
    void clear();
    /// Replaces all items by these; of equal keys the last row wins. Readers see the old table or
    /// the new one.
    void replace(Tensor const& keys, std::vector<Tensor> const& values);
    /// Copies up to `limit` live entries with indices from `begin` on, ascending, into the memory
    /// that `make_room` returns. Returns where to continue, or -1 at the end. `make_room` must not
    /// call the table.
    std::int64_t export_from(std::int64_t begin, std::int64_t limit,
                             MakeRoom const& make_room) const;
    /// Moves the live entries to indices 0..size-1 and keeps their order. Returns int32 [capacity]:
    /// the new index of each old one, or -1.
    Tensor compact();
    /// An independent copy with the same indices, free stack and seed.
    HashMap clone() const;

    std::int64_t size() const;
    std::int64_t capacity() const;
    Element const& key_element() const noexcept;
    std::vector<Element> const& value_elements() const noexcept;
    Device device() const noexcept;
    /// A copy on another device, with the same buffer indices.
    HashMap to(Device device) const;
    MemoryUsage memory_usage() const;
    /// The memory_usage() of a new table, in bytes, before rounding up to pages.
    static std::uint64_t memory_for(Capacity capacity, Element const& key,
                                    std::vector<Element> const& values);
    /// Throws CorruptTable unless every live key is found at its index, every index is live or
    /// free, and bool keys are 0 or 1.
    void validate() const;

    /// Writes the native file and replaces an old one atomically, as FileReplacement does.
    void save(std::string const& file_name) const;
    /// Safe for untrusted files: the table takes at most load_limit() bytes. If the saved capacity
    /// takes more, only the rows in use are restored, and the table grows later. Throws FormatError
    /// if even those take more.
    static HashMap load(std::string const& file_name, std::optional<std::uint64_t> max_bytes = {});
    /// The bytes of the file, uint8 [n].
    Tensor to_bytes() const;
    static HashMap from_bytes(Tensor const& bytes, std::optional<std::uint64_t> max_bytes = {});
    /// A table with its entries at the given buffer indices, int32 [n], distinct. The capacity is
    /// the largest index + 1.
    static HashMap from_parts(Tensor const& keys, std::vector<Tensor> const& values,
                              Tensor const& buf_indices);

private:
    struct Impl;
    explicit HashMap(std::unique_ptr<Impl> impl);
    /// Throws TypeError unless keys have these bytes, and items of this dtype if it has one.
    step::IndexView index_view(Dtype item, std::size_t bytes) const;
    std::unique_ptr<Impl> impl_;
};

/// A HashMap without value columns and without the verbs for values.
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
    template <class Key>
    TableView<Key> view() const {
        return map_.view<Key>();
    }
    void reserve(Capacity capacity) { map_.reserve(capacity); }
    void shrink_to_fit() { map_.shrink_to_fit(); }
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
