// The counting sort by shard, and the way back to the caller's order.
#include "table/route.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "cpu/shard_hash.hpp"
#include "runtime/scan.hpp"
#include "table/rows.hpp"

namespace tensorhash::table {

template <class Body>
void CpuRouted::for_rows(Body&& body) const {
    runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        if (shards() == 1) {
            for (std::size_t row = begin; row < end; ++row) {
                body(row, std::size_t{0}, row);
            }
            return;
        }
        auto const* const shard_of_row = static_cast<std::int32_t const*>(shard_.data());
        Places next;
        std::copy_n(places_.data() + chunk * shards(), shards(), next.data());
        for (std::size_t row = begin; row < end; ++row) {
            auto const shard = static_cast<std::size_t>(shard_of_row[row]);
            body(row, shard, std::size_t{next[shard]++});
        }
    });
}

template <class FillShards>
void CpuRouted::count(FillShards&& fill_shards) {
    auto const* const shard = static_cast<std::int32_t const*>(shard_.data());
    runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        fill_shards(begin, end);
        Places counts{};  // local, since neighbouring chunks' counts share cache lines
        for (std::size_t row = begin; row < end; ++row) {
            ++counts[static_cast<std::size_t>(shard[row])];
        }
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
    with_width(row_bytes, [&](auto width) {
        for_rows([&](std::size_t row, std::size_t, std::size_t place) {
            std::memcpy(to + place * width.bytes(), from + row * width.bytes(), width.bytes());
        });
    });
}

void CpuRouted::list_rows(std::uint32_t* to) const {
    for_rows([&](std::size_t row, std::size_t, std::size_t place) {
        to[place] = static_cast<std::uint32_t>(row);
    });
}

void CpuRouted::ungroup(backend::Answers const& grouped, std::int64_t* indices,
                        unsigned char* mask) const noexcept {
    auto const global = [&](std::size_t shard, std::size_t place) {
        auto const local = static_cast<std::int32_t>(grouped.indices[place]);
        return local < 0 ? -1 : static_cast<std::int64_t>(shard) << 32 | std::int64_t{local};
    };
    // One loop per case keeps the choice out of the loop.
    if (indices == nullptr) {
        for_rows([&](std::size_t row, std::size_t, std::size_t place) {
            mask[row] = grouped.mask[place];
        });
    } else if (mask == nullptr) {
        for_rows([&](std::size_t row, std::size_t shard, std::size_t place) {
            indices[row] = global(shard, place);
        });
    } else {
        for_rows([&](std::size_t row, std::size_t shard, std::size_t place) {
            indices[row] = global(shard, place);
            mask[row] = grouped.mask[place];
        });
    }
}

void CpuRouted::ungroup_rows(backend::Bytes grouped, std::size_t row_bytes,
                             unsigned char* to) const {
    with_width(row_bytes, [&](auto width) {
        for_rows([&](std::size_t row, std::size_t, std::size_t place) {
            std::memcpy(to + row * width.bytes(), grouped + place * width.bytes(), width.bytes());
        });
    });
}

}  // namespace tensorhash::table
