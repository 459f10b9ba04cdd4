// DeviceBackend: what tensorhash needs of one type of device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/batch.hpp"
#include "backend/routed.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/unique.hpp"

namespace tensorhash::backend {

class TableBackend;
class CoordsBackend;

/// A queue of work on a device. A null handle is the device's default stream. On the CPU a call is
/// done when it returns, so the CPU has no other stream.
struct Stream {
    void* handle = nullptr;
};
/// A point in a stream's work.
using Event = std::shared_ptr<void>;

/// What a table is made of.
struct TableSpec {
    Element const& key;
    std::vector<Element> const& values;
    std::uint64_t capacity = 0;
    std::optional<std::uint64_t> seed = {};  // if absent, the table draws one
};

/// Back ends live as long as the process.
class DeviceBackend {
public:
    /// Allocation and copies within a device; Tensor uses the same.
    virtual Allocator& memory() noexcept = 0;
    /// Copies between two devices, one of them this back end's.
    virtual void copy(void* to, Device to_device, void const* from, Device from_device,
                      std::size_t bytes) = 0;

    /// Marks the end of the work that `stream` has so far.
    virtual Event record(Stream stream) = 0;
    /// Makes later work of `stream` wait for `event`.
    virtual void wait(Stream stream, Event const& event) = 0;
    /// Returns when the work of `stream` is done.
    virtual void synchronize(Stream stream) = 0;

    virtual std::unique_ptr<TableBackend> make_table(TableSpec const& spec, Device device) = 0;
    virtual CoordsBackend const& coords() = 0;
    /// The bytes that a new table takes; UINT64_MAX if the sum overflows.
    virtual std::uint64_t memory_for(TableSpec const& spec) const = 0;
    /// The distinct rows of an array of at least one element per row.
    virtual Unique unique(KeyRows rows, Element const& element, UniqueParts parts) = 0;
    /// Groups rows by shard. `shard_of_row`, int32 [rows], gives the shards; without it the hash of
    /// hash_policy() decides. A single shard takes all rows as they are.
    virtual std::unique_ptr<Routed> route(KeyRows keys, Element const& element, std::size_t shards,
                                          Tensor shard_of_row) = 0;

protected:
    ~DeviceBackend() = default;
};

}  // namespace tensorhash::backend
