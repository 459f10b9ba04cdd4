// The counting sort by shard, and the way back to the caller's order.
#include "table/route.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "cpu/shard_hash.hpp"
#include "runtime/memory.hpp"
#include "runtime/scan.hpp"
#include "table/rows.hpp"

namespace tensorhash::table {

namespace {

/// Calls body(row, place) for the rows of the chunk.
template <class Body>
void for_rows(cpu::ShardedChunk const& chunk, Body&& body) {
    for (std::size_t row = chunk.begin; row < chunk.end; ++row) {
        body(row, std::size_t{chunk.next[chunk.shard_of_row[row]]++});
    }
}

}  // namespace

void group_rows(cpu::ShardedChunk const& chunk, backend::Bytes from, std::size_t row_bytes,
                unsigned char* to) {
    if (row_bytes == 8) {
        cpu::route_loops().group_words(chunk, from, to);
        return;
    }
    with_width(row_bytes, [&](auto width) {
        for_rows(chunk, [&](std::size_t row, std::size_t place) {
            std::memcpy(to + place * width.bytes(), from + row * width.bytes(), width.bytes());
        });
    });
}

template <class Body>
void CpuRouted::for_sorted(Body&& body) const {
    auto const* const shard_of_row = static_cast<std::int32_t const*>(shard_.data());
    runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        Places next;
        std::copy_n(places_.data() + chunk * shards(), shards(), next.data());
        body(cpu::ShardedChunk{shard_of_row, begin, end, static_cast<std::uint32_t>(shards()),
                               next.data()});
    });
}

template <class FillShards>
void CpuRouted::count(FillShards&& fill_shards) {
    auto const* const shard = static_cast<std::int32_t const*>(shard_.data());
    runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        fill_shards(begin, end);
        Places counts{};  // local, since neighbouring chunks' counts share cache lines
        cpu::route_loops().count(
            {shard, begin, end, static_cast<std::uint32_t>(shards()), counts.data()});
        std::copy_n(counts.data(), shards(), places_.data() + chunk * shards());
    });
    runtime::scan_groups(std::span(places_), shards());
    if (!places_.empty()) {
        std::copy_n(places_.data(), shards(), begins_.data());
    }
    begins_[shards()] = static_cast<std::size_t>(shard_.size());
}

CpuRouted::CpuRouted(Tensor shard_of_row, std::size_t shards)
    : Routed(std::vector<std::size_t>(shards + 1, 0)),
      chunks_(runtime::cut(static_cast<std::size_t>(shard_of_row.size()), runtime::kGrain)),
      shard_(std::move(shard_of_row)), places_(chunks_.count * shards) {
    count([](std::size_t, std::size_t) {});
}

/// The built-in hash needs no check and no canonical copy. Its shards are counted while they are
/// still in the cache.
CpuRouted::CpuRouted(backend::KeyRows keys, Element const& element, std::size_t shards)
    : Routed(std::vector<std::size_t>(shards + 1, 0)),
      chunks_(runtime::cut(keys.rows, runtime::kGrain)),
      shard_(Tensor::empty({static_cast<std::int64_t>(keys.rows)}, Dtype::Int32)),
      places_(chunks_.count * shards) {
    auto* const shard = static_cast<std::int32_t*>(shard_.data());
    count([&](std::size_t begin, std::size_t end) {
        cpu::hash_shards(keys.data, element, static_cast<int>(shards), begin, end, shard);
    });
}

void CpuRouted::group(backend::Bytes from, std::size_t row_bytes, unsigned char* to) const {
    if (shards() == 1) {
        runtime::copy_bytes(to, from, rows() * row_bytes);
        return;
    }
    for_sorted([&](cpu::ShardedChunk const& chunk) { group_rows(chunk, from, row_bytes, to); });
}

void CpuRouted::list_rows(std::uint32_t* to) const {
    if (shards() == 1) {
        std::iota(to, to + rows(), std::uint32_t{0});
        return;
    }
    for_sorted([&](cpu::ShardedChunk const& chunk) { cpu::route_loops().list(chunk, to); });
}

void CpuRouted::ungroup(backend::Answers const& grouped, std::int64_t* indices,
                        unsigned char* mask) const noexcept {
    if (shards() == 1) {
        ungroup_one(grouped, indices, mask);
        return;
    }
    cpu::RouteLoops const& loops = cpu::route_loops();
    for_sorted([&](cpu::ShardedChunk const& chunk) {
        if (indices != nullptr) {
            loops.ungroup(chunk, {grouped.indices, grouped.mask}, indices, mask);
        } else {
            loops.ungroup_mask(chunk, grouped.mask, mask);
        }
    });
}

/// A single shard has the caller's rows.
void CpuRouted::ungroup_one(backend::Answers const& grouped, std::int64_t* indices,
                            unsigned char* mask) const noexcept {
    runtime::for_chunks(chunks_, [&](std::size_t, std::size_t begin, std::size_t end) {
        if (indices != nullptr) {
            std::transform(grouped.indices + begin, grouped.indices + end, indices + begin,
                           [](std::uint32_t local) { return static_cast<std::int32_t>(local); });
        }
        if (mask != nullptr) {
            std::copy(grouped.mask + begin, grouped.mask + end, mask + begin);
        }
    });
}

void CpuRouted::ungroup_rows(backend::Bytes grouped, std::size_t row_bytes,
                             unsigned char* to) const {
    if (shards() == 1) {
        runtime::copy_bytes(to, grouped, rows() * row_bytes);
        return;
    }
    with_width(row_bytes, [&](auto width) {
        for_sorted([&](cpu::ShardedChunk const& chunk) {
            for_rows(chunk, [&](std::size_t row, std::size_t place) {
                std::memcpy(to + row * width.bytes(), grouped + place * width.bytes(),
                            width.bytes());
            });
        });
    });
}

}  // namespace tensorhash::table
