// The table: index, key and value buffers, free stack. It takes raw rows and returns buffer
// indices; callers check arguments and take locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/batch.hpp"
#include "backend/table_backend.hpp"
#include "index/bucket_index.hpp"
#include "runtime/block_vector.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "table/limits.hpp"
#include "tensorhash/memory_usage.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::table {

using index::BucketIndex;
using index::ProbeLengths;

using backend::Answers;
using backend::Bytes;
using backend::KeySource;

/// The key format of this element.
step::KeyFormat format_of(Element const& key) noexcept;

/// A dense buffer with one row per buffer index, shared with the views of it.
struct Column {
    std::size_t row_bytes = 0;
    std::shared_ptr<runtime::Block> block;

    unsigned char* row(std::size_t i) noexcept { return block->data() + i * row_bytes; }
    Bytes row(std::size_t i) const noexcept { return block->data() + i * row_bytes; }
};

/// A buffer of `capacity` rows: a copy of the first `used` rows, then zeros.
Column copy_column(Column const& column, std::uint64_t used, std::uint64_t capacity);

/// New memory for a table that must grow, all allocated before the table changes. Buffers without
/// views are extended in place; they shrink back unless the table adopts the growth.
struct Growth {
    std::uint64_t capacity = 0;
    std::optional<Column> keys;  // none: the buffers are large enough
    std::vector<Column> values;
    std::vector<std::uint64_t> live;
    std::optional<BucketIndex> index;  // of another size, not yet filled
    std::uint64_t buckets = 0;         // or: the table's own index has memory for this many
    std::vector<runtime::Extension> extensions;
};

/// A prepared insert: slots are claimed and memory is allocated, but no key is added yet.
struct Insertion {
    struct Counts {
        std::uint32_t base = 0;     // the first fresh index
        std::uint64_t claimed = 0;  // new keys
        std::uint64_t reused = 0;   // new keys that take an index from the free stack
    };
    runtime::Block positions;
    runtime::Block keys;    // a copy of the caller's keys
    bool in_place = false;  // the copy is in the table's key buffer instead, from `base` on
    step::BatchView batch;
    std::size_t rows = 0;
    std::uint64_t buckets_before = 0;  // the table's index may have grown since
    Growth growth;
    Counts counts;
};

/// The free stack: erased indices. Its top is at the end.
using FreeStack = runtime::UnclearedVector<std::uint32_t>;

/// Memory to erase a batch on several threads. One thread needs none.
struct Erasing {
    runtime::Chunks chunks;
    runtime::Block positions;
    runtime::Block freed;
    runtime::Chunks shares;  // one per thread, to clear the live bits
    runtime::Block cleared;  // the bits of the entries in each share; none if few rows
    runtime::Block contested;
    std::vector<std::uint64_t> taken;  // [chunks.count]
};

/// A prepared replacement: old entries are erased, new keys have claimed slots.
struct Replacing {
    std::vector<std::uint32_t> leaving;
    runtime::Block buf_indices;
    runtime::Block mask;
    Insertion insertion;
};

/// Compacted copies of a table's parts. No `index`: the table is compact already.
struct Compacted {
    Column keys;
    std::vector<Column> values;
    std::vector<std::uint64_t> live;
    std::optional<BucketIndex> index;
    std::uint64_t count = 0;
};

/// Smaller parts for a table that gives memory back. A column without a block shrinks in place.
struct Shrinkage {
    std::uint64_t capacity = 0;
    std::optional<Column> keys;  // none: the buffers have no row to spare
    std::vector<Column> values;
    std::vector<std::uint64_t> live;
    FreeStack free;
    std::optional<BucketIndex> index;  // none: the index is small enough
};

/// A copy of some rows' values, for rollback.
struct Remembered {
    std::vector<runtime::Block> columns;
};

class Table {
public:
    /// Without a `seed` the table draws one.
    Table(Element const& key, std::vector<Element> const& values, std::uint64_t capacity,
          std::optional<std::uint64_t> seed = {});
    /// A copy of everything: indices, free stack and seed included.
    Table(Table const& other);
    Table(Table&&) noexcept = default;
    Table& operator=(Table&&) noexcept = default;

