// Which key the rows get, and lookups by each.
#include "coords/coord_index.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

using runtime::Block;

// Rows that are brought into form at a time, on the stack of the task.
constexpr std::size_t kBlockRows = 512;

unsigned char const* bytes_of(std::int32_t const* rows) {
    return reinterpret_cast<unsigned char const*>(rows);
}

table::KeyLayout layout_of(std::uint32_t columns) {
    return {columns * static_cast<std::uint32_t>(sizeof(std::int32_t)), 0};
}

bool fits_int32(std::int64_t value) {
    return value == static_cast<std::int32_t>(value);
}

}  // namespace

CoordIndex::CoordIndex(CoordRows rows, bool double_hash) : double_hash_(double_hash) {
    rows_.columns = rows.columns;
    if (rows.columns <= 4) {
        flat_.emplace(FlatIndex::capacity_for(rows.rows), double_hash);
    } else {
        kind_ = CoordKey::Wide;
    }
    extend(std::move(rows));
}

void CoordIndex::extend(CoordRows rows) {
    std::size_t const from = rows_.rows;
    if (flat_) {
        std::size_t const added = rows.rows - from;
        Block keys(added * sizeof(std::uint64_t));
        auto* const packed = reinterpret_cast<std::uint64_t*>(keys.data());
        cpu::FlatRows const fresh{rows.data() + from * rows.columns, rows.columns, false};
        if (pack_rows(fresh, added, packed) == 0) {
            extend_flat(rows, packed, from);
            rows_ = std::move(rows);
            return;
        }
    }
    rebuild_wide(rows);
    rows_ = std::move(rows);
}

void CoordIndex::extend_flat(CoordRows const& rows, std::uint64_t const* keys, std::size_t from) {
    std::size_t const added = rows.rows - from;
    std::uint64_t const wanted = FlatIndex::capacity_for(flat_->size() + added);
    if (wanted > flat_->capacity()) {
        flat_ = flat_->grown(wanted);
    }
    flat_->insert(keys, added, static_cast<std::uint32_t>(from));
}

void CoordIndex::rebuild_wide(CoordRows const& rows) {
    table::KeyLayout const layout = layout_of(rows.columns);
    table::Index index(layout, table::Index::lines_for(layout, rows.rows));
    Block scratch(rows.rows * (2 * sizeof(std::uint32_t) + 1));
    auto* const numbers = reinterpret_cast<std::uint32_t*>(scratch.data());
    // Base 0: a claim's number is its row, and of equal rows the smallest number stays. Nothing is left to publish.
    kernel::BatchView const batch{bytes_of(rows.data()), 0, numbers + rows.rows, numbers,
                                  scratch.data() + rows.rows * 2 * sizeof(std::uint32_t)};
    wide_distinct_ = index.claim(bytes_of(rows.data()), batch, 0, rows.rows).claimed;
    wide_.emplace(std::move(index));
    flat_.reset();
    kind_ = rows.columns == 4 ? CoordKey::Packed128 : CoordKey::Wide;
}

void CoordIndex::find(CoordRows const& queries, std::int32_t* out, cpu::FlatWindow window) const {
    if (flat_) {
        flat_->find_rows(queries.flat(), queries.rows, out, window);
        return;
    }
    runtime::for_ranges(queries.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        if (!queries.wide()) {
            find_wide(queries.data() + begin * columns(), end - begin, out + begin);
            return;
        }
        std::int32_t block[kBlockRows * kMaxColumns];
        auto const* const values = static_cast<std::int64_t const*>(queries.tensor.data());
        for (std::size_t at = begin; at < end; at += kBlockRows) {
            std::size_t const count = std::min(kBlockRows, end - at);
            bool all_fit = true;
            for (std::size_t i = 0; i < count * columns(); ++i) {
                std::int64_t const value = values[at * columns() + i];
                block[i] = static_cast<std::int32_t>(value);
                all_fit &= fits_int32(value);
            }
            find_wide(block, count, out + at);
            for (std::size_t i = 0; !all_fit && i < count * columns(); ++i) {
                if (!fits_int32(values[at * columns() + i])) {
                    out[at + i / columns()] = -1;
                }
            }
        }
    });
}

void CoordIndex::find_shifted(std::int32_t const* queries, std::size_t begin, std::size_t end,
                              Shift const& shift, std::int32_t* out) const {
    std::uint32_t const width = columns();
    for (std::size_t at = begin; at < end; at += kBlockRows) {
        std::size_t const count = std::min(kBlockRows, end - at);
        std::int32_t const* const block_queries = queries + at * width;
        if (flat_) {
            std::uint64_t keys[kBlockRows];
            for (std::size_t i = 0; i < count; ++i) {
                std::int64_t moved[4] = {};
                for (std::uint32_t c = 0; c < width; ++c) {
                    moved[c] = std::int64_t{block_queries[i * width + c]} * shift.scale[c] +
                               shift.offset[c];
                }
                keys[i] = kernel::packed_or_empty(moved[0], moved[1], moved[2], moved[3]);
            }
            flat_->find_keys(keys, count, out + (at - begin));
            continue;
        }
        std::int32_t block[kBlockRows * kMaxColumns];
        bool outside[kBlockRows] = {};
        for (std::size_t i = 0; i < count; ++i) {
            for (std::uint32_t c = 0; c < width; ++c) {
                std::int64_t const moved =
                    std::int64_t{block_queries[i * width + c]} * shift.scale[c] + shift.offset[c];
                block[i * width + c] = static_cast<std::int32_t>(moved);
                outside[i] = outside[i] || !fits_int32(moved);
            }
        }
        find_wide(block, count, out + (at - begin));
        for (std::size_t i = 0; i < count; ++i) {
            out[at - begin + i] = outside[i] ? -1 : out[at - begin + i];
        }
    }
}

void CoordIndex::find_wide(std::int32_t const* rows, std::size_t count, std::int32_t* out) const {
    unsigned char mask[kBlockRows];
    auto const base = static_cast<std::uint32_t>(rows_.rows);
    for (std::size_t at = 0; at < count; at += kBlockRows) {
        std::size_t const block = std::min(kBlockRows, count - at);
        // Numbers below the base are rows of ours; the query has none of its own.
        kernel::BatchView const batch{bytes_of(rows + at * columns()), base, nullptr,
                                      reinterpret_cast<std::uint32_t*>(out + at), mask};
        wide_->find(bytes_of(rows_.data()), batch, block);
    }
}

}  // namespace tensorhash::coords
