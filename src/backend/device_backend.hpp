// DeviceBackend: what tensorhash needs of one type of device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/batch.hpp"
#include "backend/elements.hpp"
#include "backend/routed.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/tensor.hpp"
#include "tensorhash/unique.hpp"

namespace tensorhash::backend {

class TableBackend;
class CoordsBackend;

/// What a table is made of.
struct TableSpec {
    Element const& key;
    std::vector<Element> const& values;
    std::uint64_t capacity = 0;
    std::optional<std::uint64_t> seed = {};  // if absent, the table draws one
};

/// Memory, copies, streams and events come from Allocator; Tensor uses the same. Back ends live as
/// long as the process.
class DeviceBackend : public Allocator {
public:
    virtual Device::Type type() const noexcept = 0;
    /// Why device_count() is 0, as in "there is no CUDA driver (error 35)"; empty if it is not.
    virtual std::string why_no_device() = 0;

    virtual std::unique_ptr<TableBackend> make_table(TableSpec const& spec, Device device) = 0;
    virtual CoordsBackend const& coords(Device device) = 0;
    /// The bytes that a new table takes; UINT64_MAX if the sum overflows.
    virtual std::uint64_t memory_for(TableSpec const& spec) const = 0;
    /// The distinct rows of an array of at least one element per row, on its device.
    virtual Unique unique(KeyRows rows, Element const& element, UniqueParts parts,
                          Device device) = 0;
    /// Groups rows by shard. A single shard takes all rows as they are. All is on `device`. The CPU
    /// takes the rules Hash and Given, other devices Hash and Mod.
    virtual std::unique_ptr<Routed> route(KeyRows keys, Element const& element, Sharding sharding,
                                          Device device) = 0;

    // Elements of arrays on `device`. A call that throws changes nothing.

    virtual void cast(Cast const& request, Device device) = 0;
    /// The numbers of the rows with a nonzero byte, as int64. Waits for their count.
    virtual Tensor true_rows(Bytes mask, std::uint64_t rows, Device device) = 0;
    /// Copies the picked rows of `from` to contiguous `to`. Waits; fail_row_number() says what is
    /// wrong.
    virtual void take(PickedRows const& picked, Bytes from, unsigned char* to, Device device) = 0;
    /// Copies contiguous rows to the picked rows of `to`; the last one of equal numbers wins.
    virtual void put(PickedRows const& picked, Bytes from, unsigned char* to, Device device) = 0;
    virtual void paste(Paste const& request, Device device) = 0;

    /// Frees memory that is kept for later allocations.
    virtual void release_cache(Device device) = 0;

protected:
    ~DeviceBackend() = default;
};

}  // namespace tensorhash::backend