    /// Bytes of a new table of this capacity; UINT64_MAX if the sum overflows.
    static std::uint64_t memory_for(Element const& key, std::vector<Element> const& values,
                                    std::uint64_t capacity);

    std::uint64_t size() const noexcept { return top_ - free_.size(); }
    std::uint64_t capacity() const noexcept { return capacity_; }
    std::uint64_t slots() const noexcept { return index_.slots(); }
    std::uint64_t seed() const noexcept { return index_.seed(); }
    std::uint32_t top() const noexcept { return top_; }
    Column const& keys() const noexcept { return keys_; }
    std::vector<Column> const& values() const noexcept { return values_; }
    FreeStack const& free_stack() const noexcept { return free_; }
    std::vector<std::uint64_t> const& live() const noexcept { return live_; }

    Element const& key_element() const noexcept { return key_; }
    std::vector<Element> const& value_elements() const noexcept { return elements_; }

    /// Copies a batch of keys in the form that the table stores: bools are 0 or 1.
    void copy_keys(unsigned char* to, Bytes keys, std::size_t rows) const noexcept;
    void find(Bytes keys, std::size_t rows, Answers out) const;
    /// Adds new keys with their values.
    void insert(Bytes keys, std::size_t rows, backend::ValueRows const& values, Answers out,
                KeySource source = KeySource::Caller);
    /// Adds new keys; their values are zeros.
    void activate(Bytes keys, std::size_t rows, Answers out, KeySource source = KeySource::Caller);
    /// Adds new keys and overwrites the values of the others; of equal keys the last row wins.
    void insert_or_assign(Bytes keys, std::size_t rows, backend::ValueRows const& values,
                          Answers out, KeySource source = KeySource::Caller);
    /// Adds new keys with their values and joins the other rows by `reduce`: one for all columns or
    /// one per column.
    void accumulate(Bytes keys, std::size_t rows, backend::ValueRows const& values,
                    std::span<Reduce const> reduce, Answers out,
                    KeySource source = KeySource::Caller);
    void erase(Bytes keys, std::size_t rows, unsigned char* mask);
    /// Overwrites the values of keys that are present; of equal keys the last row wins. Same
    /// results as find().
    void assign(Bytes keys, std::size_t rows, backend::ValueRows const& values, Answers out);

    // The same in two steps, for a caller that changes several tables or none. A prepare_ that
    // throws changes nothing; finish_ cannot fail; cancel() undoes prepare_insert(). Nothing else
    // may use the table between the two steps.
    Insertion prepare_insert(Bytes keys, std::size_t rows, Answers out,
                             KeySource source = KeySource::Caller);
    void cancel(Insertion& insertion) noexcept;
    void finish_insert(Insertion&& insertion, backend::ValueRows const& values) noexcept;
    void finish_activate(Insertion&& insertion) noexcept;
    void finish_insert_or_assign(Insertion&& insertion, backend::ValueRows const& values) noexcept;
    void finish_accumulate(Insertion&& insertion, backend::ValueRows const& values,
                           std::span<Reduce const> reduce) noexcept;
    Erasing prepare_erase(std::size_t rows);
    void finish_erase(Erasing& erasing, Bytes keys, std::size_t rows, unsigned char* mask) noexcept;
    Growth prepare_reserve(std::uint64_t capacity);
    void finish_reserve(Growth&& growth) noexcept;
    Shrinkage prepare_shrink() const;
    void finish_shrink(Shrinkage&& shrinkage) noexcept;
    Compacted prepare_compact(std::int32_t* old_to_new) const;
    void finish_compact(Compacted&& compacted) noexcept;

    /// Calls `change` for the rows that find() found: rows of one entry in row order, different
    /// entries in parallel.
    void visit_found(Answers const& found, std::size_t rows, RowChange const& change);
    /// Copies the values of the rows that find() found; put_back() restores them.
    Remembered remember(Answers const& found, std::size_t rows) const;
    void put_back(Remembered const& before, Answers const& found, std::size_t rows) noexcept;

    /// Erases the entries at `leaving` and gives their buffer indices to the first keys, in this
    /// order. The remaining keys are added as by insert. Keys must be distinct and absent after the
    /// erase. Values do not change. finish_replace() reads the keys again.
    Replacing prepare_replace(std::span<std::uint32_t const> leaving, Bytes keys, std::size_t rows);
    void cancel(Replacing& replacing) noexcept;
    void finish_replace(Replacing&& replacing) noexcept;

