#include "support/coords.hpp"

#include <random>

namespace th_test {

Coords random_rows(std::size_t count, std::size_t columns, std::int64_t low, std::int64_t high,
                   unsigned seed, std::int64_t batches) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::int64_t> axis(low, high);
    std::uniform_int_distribution<std::int64_t> batch(0, batches - 1);
    Coords rows(count, Coord(columns));
    for (Coord& row : rows) {
        row[0] = batch(random);
        for (std::size_t c = 1; c < columns; ++c) row[c] = axis(random);
    }
    return rows;
}

void RowOracle::insert(Coords const& rows) {
    for (Coord const& row : rows) first_.try_emplace(row, next_++);
}

std::vector<std::int32_t> RowOracle::find(Coords const& rows) const {
    std::vector<std::int32_t> found;
    for (Coord const& row : rows) {
        auto const at = first_.find(row);
        found.push_back(at == first_.end() ? -1 : at->second);
    }
    return found;
}

}  // namespace th_test
