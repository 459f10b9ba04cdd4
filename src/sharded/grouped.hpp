// A batch while the shards work on it: rows grouped by shard, and the shards' answers. What a shard
// reads and writes lies on its device; the call routes on one device, that of the keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/routed.hpp"
#include "map/results.hpp"
#include "runtime/memory.hpp"
#include "tensorhash/sharded/sharded_map.hpp"

namespace tensorhash::sharded {

using backend::Answers;
using backend::Routed;
using map::CheckedBatch;

/// The device that routes a call, and the memory of each shard. All devices of the CPU share the
/// host's memory, Device{}.
struct Placement {
    Device at;
    std::span<Device const> memory;
};

/// Rows of bytes that are grouped by shard on `at`. Shards on other devices have copies of their
/// rows.
class GroupedRows {
public:
    GroupedRows(Routed const& routed, Placement const& placement, std::size_t row_bytes);

    /// The rows of all shards, on `at`.
    unsigned char* data() noexcept { return static_cast<unsigned char*>(all_.data()); }
    /// A shard's rows, on its device.
    unsigned char* of(std::size_t shard) const noexcept { return rows_[shard]; }
    /// Brings what was written to data() to the other devices.
    void send();
    /// Brings what the shards wrote to data().
    void collect();

private:
    struct Elsewhere {
        std::size_t begin;  // in bytes
        Tensor rows;
    };
    Device at_;
    Tensor all_;  // uint8
    std::vector<Elsewhere> elsewhere_;
    std::vector<unsigned char*> rows_;
};

/// The shards' answers, grouped like their rows, and memory for the answers in the caller's order:
/// after the shards have changed, the CPU needs no more memory.
class Grouped {
public:
    Grouped(Routed const& routed, Placement const& placement);
    /// Also allocates memory for located().
    static Grouped with_indices(Routed const& routed, Placement const& placement);

    Answers of(std::size_t shard) noexcept {
        return {reinterpret_cast<std::uint32_t*>(indices_.of(shard)), mask_of(shard)};
    }
    /// The answers of all shards in the caller's order, on `home`.
    ShardedLocated located(Device home);
    Tensor mask(Device home);

private:
    /// With one shard this is the caller's mask.
    unsigned char* mask_of(std::size_t shard) noexcept {
        return mask_ ? mask_->of(shard) : static_cast<unsigned char*>(out_.mask.data());
    }
    void ungroup(std::int64_t* global);

    Routed const& routed_;
    GroupedRows indices_;
    std::optional<GroupedRows> mask_;
    ShardedLocated out_;
};

/// The rows of a column, grouped by shard. With one shard these are the caller's rows.
class GroupedColumn {
public:
    GroupedColumn(Routed const& routed, Placement const& placement, CheckedBatch const& batch,
                  std::size_t bytes);
    backend::Bytes of(std::size_t shard) const noexcept {
        return grouped_ ? grouped_->of(shard) : whole_;
    }

private:
    std::optional<GroupedRows> grouped_;
    backend::Bytes whole_;
};

/// The caller's row for each row of a shard, on the CPU.
class RowOrder {
public:
    explicit RowOrder(Routed const& routed);
    /// Null with one shard: its rows are the caller's.
    std::uint32_t const* of(std::size_t shard) const noexcept {
        auto const* const rows = reinterpret_cast<std::uint32_t const*>(rows_.data());
        return rows == nullptr ? nullptr : rows + routed_.begin(shard);
    }

private:
    Routed const& routed_;
    runtime::Block rows_;
};

/// The value columns of a batch. Shards on the CPU read the caller's rows by their order; devices
/// get them grouped.
class GroupedValues {
public:
    GroupedValues(Routed const& routed, Placement const& placement, std::size_t columns);
    /// Takes the columns of a batch, which lie at `addresses`.
    void take(std::vector<CheckedBatch> const& batches, std::vector<backend::Bytes> addresses,
              std::vector<Element> const& elements);
    backend::ValueRows of(std::size_t shard) const noexcept;

private:
    Routed const& routed_;
    Placement placement_;
    std::optional<RowOrder> order_;
    std::vector<backend::Bytes> whole_;
    std::vector<std::vector<backend::Bytes>> parts_;  // by shard, on devices
    std::vector<GroupedColumn> grouped_;
};

/// Rows for absent keys where the shards read them: grouped, or one row for all.
class GroupedFill {
public:
    GroupedFill(Routed const& routed, Placement const& placement, map::FillRows const& fill,
                std::size_t bytes);
    backend::DefaultRows of(std::size_t shard) const noexcept;

private:
    std::optional<GroupedColumn> rows_;
    std::size_t step_ = 0;
    std::vector<Tensor> shared_;  // the one row, by shard
};

}  // namespace tensorhash::sharded
