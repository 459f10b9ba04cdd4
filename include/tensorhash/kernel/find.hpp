// Find one row's key. Nobody writes meanwhile.
#pragma once

#include "tensorhash/kernel/probe.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

/// The buffer index of the key, or kNoNumber.
template <class Reader>
TH_STEP std::uint32_t find(NarrowIndex<Reader, Sole> const& index, std::uint64_t hash,
                           BatchView const&, std::size_t) {
    using Index = NarrowIndex<Reader, Sole>;
    if (Index::is_side(hash)) {
        return to_number(index.ticket(Index::side_position(hash)));
    }
    for (std::uint64_t line = hash & index.line_mask;; line = (line + 1) & index.line_mask) {
        auto const seen = index.read(line);
        std::uint32_t const found = seen.with_word(hash);
        if ((found | seen.empty()) != 0) {
            // No branch on hit or miss: which of them it is nobody can predict.
            std::uint32_t const lane = lowest_bit(found | 1u << NarrowLine::kSideLane);
            Ticket const ticket = index.lines[line].tickets[lane];
            return to_number(found != 0 ? ticket : kNoTicket);
        }
    }
}

template <class Reader>
TH_STEP std::uint32_t find(WideIndex<Reader, Sole> const& index, std::uint64_t hash,
                           BatchView const& batch, std::size_t row) {
    Slot const slot = probe(index, hash, index.comparison(batch, row));
    return slot.found ? to_number(index.ticket(slot.position)) : kNoNumber;
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
