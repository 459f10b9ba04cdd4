// Shrink: gives back what growth and erasure left. Entries keep their buffer indices.
#include <bit>
#include <utility>

#include "table/table.hpp"

namespace tensorhash::table {
namespace {

/// One past the last set bit.
std::uint64_t end_of(std::vector<std::uint64_t> const& bits) noexcept {
    std::size_t words = bits.size();
    while (words > 0 && bits[words - 1] == 0) {
        --words;
    }
    return words == 0 ? 0
                      : words * 64 - static_cast<std::uint64_t>(std::countl_zero(bits[words - 1]));
}

}  // namespace

/// A copy of the first `rows` rows; null if the block can give back its last pages instead. A block
/// with views must stay as it is.
Column Table::shrunk(Column const& column, std::uint64_t rows) const {
    bool const has_views = column.block.use_count() > 1;
    if (!has_views && column.block->can_trim(rows * column.row_bytes)) {
        return {column.row_bytes, nullptr};
    }
    return copy_column(column, rows, rows);
}

Shrinkage Table::prepare_shrink() const {
    Shrinkage shrinkage;
    std::uint64_t const end = end_of(live_);
    shrinkage.capacity = end;
    if (end < capacity_) {
        shrinkage.keys = shrunk(keys_, end);
        for (Column const& column : values_) {
            shrinkage.values.push_back(shrunk(column, end));
        }
    }
    shrinkage.live.assign(live_.begin(),
                          live_.begin() + static_cast<std::ptrdiff_t>((end + 63) / 64));
    shrinkage.free.reserve(end - size());
    for (std::uint32_t const buf_index : free_) {
        if (buf_index < end) {
            shrinkage.free.push_back(buf_index);
        }
    }
    std::uint64_t const buckets = BucketIndex::buckets_for(format_, size());
    if (buckets < index_.buckets()) {
        shrinkage.index.emplace(format_, buckets, seed(), runtime::Fill::Committed);
    }
    return shrinkage;
}

void Table::finish_shrink(Shrinkage&& shrinkage) noexcept {
    auto const replace = [&](Column& column, Column&& shrunk) {
        if (shrunk.block) {
            column = std::move(shrunk);
        } else {
            std::size_t const used = shrinkage.capacity * column.row_bytes;
            column.block->trim(used);
            // The rest of the last page: the next growth counts on zeros.
            runtime::zero_bytes(column.block->data() + used, column.block->bytes() - used);
        }
    };
    if (shrinkage.keys) {
        replace(keys_, std::move(*shrinkage.keys));
        for (std::size_t i = 0; i < values_.size(); ++i) {
            replace(values_[i], std::move(shrinkage.values[i]));
        }
    }
    capacity_ = shrinkage.capacity;
    top_ = static_cast<std::uint32_t>(shrinkage.capacity);
    live_ = std::move(shrinkage.live);
    free_ = std::move(shrinkage.free);
    finish_index(std::move(shrinkage.index), 0);
}

}  // namespace tensorhash::table
