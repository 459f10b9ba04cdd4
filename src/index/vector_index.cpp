// Slots of the vector-key index, and its row loops run on all threads.
#include "index/vector_index.hpp"

#include <algorithm>
#include <atomic>

#include "index/flat_index.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::index {

using runtime::Chunks;
using runtime::cut;
using runtime::for_chunks;
using runtime::for_ranges;
using runtime::kGrain;

VectorIndex::VectorIndex(std::uint64_t capacity, std::uint32_t columns)
    : memory_(capacity * sizeof(step::VectorSlot)),
      view_{reinterpret_cast<step::VectorSlot*>(memory_.data()), nullptr, columns,
            static_cast<std::uint32_t>(capacity - 1), 0} {
    for_ranges(capacity, kGrain, [&](std::size_t begin, std::size_t end) {
        std::fill(view_.slots + begin, view_.slots + end, step::kEmptyVectorSlot);
    });
}

step::VectorView VectorIndex::over(std::int32_t const* rows) const noexcept {
    step::VectorView view = view_;
    view.rows = rows;
    return view;
}

bool VectorIndex::insert(std::int32_t const* rows, std::size_t begin, std::size_t end) {
    auto const& loops = cpu::vector_loops();
    step::VectorView const view = over(rows);
    Chunks const chunks = cut(end - begin, kGrain);
    auto* const claim = chunks.shared() ? loops.claim_shared : loops.claim_exclusive;
    std::atomic<std::uint64_t> claimed{0};
    std::atomic<bool> full{false};
    std::atomic<std::uint32_t> longest{view_.longest};
    for_chunks(chunks, [&](std::size_t, std::size_t from, std::size_t to) {
        cpu::FlatCount const done = claim(view, begin + from, begin + to);
        claimed.fetch_add(done.claimed, std::memory_order_relaxed);
        raise_to(longest, done.longest);
        if (done.full) {
            full.store(true, std::memory_order_relaxed);
        }
    });
    if (full.load(std::memory_order_relaxed)) {
        // Later rows were inserted later, so no earlier key has probed past theirs. Emptying their
        // slots restores the earlier state.
        for_ranges(capacity(), kGrain, [&](std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) {
                bool const is_new = step::vector_row(view_.slots[i]) >= begin;
                view_.slots[i] = is_new ? step::kEmptyVectorSlot : view_.slots[i];
            }
        });
        return false;
    }
    size_ += claimed.load(std::memory_order_relaxed);
    view_.longest = longest.load(std::memory_order_relaxed);
    return true;
}

void VectorIndex::find(std::int32_t const* rows, std::int32_t const* queries, std::size_t count,
                       std::int32_t* out) const {
    auto const& loops = cpu::vector_loops();
    step::VectorView const view = over(rows);
    for_ranges(count, kGrain, [&](std::size_t begin, std::size_t end) {
        loops.find(view, queries + begin * view.columns, end - begin, out + begin);
    });
}

}  // namespace tensorhash::index
