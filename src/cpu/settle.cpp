// Settles the rows that overtook other rows, on one thread: there are few, because threads claim
// neighbouring chunks of rows at the same time.
#include "cpu/settle.hpp"

#include <cstdint>

namespace tensorhash::cpu {

/// An overtaken row comes after the row that overtook it. From the last row to the first, each
/// overtaken row already has its position.
void settle(step::BatchView const& batch, std::size_t begin, std::size_t end) noexcept {
    for (std::size_t row = end; row > begin;) {
        if (row - begin >= 8 && !is_any_marked(batch.mask + row - 8)) {
            row -= 8;
            continue;
        }
        --row;
        if (batch.mask[row] == kOvertook) {
            std::uint32_t const overtaken = batch.positions[row];
            batch.positions[row] = batch.positions[overtaken];
            batch.mask[row] = 1;
            batch.mask[overtaken] = 0;
        }
    }
}

}  // namespace tensorhash::cpu
