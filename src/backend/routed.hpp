// Routed: a batch on its way to several tables and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/batch.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::backend {

/// How rows find their shards.
enum class ShardRule : unsigned char {
    Hash,   // the hash of hash_policy()
    Mod,    // the remainder of mod_policy(), for keys of one integer
    Given,  // a policy has already chosen
};

struct Sharding {
    std::size_t shards = 1;
    ShardRule rule = ShardRule::Hash;
    Tensor shard_of_row = {};  // int32 [rows], for ShardRule::Given
};

/// Rows grouped by shard, in row order within each shard, so that a batch acts as if in order.
class Routed {
public:
    virtual ~Routed() = default;

    std::size_t rows() const noexcept { return begins_.back(); }
    std::size_t shards() const noexcept { return begins_.size() - 1; }
    /// A shard's rows among the grouped rows.
    std::size_t begin(std::size_t shard) const noexcept { return begins_[shard]; }
    std::size_t rows(std::size_t shard) const noexcept {
        return begins_[shard + 1] - begins_[shard];
    }

    /// Copies the caller's rows into groups. With one shard, they already are one group.
    virtual void group(Bytes from, std::size_t row_bytes, unsigned char* to) const = 0;
    /// Writes the caller's row of each grouped row.
    virtual void list_rows(std::uint32_t* to) const = 0;
    /// Brings the shards' results back to the caller's rows: `indices` become shard << 32 | index;
    /// -1 stays. `indices` may be null if they are not wanted; with one shard also `mask`.
    virtual void ungroup(Answers const& grouped, std::int64_t* indices,
                         unsigned char* mask) const noexcept = 0;

    /// Brings grouped rows back to the caller's rows.
    virtual void ungroup_rows(Bytes grouped, std::size_t row_bytes, unsigned char* to) const = 0;

protected:
    explicit Routed(std::vector<std::size_t> begins) : begins_(std::move(begins)) {}

    std::vector<std::size_t> begins_;  // [shards + 1]
};

}  // namespace tensorhash::backend
