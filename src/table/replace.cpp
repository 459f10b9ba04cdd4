// Entries replaced at their places: erased and added as one step that fails as a whole or not at all.
#include <algorithm>
#include <vector>

#include "table/rows.hpp"
#include "table/table.hpp"

namespace tensorhash::table {

Replacing Table::prepare_replace(std::span<std::uint32_t const> leaving, Bytes keys,
                                 std::size_t rows) {
    // Backwards onto the free stack, so that the first comes off it first.
    std::vector<std::uint32_t> const backwards(leaving.rbegin(), leaving.rend());
    runtime::Block gone(backwards.size() * keys_.row_bytes);
    gather_rows(gone.data(), key_buffer(), keys_.row_bytes, backwards.data(), backwards.size());
    Replacing replacing;
    replacing.leaving.assign(leaving.begin(), leaving.end());
    replacing.mask = runtime::Block(std::max(rows, backwards.size()));
    replacing.numbers = runtime::Block(rows * sizeof(std::uint32_t));
    erase(gone.data(), backwards.size(), replacing.mask.data());
    try {
        replacing.insertion = prepare_insert(
            keys, rows,
            {reinterpret_cast<std::uint32_t*>(replacing.numbers.data()), replacing.mask.data()},
            KeySource::Private);
    } catch (...) {
        cancel(replacing);
        throw;
    }
    return replacing;
}

void Table::cancel(Replacing& replacing) noexcept {
    // The keys are still in the buffer: mark them live again and build the index anew, which needs no memory and leaves no
    // claim in it.
    for (std::uint32_t const number : replacing.leaving) {
        live_[number / 64] |= std::uint64_t{1} << (number % 64);
    }
    free_.resize(free_.size() - replacing.leaving.size());
    index_.clear();
    index_.place(key_buffer(), live_.data(), top_, size());
}

void Table::finish_replace(Replacing&& replacing) noexcept { finish_keys(replacing.insertion); }

}  // namespace tensorhash::table
