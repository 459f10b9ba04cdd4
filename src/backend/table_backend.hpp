// TableBackend: one table on one device. Calls take whole batches, so virtual calls cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/batch.hpp"
#include "tensorhash/memory_usage.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::backend {

struct TableSizes {
    std::uint64_t entries = 0;
    std::uint64_t capacity = 0;
    std::uint32_t top = 0;  // the next fresh buffer index: live and free ones are below it
};

/// The content of a table in host memory. Files hold the same.
struct TableImage {
    std::uint64_t capacity = 0;
    std::uint32_t top = 0;
    std::span<std::uint32_t const> free;  // free buffer indices, a stack, bottom first
    std::size_t rows = 0;                 // of keys and of each value column
    Bytes keys = nullptr;
    std::vector<Bytes> values;
    std::uint32_t const* indices = nullptr;  // of the rows; null: row i has buffer index i
    std::shared_ptr<void> owner;             // of the memory, if it is a copy
};

/// Where the index and the key buffer are, for lookups in the caller's own kernels (TableView).
struct LookupMemory {
    void* buckets = nullptr;
    std::uint64_t bucket_count = 0;
    Bytes keys = nullptr;
    std::uint64_t seed = 0;
};

/// A change that has all its memory but is not made yet. Only its table can read it.
class Prepared {
public:
    virtual ~Prepared() = default;
};

/// Callers check arguments and take locks. A call that throws leaves the table unchanged. Keys and
/// values lie outside the table's own memory; see overlaps().
class TableBackend {
public:
    virtual ~TableBackend() = default;

    virtual void find(KeyRows keys, Answers out) const = 0;
    virtual void insert(Insert const& batch) = 0;
    virtual void activate(Activate const& batch) = 0;
    virtual void insert_or_assign(InsertOrAssign const& batch) = 0;
    virtual void accumulate(Accumulate const& batch) = 0;
    /// A step written by the user needs a table on the CPU.
    virtual void update(Update const& batch) = 0;
    virtual void erase(Erase const& batch) = 0;

    // A change in two steps, for callers that change several tables or none. Nothing may use the
    // table between the steps. Results are valid only after finish(); memory that a Change points
    // at must stay valid until then. A failed prepare() leaves the table unchanged; finish() cannot
    // fail.
    virtual std::unique_ptr<Prepared> prepare(Change const& change) = 0;
    virtual void finish(std::unique_ptr<Prepared> prepared) noexcept = 0;
    virtual void cancel(std::unique_ptr<Prepared> prepared) noexcept = 0;

    /// Copies rows of a value column to `out`.
    virtual void gather(std::size_t column, Gather const& rows, void* out) const = 0;
    virtual void gather_keys(Gather const& rows, void* out) const = 0;
    /// Writes up to `limit` live buffer indices from `begin` on, ascending. Returns how many.
    virtual std::size_t list(std::uint64_t begin, std::size_t limit, std::int32_t* out) const = 0;
    /// Copies the live keys and their values, in the order of list(), to memory for all entries.
    /// `values` has one address per column, or none at all.
    virtual void items(void* keys, std::span<void* const> values) const = 0;
    /// Views of the whole buffers, [capacity, *shape].
    virtual Tensor key_tensor() const = 0;
    virtual Tensor value_tensor(std::size_t column) const = 0;
    /// Valid until the next change. On a device the current stream waits for earlier changes.
    virtual LookupMemory lookup_memory() const = 0;
    /// Does this memory lie in the table's buffers?
    virtual bool overlaps(void const* data, std::size_t bytes) const noexcept = 0;

    virtual void reserve(Reserve const& request) = 0;
    virtual void compact(Compact const& request) = 0;
    virtual void clear() noexcept = 0;
    /// A full copy, with buffer indices, free stack and seed.
    virtual std::unique_ptr<TableBackend> clone() const = 0;
    /// A new table without entries, with the same elements, capacity and seed.
    virtual std::unique_ptr<TableBackend> make_empty() const = 0;

    /// A table on the CPU shows its own memory: the image is valid until the next change.
    virtual TableImage to_cpu() const = 0;
    /// Fills a new table of at least `image.top` rows. Throws CorruptTable if keys are equal, or if
    /// free indices are repeated or not below `top`.
    virtual void from_cpu(TableImage const& image) = 0;

    virtual Device device() const noexcept = 0;
    /// On a device this waits, and throws what an earlier call failed with.
    virtual TableSizes sizes() const = 0;
    virtual MemoryUsage memory_usage() const noexcept = 0;
    /// Throws CorruptTable unless the table is valid, as HashMap::validate() says.
    virtual void validate() const = 0;
};

}  // namespace tensorhash::backend
