// Asking the policy, and a stable counting sort by shard.
#include "sharded/route.hpp"

#include <string>

#include "runtime/parallel.hpp"
#include "table/results.hpp"
#include "table/rows.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/kernel/key.hpp"

namespace tensorhash::sharded {
namespace {

/// Float keys without -0 and with one NaN, so that no policy can part keys that are equal.
Tensor canonical(Tensor const& keys) {
    if (keys.dtype() != Dtype::Float32 && keys.dtype() != Dtype::Float64) {
        return keys;
    }
    Tensor copy = keys.clone();
    auto const elements = static_cast<std::size_t>(copy.size());
    bool const wide = copy.dtype() == Dtype::Float64;
    runtime::for_ranges(elements, 1 << 16, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (wide) {
                auto* const bits = static_cast<std::uint64_t*>(copy.data()) + i;
                *bits = kernel::canonical_double(*bits);
            } else {
                auto* const bits = static_cast<std::uint32_t*>(copy.data()) + i;
                *bits = kernel::canonical_float(*bits);
            }
        }
    });
    return copy;
}

}  // namespace

Tensor shards_of(table::Batch const& keys, Element const& element, ShardPolicy const& policy,
                 std::size_t shards) {
    Tensor out = Tensor::zeros({static_cast<std::int64_t>(keys.rows)}, Dtype::Int32);
    auto const shard = out.as_mutable<std::int32_t>();
    Tensor const rows = canonical(keys.tensor.reshape(table::with_rows(keys.rows, element.shape)));
    policy.route(rows.as_read_only(), static_cast<int>(shards), shard);
    for (std::size_t row = 0; row < shard.size(); ++row) {
        if (shard[row] < 0 || shard[row] >= static_cast<std::int32_t>(shards)) {
            throw ValueError("policy: expected a shard of 0 to " + std::to_string(shards - 1) +
                             ", got " + std::to_string(shard[row]) + " for row " +
                             std::to_string(row));
        }
    }
    return out;
}

Routed::Routed(Tensor const& shard_of_row, std::size_t shards)
    : begins_(shards + 1, 0),
      order_(static_cast<std::size_t>(shard_of_row.size()) * sizeof(std::uint32_t)) {
    auto const shard = shard_of_row.as<std::int32_t>();
    runtime::Chunks const chunks = runtime::cut(shard.size(), runtime::kGrain);
    // next[chunk * shards + shard]: first how many, then where the chunk's rows of the shard go.
    std::vector<std::size_t> next(chunks.count * shards, 0);
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            ++next[chunk * shards + static_cast<std::size_t>(shard[row])];
        }
    });
    std::size_t at = 0;
    for (std::size_t s = 0; s < shards; ++s) {
        begins_[s] = at;
        for (std::size_t chunk = 0; chunk < chunks.count; ++chunk) {
            std::size_t const count = next[chunk * shards + s];
            next[chunk * shards + s] = at;
            at += count;
        }
    }
    begins_[shards] = at;
    auto* const order = reinterpret_cast<std::uint32_t*>(order_.data());
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            order[next[chunk * shards + static_cast<std::size_t>(shard[row])]++] =
                static_cast<std::uint32_t>(row);
        }
    });
}

runtime::Block Routed::grouped(unsigned char const* from, std::size_t row_bytes) const {
    runtime::Block rows_of_shards(rows() * row_bytes);
    table::gather_rows(rows_of_shards.data(), from, row_bytes, order(), rows());
    return rows_of_shards;
}

}  // namespace tensorhash::sharded
