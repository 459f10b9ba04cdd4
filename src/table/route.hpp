// Rows grouped by shard on the CPU: a stable counting sort. Its counts are kept, so that any pass over
// the caller's rows knows where each of them went.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/routed.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::table {

class CpuRouted final : public backend::Routed {
public:
    /// All rows to the only shard: there is nothing to group.
    explicit CpuRouted(std::size_t rows)
        : Routed({0, rows}), chunks_(runtime::cut(rows, runtime::kGrain)) {}
    /// int32 [rows]: the shard of each row.
    CpuRouted(Tensor shard_of_row, std::size_t shards);
    /// Shards by hash.
    CpuRouted(backend::KeyRows keys, Element const& element, std::size_t shards);

    void group(backend::Bytes from, std::size_t row_bytes, unsigned char* to) const override;
    void list_rows(std::uint32_t* to) const override;
    void ungroup(backend::Answers const& grouped, std::int64_t* indices,
                 unsigned char* mask) const noexcept override;

private:
    using Places = std::array<std::uint32_t, runtime::kMaxDevices>;

    /// Calls body(row, shard, place) for the caller's rows, in parallel: row `row` is at `place` of
    /// the grouped rows. Each thread has neighbouring rows, so that what it writes for them shares
    /// no cache line with another's.
    template <class Body>
    void for_rows(Body&& body) const;
    /// Counts each chunk's rows by shard after `fill(begin, end)` has made their shards known, then
    /// turns counts into places.
    template <class Fill>
    void count(Fill&& fill);

    runtime::Chunks chunks_;
    Tensor shard_;                // int32 [rows]; none if there is one shard
    std::vector<Places> places_;  // of each chunk: where its first row of each shard goes
};

}  // namespace tensorhash::table