    // As in backend::TableBackend.
    std::size_t list(std::uint64_t begin, std::size_t limit, std::int32_t* out) const;
    void gather(std::size_t column, backend::Gather const& rows, void* out) const;
    void gather_keys(backend::Gather const& rows, void* out) const;
    void items(void* keys, std::span<void* const> values) const;
    Tensor key_tensor() const;
    backend::LookupMemory lookup_memory() const noexcept;
    Tensor value_tensor(std::size_t column) const;
    bool overlaps(void const* data, std::size_t bytes) const noexcept;
    backend::TableSizes sizes() const noexcept { return {size(), capacity_, top_}; }
    backend::TableImage to_cpu() const;
    void from_cpu(backend::TableImage const& image);
    void reserve(std::uint64_t capacity);
    void clear() noexcept;
    /// Fills old_to_new[capacity].
    void compact(std::int32_t* old_to_new);

    /// The value buffers, for callers that write entries themselves.
    std::vector<Column>& raw_values() noexcept { return values_; }

    MemoryUsage memory_usage() const noexcept;
    void validate() const;
    ProbeLengths probe_lengths(Bytes keys, std::size_t rows) const;

private:
    Insertion::Counts finish_keys(Insertion& insertion) noexcept;
    Bytes keep_keys(Insertion& insertion, Bytes keys);
    void forget_keys(Insertion const& insertion) noexcept;
    void write_keys(Insertion const& insertion) noexcept;
    void close_gaps(Insertion const& insertion) noexcept;
    cpu::ClaimCount claim(step::BatchView const& batch, std::size_t rows);
    cpu::ClaimCount look_up_and_claim(step::BatchView const& batch, std::size_t rows);
    cpu::ClaimCount claim_and_grow(step::BatchView const& batch, std::size_t rows,
                                   std::uint64_t most_new, std::uint64_t guess);
    void fit_index(std::uint64_t entries);
    void undo_claims(step::BatchView const& batch, std::size_t rows,
                     std::uint64_t buckets_before) noexcept;
    void prepare_index(Growth& growth, std::uint64_t buckets);
    void finish_index(std::optional<BucketIndex>&& other, std::uint64_t buckets) noexcept;
    Column enlarged(Column const& column, Growth& growth) const;
    Growth grown_to(std::uint64_t capacity) const;
    Column shrunk(Column const& column, std::uint64_t rows) const;
    Growth prepare_growth(Insertion const& insertion) const;
    bool clear_live(Erasing& erasing, step::BatchView const& batch) noexcept;
    void erase_in_order(Bytes keys, std::size_t rows, unsigned char* mask) noexcept;
    void erase_at_once(Erasing& erasing, step::BatchView const& batch) noexcept;
    void push_freed(step::BatchView const& batch, std::size_t rows) noexcept;
    void clear_unused(Column& old, Column const& grown) const noexcept;
    void adopt(Growth&& growth) noexcept;
    void write_new(Column& column, Bytes from, std::size_t rows, Answers const& where,
                   Insertion::Counts const& added, std::uint32_t const* order = nullptr);
    void list_all(std::int32_t* out) const;
    void fill(Column& column, Element const& element, Bytes rows,
              backend::TableImage const& image) const;
    void restore(std::uint32_t top, std::span<std::uint32_t const> free);
    void validate_free_stack() const;
    void validate_index() const;
    bool is_live(std::uint64_t index) const noexcept {
        return (live_[index / 64] >> (index % 64) & 1) != 0;
    }
    Bytes key_buffer() const noexcept { return keys_.block->data(); }

    Element key_;
    std::vector<Element> elements_;  // of the value columns
    step::KeyFormat format_;
    std::uint64_t capacity_;
    Column keys_;
    std::vector<Column> values_;
    BucketIndex index_;
    std::uint32_t top_ = 0;            // the next fresh index: live and free ones are below it
    FreeStack free_;                   // erased indices below top_
    std::vector<std::uint64_t> live_;  // one bit per index
};

}  // namespace tensorhash::table
