// Slots of the vector-key index, and its row loops over threads.
#include "index/vector_index.hpp"

#include <algorithm>
#include <atomic>

#include "index/flat_index.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {

using runtime::Chunks;
using runtime::cut;
using runtime::for_chunks;
using runtime::for_ranges;
using runtime::kGrain;

VectorIndex::VectorIndex(std::uint64_t capacity, std::uint32_t columns)
    : memory_(capacity * sizeof(kernel::VectorSlot)),
      view_{reinterpret_cast<kernel::VectorSlot*>(memory_.data()), nullptr, columns,
            static_cast<std::uint32_t>(capacity - 1), 0} {
    for_ranges(capacity, kGrain, [&](std::size_t begin, std::size_t end) {
        std::fill(view_.slots + begin, view_.slots + end, kernel::kEmptyVectorSlot);
    });
}

kernel::VectorView VectorIndex::over(std::int32_t const* rows) const noexcept {
    kernel::VectorView view = view_;
    view.rows = rows;
    return view;
}

bool VectorIndex::insert(std::int32_t const* rows, std::size_t begin, std::size_t end) {
    auto const& kernels = cpu::vector_kernels();
    kernel::VectorView const view = over(rows);
    Chunks const chunks = cut(end - begin, kGrain);
    auto* const claim = chunks.shared() ? kernels.claim_shared : kernels.claim_sole;
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
        // Keys came in the order of their rows: without the last ones, slots are as they were before those came.
        for_ranges(capacity(), kGrain, [&](std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) {
                bool const is_new = kernel::vector_row(view_.slots[i]) >= begin;
                view_.slots[i] = is_new ? kernel::kEmptyVectorSlot : view_.slots[i];
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
    auto const& kernels = cpu::vector_kernels();
    kernel::VectorView const view = over(rows);
    for_ranges(count, kGrain, [&](std::size_t begin, std::size_t end) {
        kernels.find(view, queries + begin * view.columns, end - begin, out + begin);
    });
}

}  // namespace tensorhash::coords
