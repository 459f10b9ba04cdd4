// Replaces entries at their buffer indices: erase and insert as one change, all or nothing.
#include <algorithm>
#include <vector>

#include "table/rows.hpp"
#include "table/table.hpp"

namespace tensorhash::table {

Replacing Table::prepare_replace(std::span<std::uint32_t const> leaving, Bytes keys,
                                 std::size_t rows) {
    // Pushed on the free stack in reverse, so that the first index is popped first.
    std::vector<std::uint32_t> const backwards(leaving.rbegin(), leaving.rend());
    runtime::Block gone(backwards.size() * keys_.row_bytes);
    gather_rows(gone.data(), key_buffer(), keys_.row_bytes, backwards.data(), backwards.size());
    Replacing replacing;
    replacing.leaving.assign(leaving.begin(), leaving.end());
    replacing.mask = runtime::Block(std::max(rows, backwards.size()));
    replacing.buf_indices = runtime::Block(rows * sizeof(std::uint32_t));
    erase(gone.data(), backwards.size(), replacing.mask.data());
    try {
        replacing.insertion = prepare_insert(
            keys, rows,
            {reinterpret_cast<std::uint32_t*>(replacing.buf_indices.data()), replacing.mask.data()},
            KeySource::Private);
    } catch (...) {
        cancel(replacing);
        throw;
    }
    return replacing;
}

void Table::cancel(Replacing& replacing) noexcept {
    // The keys are still in the buffer: mark them live again and rebuild the index, which needs no
    // memory and drops all claims.
    for (std::uint32_t const buf_index : replacing.leaving) {
        live_[buf_index / 64] |= std::uint64_t{1} << (buf_index % 64);
    }
    free_.resize(free_.size() - replacing.leaving.size());
    index_.clear();
    index_.place(key_buffer(), live_.data(), top_, size());
}

void Table::finish_replace(Replacing&& replacing) noexcept { finish_keys(replacing.insertion); }

}  // namespace tensorhash::table
