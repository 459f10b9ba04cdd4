// Copies rows to the shards and answers back to the caller's order, each in one pass over the rows.
#include "sharded/grouped.hpp"

namespace tensorhash::sharded {

Grouped Grouped::with_indices(Routed const& routed) {
    Grouped grouped(routed);
    grouped.out_.indices = Tensor::empty(with_rows(routed.rows(), {}), Dtype::Int64);
    return grouped;
}

/// A single shard writes directly to the caller's mask.
void Grouped::ungroup(std::int64_t* global) noexcept {
    bool const several = routed_.shards() > 1;
    if (several || global != nullptr) {
        routed_.ungroup({indices(), mask_.data()}, global,
                        several ? static_cast<unsigned char*>(out_.mask.data()) : nullptr);
    }
}

ShardedLocated Grouped::located() noexcept {
    ungroup(static_cast<std::int64_t*>(out_.indices.data()));
    return std::move(out_);
}

Tensor Grouped::mask() noexcept {
    ungroup(nullptr);
    return out_.mask;
}

GroupedColumn::GroupedColumn(Routed const& routed, CheckedBatch const& batch, std::size_t bytes)
    : row_bytes_(bytes), rows_(batch.data()) {
    if (routed.shards() > 1) {
        copy_ = runtime::Block(routed.rows() * bytes);
        routed.group(batch.data(), bytes, copy_.data());
        rows_ = copy_.data();
    }
}

RowOrder::RowOrder(Routed const& routed) : routed_(routed) {
    if (routed.shards() > 1) {
        rows_ = runtime::Block(routed.rows() * sizeof(std::uint32_t));
        routed.list_rows(reinterpret_cast<std::uint32_t*>(rows_.data()));
    }
}

}  // namespace tensorhash::sharded
