// The table: index, key and value buffers, free stack. Raw rows in, numbers out; arguments are checked and locks are
// taken by its callers.
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
#include "runtime/memory.hpp"
#include "table/limits.hpp"
#include "tensorhash/memory_usage.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::table {

/// The capacity that a table grows to when it needs more than it has: what it needs, or twice what it has if that is
/// more, a large one rounded up to what its index serves. Never more than kMaxEntries, whatever is needed.
std::uint64_t grown_capacity(KeyLayout layout, std::uint64_t capacity, std::uint64_t needed);

using backend::Answers;
using backend::Bytes;
using backend::KeySource;

/// Keys of this element as the index sees them.
KeyLayout layout_of(Element const& key) noexcept;

/// A dense buffer of `rows` elements, shared with the views that were given out.
struct Column {
    std::size_t row_bytes = 0;
    std::shared_ptr<runtime::Block> block;

    unsigned char* row(std::size_t i) noexcept { return block->data() + i * row_bytes; }
    Bytes row(std::size_t i) const noexcept { return block->data() + i * row_bytes; }
};

/// A copy of the first `used` rows in a buffer of `capacity`, the rest zeros.
Column copy_column(Column const& column, std::uint64_t used, std::uint64_t capacity);

/// New memory for a table that must grow, all of it allocated before anything changes. Buffers of which nobody has a view
/// were made larger as they are; they get their old size back unless the table adopts the growth.
struct Growth {
    std::uint64_t capacity = 0;
    std::optional<Column> keys;  // none: the buffers are large enough
    std::vector<Column> values;
    std::vector<std::uint64_t> live;
    std::optional<Index> index;  // of the size that `capacity` asks for, still empty
    std::uint64_t lines = 0;     // or: the table's own index has memory for so many
    std::vector<runtime::Extension> extensions;
};

/// A batch whose keys have claims and room, but are not yet the table's.
struct Insertion {
    struct Counts {
        std::uint32_t base = 0;     // the first fresh index
        std::uint64_t claimed = 0;  // new keys in all
        std::uint64_t reused = 0;   // those that took an index off the free stack
    };
    runtime::Block positions;
    runtime::Block keys;    // a copy of the caller's
    bool in_place = false;  // or: the copy is in the table's key buffer, from `base` on
    kernel::BatchView batch;
    std::size_t rows = 0;
    std::optional<Index> replacement;  // holds the claims, if the table's own index was too small
    Growth growth;
    Counts counts;
};

/// Scratch and room to erase a batch.
struct Erasing {
    runtime::Block positions;
    runtime::Block freed;
};

/// Entries on their way out, erased already, and keys that have claimed their places.
struct Replacing {
    std::vector<std::uint32_t> leaving;
    runtime::Block numbers;
    runtime::Block mask;
    Insertion insertion;
};

/// A compacted copy of a table's parts; no `index`: there was nothing to do.
struct Compacted {
    Column keys;
    std::vector<Column> values;
    std::vector<std::uint64_t> live;
    std::optional<Index> index;
    std::uint64_t count = 0;
};

/// What some rows' values were, to be put back.
struct Remembered {
    std::vector<runtime::Block> columns;
};

/// Called with a row and the addresses of its key's values, a column each.
using RowVisit = std::function<void(std::size_t row, void* const* values)>;

class Table {
public:
    /// Without a seed the table draws one.
    Table(Element const& key, std::vector<Element> const& values, std::uint64_t capacity,
          std::optional<std::uint64_t> seed = {});
    /// A copy of everything: indices, free stack and seed included.
    Table(Table const& other);
    Table(Table&&) noexcept = default;
    Table& operator=(Table&&) noexcept = default;

    /// Bytes that a table of this capacity takes when it is new; the largest number if they are
    /// more.
    static std::uint64_t memory_for(Element const& key, std::vector<Element> const& values,
                                    std::uint64_t capacity);

    std::uint64_t size() const noexcept { return top_ - free_.size(); }
    std::uint64_t capacity() const noexcept { return capacity_; }
    std::uint64_t slots() const noexcept { return index_.slots(); }
    std::uint64_t seed() const noexcept { return index_.seed(); }
    std::uint32_t top() const noexcept { return top_; }
    Column const& keys() const noexcept { return keys_; }
    std::vector<Column> const& values() const noexcept { return values_; }
    std::vector<std::uint32_t> const& free_stack() const noexcept { return free_; }
    std::vector<std::uint64_t> const& live() const noexcept { return live_; }

    Element const& key_element() const noexcept { return key_; }
    std::vector<Element> const& value_elements() const noexcept { return elements_; }

