// ShardedMap's calls that work in the caller's memory: values out, everything out in chunks,
// everything replaced.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "map/get.hpp"
#include "sharded/grouped.hpp"
#include "sharded/impl.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using sharded::Grouped;
using sharded::GroupedColumn;
using sharded::Routed;
using table::Answers;
using table::Batch;
using table::Reading;
using table::Writing;

void ShardedMap::get_into(Tensor const& keys, std::vector<Tensor> const& defaults,
                          std::vector<void*> const& out, bool* found) const {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    table::Defaults const missing(impl_->values, defaults, batch.rows);
    Routed const routed = impl_->route(batch);
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    sharded::RowOrder const order(routed);
    Grouped answers(routed);
    Reading guard(impl_->lock);
    impl_->each_shard([&](std::size_t shard) {
        table::Table const& here = impl_->tables[shard];
        Answers const at = answers.of(shard);
        here.find(rows.from(routed.begin(shard)), routed.rows(shard), at);
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (out[i] != nullptr) {
                missing.gather_part(here, i, at.numbers, order.of(shard), routed.rows(shard),
                                    out[i]);
            }
        }
    });
    guard.unlock();
    if (found != nullptr && batch.rows > 0) {
        std::memcpy(found, answers.mask().data(), batch.rows);
    }
}

void ShardedMap::replace(Tensor const& keys, std::vector<Tensor> const& values) {
    impl_->require_unbounded("replace");
    Batch const batch = impl_->own(table::check_batch(keys, impl_->key, "keys"));
    std::vector<Batch> const columns = table::check_values(values, impl_->values, batch.rows);
    std::vector<Reduce> const last(impl_->values.size(), Reduce::Last);
    std::vector<table::Table> tables;
    {
        Reading const guard(impl_->lock);
        for (table::Table const& shard : impl_->tables) {
            tables.emplace_back(impl_->key, impl_->values, shard.capacity(), shard.seed());
        }
    }
    // Shards of its own, swapped in when they are whole: a failure costs nothing, and readers wait
    // for the swap only.
    Impl made(impl_->key, impl_->values, impl_->devices, impl_->policy, std::move(tables));
    made.add(made.route(batch), batch, columns, &last);
    Writing const guard(impl_->lock);
    std::swap(impl_->tables, made.tables);
}

namespace {

/// The entries of one shard that an export copies.
struct Part {
    std::size_t shard;
    std::vector<std::int32_t> indices;
};

/// The first entries of `tables` at begin <= index < end, shard by shard, at most `limit`.
std::vector<Part> parts_from(std::vector<table::Table> const& tables, std::int64_t begin,
                             std::int64_t end, std::uint64_t limit) {
    std::vector<Part> parts;
    for (auto shard = static_cast<std::size_t>(begin >> 32); shard < tables.size() && limit > 0;
         ++shard) {
        std::int64_t const first = global_index(static_cast<std::int64_t>(shard), 0);
        if (end <= first) {
            break;
        }
        auto const from = static_cast<std::uint64_t>(std::max<std::int64_t>(begin - first, 0));
        std::uint64_t const size = tables[shard].size();
        Part part{shard, {}};
        if (from == 0 && limit >= size) {
            part.indices.resize(size);
            tables[shard].list(part.indices.data());
        } else {
            part.indices = table::live_from(tables[shard].live(), from, std::min(limit, size));
        }
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

/// Copies one column's rows of all parts to `to`, one part behind the other.
template <class ColumnOf>
void copy_parts(void* to, std::vector<Part> const& parts, ColumnOf&& column_of) {
    auto* at = static_cast<unsigned char*>(to);
    for (Part const& part : parts) {
        table::Column const& column = column_of(part.shard);
        table::gather_rows(at, column.block->data(), column.row_bytes,
                           reinterpret_cast<std::uint32_t const*>(part.indices.data()),
                           part.indices.size());
        at += part.indices.size() * column.row_bytes;
    }
}

}  // namespace

std::int64_t ShardedMap::export_from(
    std::int64_t begin, std::int64_t end, std::int64_t limit,
    std::function<ShardedRoom(std::int64_t rows)> const& make_room) const {
    if (begin < 0 || end < begin || limit < 1) {
        throw ValueError(
            "begin, end, limit: expected 0 <= begin <= end and a limit of at least 1, got " +
            std::to_string(begin) + ", " + std::to_string(end) + " and " + std::to_string(limit));
    }
    Reading const guard(impl_->lock);
    std::vector<table::Table> const& tables = impl_->tables;
    std::vector<Part> const parts =
        parts_from(tables, begin, end, static_cast<std::uint64_t>(limit));
    std::int64_t rows = 0;
    for (Part const& part : parts) {
        rows += static_cast<std::int64_t>(part.indices.size());
    }
    ShardedRoom const room = make_room(rows);
    if (room.keys != nullptr) {
        copy_parts(room.keys, parts,
                   [&](std::size_t shard) -> table::Column const& { return tables[shard].keys(); });
    }
    for (std::size_t i = 0; i < impl_->values.size() && i < room.values.size(); ++i) {
        if (room.values[i] != nullptr) {
            copy_parts(room.values[i], parts, [&](std::size_t shard) -> table::Column const& {
                return tables[shard].values()[i];
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
