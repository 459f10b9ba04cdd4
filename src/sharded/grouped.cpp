// Copies rows to the shards and answers back to the caller's order, each in one pass over the rows.
#include "sharded/grouped.hpp"

#include <utility>

namespace tensorhash::sharded {

GroupedRows::GroupedRows(Routed const& routed, Placement const& placement, std::size_t row_bytes)
    : at_(placement.at),
      all_(Tensor::empty(with_rows(routed.rows() * row_bytes, {}), Dtype::UInt8, placement.at)) {
    for (std::size_t shard = 0; shard < routed.shards(); ++shard) {
        std::size_t const begin = routed.begin(shard) * row_bytes;
        unsigned char* rows = data() + begin;
        if (placement.memory[shard] != at_) {
            Shape const size = with_rows(routed.rows(shard) * row_bytes, {});
            elsewhere_.push_back(
                {begin, Tensor::empty(size, Dtype::UInt8, placement.memory[shard])});
            rows = static_cast<unsigned char*>(elsewhere_.back().rows.data());
        }
        rows_.push_back(rows);
    }
}

void GroupedRows::send() {
    if (elsewhere_.empty()) {
        return;
    }
    all_.written_by(current_stream(at_));
    for (Elsewhere& part : elsewhere_) {
        Tensor from = Tensor::borrow(static_cast<void const*>(data() + part.begin),
                                     part.rows.shape(), Dtype::UInt8, all_.owner(), at_);
        from.written_by(current_stream(at_));
        from.copy_to(part.rows.data(), part.rows.device());
    }
}

void GroupedRows::collect() {
    for (Elsewhere& part : elsewhere_) {
        part.rows.written_by(current_stream(part.rows.device()));
        part.rows.copy_to(data() + part.begin, at_);
    }
}

Grouped::Grouped(Routed const& routed, Placement const& placement)
    : routed_(routed), indices_(routed, placement, sizeof(std::uint32_t)),
      out_{{}, Tensor::empty(with_rows(routed.rows(), {}), Dtype::Bool, placement.at)} {
    if (routed.shards() > 1) {
        mask_.emplace(routed, placement, 1);
    }
}

Grouped Grouped::with_indices(Routed const& routed, Placement const& placement) {
    Grouped grouped(routed, placement);
    grouped.out_.indices = Tensor::empty(with_rows(routed.rows(), {}), Dtype::Int64, placement.at);
    return grouped;
}

/// A single shard writes directly to the caller's mask.
void Grouped::ungroup(std::int64_t* global) {
    bool const several = mask_.has_value();
    if (!several && global == nullptr) {
        return;
    }
    if (global != nullptr) {
        indices_.collect();
    }
    if (several) {
        mask_->collect();
    }
    routed_.ungroup(
        {reinterpret_cast<std::uint32_t*>(indices_.data()), several ? mask_->data() : nullptr},
        global, several ? static_cast<unsigned char*>(out_.mask.data()) : nullptr);
}

ShardedLocated Grouped::located(Device home) {
    ungroup(static_cast<std::int64_t*>(out_.indices.data()));
    return {map::deliver(std::move(out_.indices), home), map::deliver(std::move(out_.mask), home)};
}

Tensor Grouped::mask(Device home) {
    ungroup(nullptr);
    return map::deliver(out_.mask, home);
}

GroupedColumn::GroupedColumn(Routed const& routed, Placement const& placement,
                             CheckedBatch const& batch, std::size_t bytes)
    : whole_(batch.data()) {
    if (routed.shards() > 1) {
        grouped_.emplace(routed, placement, bytes);
        routed.group(batch.data(), bytes, grouped_->data());
        grouped_->send();
    }
}

RowOrder::RowOrder(Routed const& routed) : routed_(routed) {
    if (routed.shards() > 1) {
        rows_ = runtime::Block(routed.rows() * sizeof(std::uint32_t));
        routed.list_rows(reinterpret_cast<std::uint32_t*>(rows_.data()));
    }
}

GroupedValues::GroupedValues(Routed const& routed, Placement const& placement, std::size_t columns)
    : routed_(routed), placement_(placement) {
    if (columns != 0 && placement.at.is_cpu()) {
        order_.emplace(routed);
    }
}

void GroupedValues::take(std::vector<CheckedBatch> const& batches,
                         std::vector<backend::Bytes> addresses,
                         std::vector<Element> const& elements) {
    whole_ = std::move(addresses);
    if (placement_.at.is_cpu()) {
        return;
    }
    for (std::size_t i = 0; i < batches.size(); ++i) {
        grouped_.emplace_back(routed_, placement_, batches[i], elements[i].bytes());
    }
    parts_.resize(routed_.shards());
    for (std::size_t shard = 0; shard < parts_.size(); ++shard) {
        for (GroupedColumn const& column : grouped_) {
            parts_[shard].push_back(column.of(shard));
        }
    }
}

backend::ValueRows GroupedValues::of(std::size_t shard) const noexcept {
    if (placement_.at.is_cpu()) {
        return {whole_, order_ ? order_->of(shard) : nullptr};
    }
    return {parts_[shard]};
}

GroupedFill::GroupedFill(Routed const& routed, Placement const& placement,
                         map::FillRows const& fill, std::size_t bytes)
    : step_(fill.step) {
    if (step_ != 0) {
        rows_.emplace(routed, placement, fill.batch, bytes);
        return;
    }
    for (Device const memory : placement.memory) {
        shared_.push_back(map::on_device(fill.batch.tensor, memory));
    }
}

backend::DefaultRows GroupedFill::of(std::size_t shard) const noexcept {
    if (rows_) {
        return {rows_->of(shard), step_};
    }
    return {static_cast<backend::Bytes>(shared_[shard].data()), 0};
}

}  // namespace tensorhash::sharded
