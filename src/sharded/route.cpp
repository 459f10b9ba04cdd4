// Asking the policy, and a stable counting sort by shard.
#include "sharded/route.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "map/results.hpp"
#include "runtime/parallel.hpp"
#include "table/rows.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/step/key.hpp"

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

/// Throws, naming the first row whose answer is no shard.
void require_shards(std::span<std::int32_t const> shard, std::size_t shards) {
    auto const is_wrong = [shards](std::int32_t at) {
        return static_cast<std::uint32_t>(at) >= shards;
    };
    std::atomic<bool> wrong{false};
    runtime::for_ranges(shard.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        // The largest of the range, without a branch a row; negative ones are large without their sign.
        std::uint32_t most = 0;
        for (std::size_t row = begin; row < end; ++row) {
            most = std::max(most, static_cast<std::uint32_t>(shard[row]));
        }
        if (most >= shards) {
            wrong.store(true, std::memory_order_relaxed);
        }
    });
    if (!wrong.load(std::memory_order_relaxed)) {
        return;
    }
    auto const first = std::find_if(shard.begin(), shard.end(), is_wrong);
    throw ValueError("policy: expected a shard of 0 to " + std::to_string(shards - 1) + ", got " +
                     std::to_string(*first) + " for row " + std::to_string(first - shard.begin()));
}

}  // namespace

Tensor shards_of(table::Batch const& keys, Element const& element, ShardPolicy const& policy,
                 std::size_t shards) {
    Tensor out = Tensor::zeros({static_cast<std::int64_t>(keys.rows)}, Dtype::Int32);
    auto const shard = out.as_mutable<std::int32_t>();
    Tensor const rows = canonical(keys.tensor.reshape(table::with_rows(keys.rows, element.shape)));
    policy.route(rows.as_read_only(), static_cast<int>(shards), shard);
    require_shards(shard, shards);
    return out;
}

template <class Fill>
void Routed::count(Fill&& fill) {
    auto const* const shard = static_cast<std::int32_t const*>(shard_.data());
    runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        fill(begin, end);
        Places counts{};  // chunks' counts share cache lines: counted here, left there once
        for (std::size_t row = begin; row < end; ++row) {
            ++counts[static_cast<std::size_t>(shard[row])];
        }
        places_[chunk] = counts;
    });
    std::size_t at = 0;
    for (std::size_t s = 0; s < shards(); ++s) {
        begins_[s] = at;
        for (Places& places : places_) {
            std::uint32_t const rows_here = places[s];
            places[s] = static_cast<std::uint32_t>(at);
            at += rows_here;
        }
    }
    begins_[shards()] = at;
}

Routed::Routed(Tensor shard_of_row, std::size_t shards)
    : begins_(shards + 1, 0),
      chunks_(runtime::cut(static_cast<std::size_t>(shard_of_row.size()), runtime::kGrain)),
      shard_(std::move(shard_of_row)), places_(chunks_.count) {
    count([](std::size_t, std::size_t) {});
}

Routed::Routed(table::Batch const& keys, Element const& element, ShardPolicy const& policy,
               std::size_t shards)
    : begins_(shards + 1, 0), chunks_(runtime::cut(keys.rows, runtime::kGrain)),
      places_(chunks_.count) {
    if (!is_hash_policy(policy)) {
        shard_ = shards_of(keys, element, policy, shards);
        count([](std::size_t, std::size_t) {});
        return;
    }
    // Our own rule needs no check and no canonical copy, and its answers are counted while they are warm.
    shard_ = Tensor::empty({static_cast<std::int64_t>(keys.rows)}, Dtype::Int32);
    auto* const shard = static_cast<std::int32_t*>(shard_.data());
    count([&](std::size_t begin, std::size_t end) {
        hash_shards(keys.data(), element, static_cast<int>(shards), begin, end, shard);
    });
}

runtime::Block Routed::grouped(unsigned char const* from, std::size_t row_bytes) const {
    if (shards() == 1) {
        return {};
    }
    runtime::Block rows_of_shards(rows() * row_bytes);
    unsigned char* const to = rows_of_shards.data();
    table::with_width(row_bytes, [&](auto width) {
        for_rows([&](std::size_t row, std::size_t, std::size_t place) {
            std::memcpy(to + place * width.bytes(), from + row * width.bytes(), width.bytes());
        });
    });
    return rows_of_shards;
}

RowOrder::RowOrder(Routed const& routed) : routed_(routed) {
    if (routed.shards() == 1) {
        return;
    }
    rows_ = runtime::Block(routed.rows() * sizeof(std::uint32_t));
    auto* const order = reinterpret_cast<std::uint32_t*>(rows_.data());
    routed.for_rows([&](std::size_t row, std::size_t, std::size_t place) {
        order[place] = static_cast<std::uint32_t>(row);
    });
}

}  // namespace tensorhash::sharded
