// ShardedHashMap's calls that use the caller's memory: get values, export in chunks, replace all
// content.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "map/get.hpp"
#include "sharded/impl.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using backend::Answers;
using map::CheckedBatch;
using map::Reading;
using map::Writing;
using sharded::Grouped;
using sharded::GroupedColumn;

void ShardedHashMap::get_into(Tensor const& keys, std::vector<Tensor> const& defaults,
                              std::vector<void*> const& out, bool* found) const {
    CheckedBatch const batch = impl_->check_keys(keys);
    if (!impl_->is_on_cpu()) {
        ValuesAndMask const got = impl_->get_on_devices(batch, defaults);
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (out[i] != nullptr) {
                got.values[i].copy_to(out[i], batch.home);
            }
        }
        if (found != nullptr) {
            got.mask.copy_to(found, batch.home);
        }
        return;
    }
    map::Defaults const missing(impl_->values, defaults, batch.rows);
    Tensor const mask =
        impl_->gather_found(batch, [&](backend::TableBackend const& shard, backend::Gather rows) {
            for (std::size_t i = 0; i < out.size(); ++i) {
                if (out[i] != nullptr) {
                    missing.gather(shard, i, rows, out[i]);
                }
            }
        });
    if (found != nullptr && batch.rows > 0) {
        std::memcpy(found, mask.data(), batch.rows);
    }
}

void ShardedHashMap::replace(Tensor const& keys, std::vector<Tensor> const& values) {
    impl_->require_unbounded("replace");
    map::KeysAndValues batch = impl_->check(keys, values);
    batch.keys = impl_->own(std::move(batch.keys));
    sharded::Tables tables;
    {
        Reading const guard = impl_->reading();
        for (auto const& shard : impl_->tables) {
            tables.push_back(shard->make_empty());
        }
    }
    // Fills new shards and swaps them in: failures change nothing, readers wait only for the swap.
    Impl made(impl_->key, impl_->values, impl_->devices, impl_->policy, std::move(tables));
    auto const routed = made.route(batch.keys);
    made.write(*routed, std::move(batch),
               [](backend::KeyRows rows, backend::ValueRows columns, Answers out) {
                   return backend::InsertOrAssign{rows, columns, out};
               });
    Writing const guard = impl_->writing();
    std::swap(impl_->tables, made.tables);
}

namespace {

/// The entries of one shard that an export copies.
struct Part {
    std::size_t shard;
    std::vector<std::int32_t> indices;
};

/// Fills `indices` with live indices from `begin` on; it becomes shorter if there are fewer.
void list_from(backend::TableBackend const& table, std::uint64_t begin,
               std::vector<std::int32_t>& indices) {
    Device const device = map::device_of(table);
    if (device.is_cpu()) {
        indices.resize(table.list(begin, indices.size(), indices.data()));
        return;
    }
    Tensor there = Tensor::empty(with_rows(indices.size(), {}), Dtype::Int32, device);
    std::size_t const count =
        table.list(begin, indices.size(), static_cast<std::int32_t*>(there.data()));
    there.written_by(current_stream(device));
    there.copy_to(indices.data(), Device{});
    indices.resize(count);
}

/// The first entries with begin <= global index < end, shard by shard, at most `limit`.
std::vector<Part> parts_from(sharded::Tables const& tables, std::int64_t begin, std::int64_t end,
                             std::uint64_t limit) {
    std::vector<Part> parts;
    for (auto shard = static_cast<std::size_t>(begin >> 32); shard < tables.size() && limit > 0;
         ++shard) {
        std::int64_t const first = global_index(static_cast<std::int64_t>(shard), 0);
        if (end <= first) {
            break;
        }
        auto const from = static_cast<std::uint64_t>(std::max<std::int64_t>(begin - first, 0));
        std::uint64_t const entries = tables[shard]->sizes().entries;
        Part part{shard, std::vector<std::int32_t>(std::min(limit, entries))};
        list_from(*tables[shard], from, part.indices);
        while (!part.indices.empty() && part.indices.back() >= end - first) {
            part.indices.pop_back();
        }
        limit -= part.indices.size();
        if (!part.indices.empty()) {
            parts.push_back(std::move(part));
        }
    }
    return parts;
}

/// Calls gather(shard, rows, to) for every part; the parts follow each other at `to`.
template <class GatherRows>
void copy_parts(sharded::Tables const& tables, void* to, std::size_t row_bytes,
                std::vector<Part> const& parts, GatherRows&& gather) {
    auto* at = static_cast<unsigned char*>(to);
    for (Part const& part : parts) {
        std::size_t const rows = part.indices.size();
        Device const device = map::device_of(*tables[part.shard]);
        Tensor const indices =
            map::on_device(Tensor::borrow(static_cast<void const*>(part.indices.data()),
                                          with_rows(rows, {}), Dtype::Int32),
                           device);
        backend::Gather const which{static_cast<std::uint32_t const*>(indices.data()), rows};
        if (device.is_cpu()) {
            gather(part.shard, which, at);
        } else {
            Tensor there = Tensor::empty(with_rows(rows * row_bytes, {}), Dtype::UInt8, device);
            gather(part.shard, which, there.data());
            there.written_by(current_stream(device));
            there.copy_to(at, Device{});
        }
        at += rows * row_bytes;
    }
}

}  // namespace

std::int64_t ShardedHashMap::export_from(
    std::int64_t begin, std::int64_t end, std::int64_t limit,
    std::function<ShardedRoom(std::int64_t rows)> const& make_room) const {
    if (begin < 0 || end < begin || limit < 1) {
        throw ValueError(
            "begin, end, limit: expected 0 <= begin <= end and a limit of at least 1, got " +
            std::to_string(begin) + ", " + std::to_string(end) + " and " + std::to_string(limit));
    }
    Reading const guard = impl_->reading();
    sharded::Tables const& tables = impl_->tables;
    std::vector<Part> const parts =
        parts_from(tables, begin, end, static_cast<std::uint64_t>(limit));
    std::int64_t rows = 0;
    for (Part const& part : parts) {
        rows += static_cast<std::int64_t>(part.indices.size());
    }
    ShardedRoom const room = make_room(rows);
    if (room.keys != nullptr) {
        copy_parts(tables, room.keys, impl_->key.bytes(), parts,
                   [&](std::size_t shard, backend::Gather const& gather, void* to) {
                       tables[shard]->gather_keys(gather, to);
                   });
    }
    for (std::size_t i = 0; i < impl_->values.size() && i < room.values.size(); ++i) {
        if (room.values[i] != nullptr) {
            copy_parts(tables, room.values[i], impl_->values[i].bytes(), parts,
                       [&](std::size_t shard, backend::Gather const& gather, void* to) {
                           tables[shard]->gather(i, gather, to);
                       });
        }
    }
    std::int64_t* at = room.indices;
    for (std::size_t i = 0; at != nullptr && i < parts.size(); ++i) {
        for (std::int32_t const local : parts[i].indices) {
            *at++ = global_index(static_cast<std::int64_t>(parts[i].shard), local);
        }
    }
    if (rows < limit) {
        return -1;
    }
    std::int64_t const next =
        global_index(static_cast<std::int64_t>(parts.back().shard), parts.back().indices.back()) +
        1;
    return parts_from(tables, next, end, 1).empty() ? -1 : next;
}

}  // namespace tensorhash
