// A batch on its way to the shards and back: whose row is whose, rows grouped by shard, answers in the caller's order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "map/arguments.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/sharded/policy.hpp"

namespace tensorhash::sharded {

/// int32 [N]: each row's shard. Asks the policy, and throws ValueError, naming the row, if an answer is no shard.
Tensor shards_of(table::Batch const& keys, Element const& element, ShardPolicy const& policy,
                 std::size_t shards);

/// Whether it is hash_policy().
bool is_hash_policy(ShardPolicy const& policy) noexcept;
/// What hash_policy() gives for rows [begin, end) of keys of this element.
void hash_shards(unsigned char const* keys, Element const& element, int shards, std::size_t begin,
                 std::size_t end, std::int32_t* shard) noexcept;

/// Rows grouped by shard, within a shard in row order: that order is what keeps a batch as if in order. A stable counting
/// sort whose counts are kept: any pass over the caller's rows can tell where each of them went.
class Routed {
public:
    /// All rows to the only shard: there is nothing to group.
    explicit Routed(std::size_t rows)
        : begins_{0, rows}, chunks_(runtime::cut(rows, runtime::kGrain)) {}
    Routed(Tensor shard_of_row, std::size_t shards);
    /// Asks the policy, like shards_of(), and counts on the way.
    Routed(table::Batch const& keys, Element const& element, ShardPolicy const& policy,
           std::size_t shards);

    std::size_t rows() const noexcept { return begins_.back(); }
    std::size_t begin(std::size_t shard) const noexcept { return begins_[shard]; }
    std::size_t rows(std::size_t shard) const noexcept {
        return begins_[shard + 1] - begins_[shard];
    }
    std::size_t shards() const noexcept { return begins_.size() - 1; }

    /// Calls body(row, shard, place) for the caller's rows, in parallel: row `row` is at `place` of the grouped rows. Each
    /// thread has neighbouring rows, so that what it writes for them shares no cache line with another's.
    template <class Body>
    void for_rows(Body&& body) const {
        runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            if (shards() == 1) {
                for (std::size_t row = begin; row < end; ++row) {
                    body(row, std::size_t{0}, row);
                }
                return;
            }
            auto const* const shard_of_row = static_cast<std::int32_t const*>(shard_.data());
            Places next = places_[chunk];
            for (std::size_t row = begin; row < end; ++row) {
                auto const shard = static_cast<std::size_t>(shard_of_row[row]);
                body(row, shard, std::size_t{next[shard]++});
            }
        });
    }

    /// A copy of the rows, grouped; an empty block if they are as the caller has them.
    runtime::Block grouped(unsigned char const* from, std::size_t row_bytes) const;

private:
    using Places = std::array<std::uint32_t, runtime::kMaxDevices>;

    /// Counts each chunk's rows by shard after `fill(begin, end)` has made their shards known, then turns counts into places.
    template <class Fill>
    void count(Fill&& fill);

    std::vector<std::size_t> begins_;
    runtime::Chunks chunks_;
    Tensor shard_;                // int32 [rows]; none if there is one shard
    std::vector<Places> places_;  // of each chunk: where its first row of each shard goes
};

/// The caller's row for each row of a shard, for those who go through a shard's rows and need the caller's.
class RowOrder {
public:
    explicit RowOrder(Routed const& routed);
    /// Null if the shard's rows are the caller's.
    std::uint32_t const* of(std::size_t shard) const noexcept {
        auto const* const rows = reinterpret_cast<std::uint32_t const*>(rows_.data());
        return rows == nullptr ? nullptr : rows + routed_.begin(shard);
    }

private:
    Routed const& routed_;
    runtime::Block rows_;
};

}  // namespace tensorhash::sharded
