// Routed: groups a batch by shard on a device, with a stable sort. It keeps the order of the rows
// for the way back.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/routed.hpp"
#include "device/array.hpp"
#include "device/keys.hpp"
#include "device/queue.hpp"
#include "device/route.hpp"
#include "device/values.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::device {

inline ShardBy shard_by(backend::Sharding const& sharding, Element const& key) {
    if (sharding.rule == backend::ShardRule::Hash) {
        return ShardBy::Hash;
    }
    if (sharding.rule == backend::ShardRule::Given) {
        throw DeviceError("policy: tables on a device route by \"hash\" or \"mod\"");
    }
    bool const is_unsigned = key.dtype == Dtype::UInt8 || key.dtype == Dtype::UInt16 ||
                             key.dtype == Dtype::UInt32 || key.dtype == Dtype::UInt64;
    return is_unsigned ? ShardBy::Unsigned : ShardBy::Signed;
}

template <class Queue>
class Routed final : public backend::Routed {
public:
    /// Waits once, for the number of rows of each shard; not if there is one shard, which takes all
    /// rows as they are, or no row.
    Routed(Queue& queue, backend::KeyRows const& keys, Element const& key,
           backend::Sharding const& sharding)
        : backend::Routed({0, keys.rows}), queue_(&queue) {
        std::uint32_t const rows = to_rows(keys.rows);
        if (sharding.shards == 1) {
            return;
        }
        ShardBy const by = shard_by(sharding, key);
        auto const shards = static_cast<std::uint32_t>(sharding.shards);
        if (rows == 0) {
            begins_.assign(shards + 1, 0);
            return;
        }
        shard_ = {queue, rows};
        order_ = {queue, rows};
        list_shards(keys, format_of(key), by, shards);
        Array<Queue, unsigned char> const scratch(queue, queue.sort_bytes(rows));
        queue.sort_pairs(shard_.data(), order_.data(), rows,
                         static_cast<int>(std::bit_width(shards - 1)), scratch.data(),
                         scratch.bytes());
        Array<Queue, std::uint32_t> const begins(queue, shards + 1);
        queue.launch(std::uint64_t{rows} + 1,
                     FindBegins{shard_.data(), begins.data(), shards, rows});
        std::vector<std::uint32_t> read(begins.size());
        queue.read_back(read.data(), begins.data(), begins.bytes());
        begins_.assign(read.begin(), read.end());
    }

    void group(backend::Bytes from, std::size_t row_bytes, unsigned char* to) const override {
        PieceGrid const grid{rows(), row_bytes, piece_of(row_bytes, from, to)};
        queue_->launch(grid.size(), GatherRows{from, order_.data(), nullptr, nullptr, 0, to, grid});
    }
    void list_rows(std::uint32_t* to) const override {
        queue_->copy(to, order_.data(), order_.bytes(), Copy::Within);
    }
    void ungroup(backend::Answers const& grouped, std::int64_t* indices,
                 unsigned char* mask) const noexcept override {
        queue_->launch(rows(),
                       UngroupRows{grouped.indices, grouped.mask, shard_.data(), order_.data(),
                                   indices, mask, static_cast<std::uint32_t>(rows())});
    }
    void ungroup_rows(backend::Bytes grouped, std::size_t row_bytes,
                      unsigned char* to) const override {
        PieceGrid const grid{rows(), row_bytes, piece_of(row_bytes, grouped, to)};
        queue_->launch(grid.size(),
                       GatherRows{grouped, nullptr, order_.data(), nullptr, 0, to, grid});
    }

private:
    void list_shards(backend::KeyRows const& keys, step::KeyFormat format, ShardBy by,
                     std::uint32_t shards) {
        Array<Queue, unsigned char> copy;
        unsigned char const* const rows = aligned_keys(*queue_, keys, format, copy);
        auto const count = static_cast<std::uint32_t>(keys.rows);
        with_reader(format, [&](auto tag) {
            using Reader = typename decltype(tag)::type;
            queue_->launch(count, ShardRows<Reader>{rows, format, by, shards, shard_.data(),
                                                    order_.data(), count});
        });
    }

    Queue* queue_;
    Array<Queue, std::uint32_t> shard_;  // of each grouped row
    Array<Queue, std::uint32_t> order_;  // the caller's row of each grouped row
};

}  // namespace tensorhash::device