    /// A private copy of a batch of the caller's keys, as the table holds keys.
    void copy_keys(unsigned char* to, Bytes keys, std::size_t rows) const noexcept;
    void find(Bytes keys, std::size_t rows, Answers out) const;
    /// Adds the keys that are new, with their values. `values` is one address per column.
    void insert(Bytes keys, std::size_t rows, backend::ValueRows const& values, Answers out,
                KeySource source = KeySource::Caller);
    /// Adds the keys that are new; their values are zeros.
    void activate(Bytes keys, std::size_t rows, Answers out, KeySource source = KeySource::Caller);
    /// Adds the keys that are new with their values and joins the other rows by `reduce`, one for
    /// all columns or one per column.
    void accumulate(Bytes keys, std::size_t rows, backend::ValueRows const& values,
                    std::span<Reduce const> reduce, Answers out,
                    KeySource source = KeySource::Caller);
    void erase(Bytes keys, std::size_t rows, unsigned char* mask);
    /// Overwrites the values of the keys that are there, the last of equal keys wins; answers as
    /// find().
    void assign(Bytes keys, std::size_t rows, backend::ValueRows const& values, Answers out);

    // The same in two steps, for a caller that changes several tables or none. prepare_ may throw,
    // and then nothing is changed; finish_ cannot fail; cancel() undoes a prepare_insert(). Between
    // the two nothing may use the table.
    Insertion prepare_insert(Bytes keys, std::size_t rows, Answers out,
                             KeySource source = KeySource::Caller);
    void cancel(Insertion& insertion) noexcept;
    void finish_insert(Insertion&& insertion, backend::ValueRows const& values) noexcept;
    void finish_activate(Insertion&& insertion) noexcept;
    void finish_accumulate(Insertion&& insertion, backend::ValueRows const& values,
                           std::span<Reduce const> reduce) noexcept;
    Erasing prepare_erase(std::size_t rows);
    void finish_erase(Erasing& erasing, Bytes keys, std::size_t rows, unsigned char* mask) noexcept;
    Growth prepare_reserve(std::uint64_t capacity);
    void finish_reserve(Growth&& growth) noexcept;
    Compacted prepare_compact(std::int32_t* old_to_new) const;
    void finish_compact(Compacted&& compacted) noexcept;

    /// Calls `visit` for the rows that find() found, an entry's rows in row order; different entries in parallel.
    void visit_found(Answers const& found, std::size_t rows, RowVisit const& visit);
    /// The values of the rows that find() found, and the way back to them.
    Remembered remember(Answers const& found, std::size_t rows) const;
    void put_back(Remembered const& before, Answers const& found, std::size_t rows) noexcept;

    /// Puts new keys, distinct and absent once those at `leaving` are gone, in their place in this order, then those that are
    /// left where new keys go. Values stay as they are. The keys are read once more when it is finished.
    Replacing prepare_replace(std::span<std::uint32_t const> leaving, Bytes keys, std::size_t rows);
    void cancel(Replacing& replacing) noexcept;
    void finish_replace(Replacing&& replacing) noexcept;

    /// As those of backend::TableBackend.
    std::size_t list(std::uint64_t begin, std::size_t limit, std::int32_t* out) const;
    void gather(std::size_t column, backend::Gather const& rows, void* out) const;
    void gather_keys(backend::Gather const& rows, void* out) const;
    void items(void* keys, std::span<void* const> values) const;
    Tensor key_tensor() const;
    Tensor value_tensor(std::size_t column) const;
    bool overlaps(void const* data, std::size_t bytes) const noexcept;
    backend::TableSizes sizes() const noexcept { return {size(), capacity_, top_}; }
    backend::TableImage to_cpu() const;
    void from_cpu(backend::TableImage const& image);
    void reserve(std::uint64_t capacity);
    void clear() noexcept;
    /// Fills old_to_new[capacity].
    void compact(std::int32_t* old_to_new);

    /// The value buffers, for those that write entries themselves.
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
    cpu::ClaimCount claim(kernel::BatchView const& batch, std::size_t rows,
                          std::optional<Index>& replacement);
    cpu::ClaimCount claim_in_larger(kernel::BatchView const& batch, std::size_t rows,
                                    std::uint64_t missing, std::optional<Index>& replacement) const;
    Column enlarged(Column const& column, Growth& growth) const;
    Growth grown_to(std::uint64_t capacity) const;
    Growth make_room(Index const& target, std::uint64_t fresh) const;
    bool clear_live(kernel::BatchView const& batch, runtime::Chunks const& chunks) noexcept;
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
    KeyLayout layout_;
    std::uint64_t capacity_;
    Column keys_;
    std::vector<Column> values_;
    Index index_;
    std::uint32_t top_ = 0;  // indices from here on were never given out since the last clear
    std::vector<std::uint32_t> free_;  // a stack
    std::vector<std::uint64_t> live_;  // a bit an index
};

}  // namespace tensorhash::table
