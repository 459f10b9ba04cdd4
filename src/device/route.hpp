// Bodies that send rows to shards and bring results back.
#pragma once

#include "device/grid.hpp"
#include "tensorhash/step/bucket.hpp"
#include "tensorhash/step/shard.hpp"

namespace tensorhash::device {

/// How a key chooses its shard.
enum class ShardBy : unsigned char { Hash, Signed, Unsigned };

/// Writes the shard of each row, and the row: what the sort by shard takes.
template <class Reader>
struct ShardRows {
    using Shared = NoShared;
    unsigned char const* keys;
    step::KeyFormat format;
    ShardBy by;  // only narrow keys are integers
    std::uint32_t shards;
    std::uint32_t* shard;
    std::uint32_t* order;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        Reader const reader(format);
        for_rows(rows, [&](std::uint64_t row) {
            shard[row] = shard_of(reader, row);
            order[row] = static_cast<std::uint32_t>(row);
        });
    }

private:
    TH_STEP std::uint32_t shard_of(Reader const& reader, std::uint64_t row) const {
        if constexpr (Reader::kNarrow) {
            if (by != ShardBy::Hash) {
                return step::shard_of_integer(reader.word(keys, row), format.bytes,
                                              by == ShardBy::Signed, shards);
            }
        }
        return step::shard_of_hash(step::shard_hash(reader, format.bytes, keys, row), shards);
    }
};

/// begins[s] becomes the first of the sorted rows of shard s or of a later shard. One thread per
/// row and one for the end.
struct FindBegins {
    using Shared = NoShared;
    std::uint32_t const* shard;  // of each row, ascending
    std::uint32_t* begins;       // [shards + 1]
    std::uint32_t shards;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        // A copy: else clang chooses between two addresses, and one is that of a kernel parameter.
        std::uint32_t const end = shards;
        for_rows(std::uint64_t{rows} + 1, [&](std::uint64_t row) {
            std::uint32_t const first = row == 0 ? 0 : shard[row - 1] + 1;
            std::uint32_t const last = row == rows ? end : shard[row];
            for (std::uint32_t s = first; s <= last; ++s) {
                begins[s] = static_cast<std::uint32_t>(row);
            }
        });
    }
};

/// Row order[i] of the results is that of grouped row i. Indices become shard << 32 | index; -1
/// stays.
struct UngroupRows {
    using Shared = NoShared;
    std::uint32_t const* indices;
    unsigned char const* mask;
    std::uint32_t const* shard;  // null: all rows are of shard 0, in the caller's order
    std::uint32_t const* order;
    std::int64_t* out_indices;  // may be null
    unsigned char* out_mask;    // may be null
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t i) {
            std::uint64_t const row = order != nullptr ? order[i] : i;
            if (out_indices != nullptr) {
                std::uint64_t const high = shard != nullptr ? shard[i] : 0;
                out_indices[row] = indices[i] == step::kNotFound
                                       ? -1
                                       : static_cast<std::int64_t>(high << 32 | indices[i]);
            }
            if (out_mask != nullptr) {
                out_mask[row] = mask[i];
            }
        });
    }
};

}  // namespace tensorhash::device
