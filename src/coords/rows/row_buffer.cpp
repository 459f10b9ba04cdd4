// Appends in place where there is room; otherwise grows by at least half.
#include "coords/rows/row_buffer.hpp"

#include <algorithm>
#include <utility>

#include "backend/coord_errors.hpp"

namespace tensorhash::coords {
namespace {

using runtime::Block;

CoordRows rows_in(std::shared_ptr<Block> const& block, std::size_t rows, std::uint32_t columns) {
    Shape shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
    return {Tensor::borrow(static_cast<void const*>(block->data()), std::move(shape), Dtype::Int32,
                           block),
            rows, columns};
}

}  // namespace

RowBuffer::RowBuffer(std::uint32_t columns)
    : block_(runtime::make_shared_block(0, runtime::Fill::None)),
      rows_(rows_in(block_, 0, columns)) {}

RowBuffer::Appended RowBuffer::with(CoordRows const& fresh, std::string_view argument) const {
    std::size_t const before = rows_.rows;
    std::size_t const after = before + fresh.rows;
    if (after > backend::kMaxCoordRows) {
        backend::fail_most_rows(argument, before, fresh.rows);
    }
    std::size_t const row_bytes = fresh.columns * sizeof(std::int32_t);
    std::shared_ptr<Block> block = block_;
    if (block->bytes() < after * row_bytes) {
        std::size_t const room = std::max(after, before + before / 2);
        block = runtime::make_shared_block(room * row_bytes, runtime::Fill::None);
        runtime::copy_bytes(block->data(), block_->data(), before * row_bytes);
    }
    runtime::copy_bytes(block->data() + before * row_bytes, fresh.data(), fresh.rows * row_bytes);
    return {block, rows_in(block, after, fresh.columns)};
}

void RowBuffer::adopt(Appended&& appended) noexcept {
    block_ = std::move(appended.block);
    rows_ = std::move(appended.rows);
}

}  // namespace tensorhash::coords
