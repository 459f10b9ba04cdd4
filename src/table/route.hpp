// Groups rows by shard on the CPU: a stable counting sort. It keeps the counts, so that a later
// pass over the caller's rows knows where each row went.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/routed.hpp"
#include "cpu/route_engine.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::table {

/// A number for each shard.
using Places = std::array<std::uint32_t, runtime::kMaxDevices>;

/// Copies the chunk's rows to their places.
void group_rows(cpu::ShardedChunk const& chunk, backend::Bytes from, std::size_t row_bytes,
                unsigned char* to);

class CpuRouted final : public backend::Routed {
public:
    /// One shard: nothing to group.
    explicit CpuRouted(std::size_t rows)
        : Routed({0, rows}), chunks_(runtime::cut(rows, runtime::kGrain)) {}
    /// `shard_of_row` is int32 [rows].
    CpuRouted(Tensor shard_of_row, std::size_t shards);
    /// Picks each row's shard by hash.
    CpuRouted(backend::KeyRows keys, Element const& element, std::size_t shards);

    void group(backend::Bytes from, std::size_t row_bytes, unsigned char* to) const override;
    void list_rows(std::uint32_t* to) const override;
    void ungroup(backend::Answers const& grouped, std::int64_t* indices,
                 unsigned char* mask) const noexcept override;
    void ungroup_rows(backend::Bytes grouped, std::size_t row_bytes,
                      unsigned char* to) const override;

private:
    /// Calls body(chunk) for chunks of the caller's rows, in parallel. Only with several shards. A
    /// thread takes neighbouring rows, so that threads rarely write to the same cache line.
    template <class Body>
    void for_sorted(Body&& body) const;
    /// Counts each chunk's rows by shard, then turns the counts into places. First calls
    /// fill_shards(begin, end), which writes the shards of these rows.
    template <class FillShards>
    void count(FillShards&& fill_shards);
    void ungroup_one(backend::Answers const& grouped, std::int64_t* indices,
                     unsigned char* mask) const noexcept;

    runtime::Chunks chunks_;
    Tensor shard_;  // int32 [rows]; undefined with one shard
    // [chunk * shards + shard]: the place of the chunk's first row of the shard.
    std::vector<std::uint32_t> places_;
};

}  // namespace tensorhash::table
