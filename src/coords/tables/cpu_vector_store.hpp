// The rows of a TorchHashTable in host memory, and an index over them.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/coords_backend.hpp"
#include "coords/rows/row_buffer.hpp"
#include "index/vector_index.hpp"

namespace tensorhash::coords {

class CpuVectorStore final : public backend::VectorStore {
public:
    explicit CpuVectorStore(std::optional<std::uint64_t> slots);

    backend::VectorStoreInfo info() const noexcept override;
    void set_columns(std::uint32_t columns) override;
    void insert(CoordRows const& rows) override;
    void grow_on_demand() noexcept override;
    Tensor search(CoordRows const& queries) const override;
    Tensor rows() const override { return buffer_.rows().tensor; }
    Tensor unique() const override;
    Tensor slots() const override;

private:
    std::uint64_t slot_count() const noexcept { return index_ ? index_->capacity() : least_; }

    std::uint64_t least_;  // slots before there is an index
    bool grows_;
    RowBuffer buffer_{0};
    std::optional<index::VectorIndex> index_;
};

}  // namespace tensorhash::coords
