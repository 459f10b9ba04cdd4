// What a table keeps on its device, so that batches follow each other on a stream without the host.
#pragma once

#include <cstdint>

#include "device/counters.hpp"
#include "tensorhash/step/view.hpp"

namespace tensorhash::device {

using step::BatchView;
using step::IndexView;

/// Words only: the host reads all of it with one small copy.
struct State {
    std::uint32_t top;       // the next fresh buffer index
    std::uint32_t free;      // buffer indices on the free stack
    std::uint32_t occupied;  // live and erased slots of the index
    std::uint32_t broken;    // a probe found no end: the index is corrupt. Stays set.
    // Of the batch in progress; zero between batches.
    std::uint32_t claimed;
    std::uint32_t from_erased;
    std::uint32_t undecided;
    std::uint32_t released;
    std::uint32_t to_erased;
    std::uint32_t has_repeats;  // two rows erase the same entry
};

/// The batch with the base that only the device knows.
TH_STEP BatchView with_base(BatchView batch, State const* state) {
    batch.base = state->top;
    return batch;
}

/// Is there nothing to settle? Either every row claimed a slot of its own and no freed index is
/// reused, so that base + row is final; or the index is corrupt, and FinishRows drops the batch.
TH_STEP bool is_settled(State const* state, std::uint32_t rows) {
    return state->broken != 0 || (state->claimed == rows && state->free == 0);
}

}  // namespace tensorhash::device
