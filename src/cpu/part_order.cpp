// Cuts the groups of every part at the borders of the windows.
#include "cpu/part_order.hpp"

#include <algorithm>

#include "runtime/scan.hpp"

namespace tensorhash::cpu {

PartOrder::PartOrder(FirstRows const& first_rows, std::size_t rows)
    : first_rows_(first_rows), windows_(rows / kWindow + 1), starts_(windows_ * kParts),
      bases_(windows_ + 1) {
    runtime::run_tasks(kParts, [&](std::size_t part) {
        std::span<std::uint32_t const> const mine = first_rows_[part];
        auto at = mine.begin();
        for (std::size_t window = 0; window < windows_; ++window) {
            at = std::lower_bound(at, mine.end(), window * kWindow);
            starts_[window * kParts + part] = static_cast<std::uint32_t>(at - mine.begin());
        }
    });
    for (std::size_t window = 0; window < windows_; ++window) {
        for (std::size_t part = 0; part < kParts; ++part) {
            bases_[window] += end(window, part) - begin(window, part);
        }
    }
    runtime::scan(bases_);
}

}  // namespace tensorhash::cpu
