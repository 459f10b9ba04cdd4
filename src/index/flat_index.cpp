// Slots of the flat index, and its row loops run on all threads.
#include "index/flat_index.hpp"

#include <algorithm>
#include <atomic>

#include "runtime/parallel.hpp"

namespace tensorhash::index {

using runtime::Chunks;
using runtime::cut;
using runtime::for_chunks;
using runtime::for_ranges;
using runtime::kGrain;
using step::FlatSlot;

namespace {

constexpr FlatSlot kEmptySlot{step::kEmptyKey, step::kNoRow, 0};

}  // namespace

FlatIndex::FlatIndex(std::uint64_t capacity, bool double_hash, step::HashSecret const& secret)
    : block_(runtime::make_shared_block(capacity * sizeof(FlatSlot), runtime::Fill::None)),
      view_{reinterpret_cast<FlatSlot*>(block_->data()), static_cast<std::uint32_t>(capacity - 1),
            0, double_hash, secret} {
    for_ranges(capacity, kGrain, [&](std::size_t begin, std::size_t end) {
        std::fill(view_.slots + begin, view_.slots + end, kEmptySlot);
    });
}

bool FlatIndex::insert(std::uint64_t const* keys, std::size_t count, std::uint32_t first_row,
                       std::uint32_t* positions) {
    auto const& loops = cpu::flat_loops();
    Chunks const chunks = cut(count, kGrain);
    auto* const claim = chunks.shared() ? loops.claim_shared : loops.claim_exclusive;
    std::atomic<std::uint64_t> claimed{0};
    std::atomic<std::uint32_t> longest{view_.longest};
    std::atomic<bool> full{false};
    for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        if (full.load(std::memory_order_relaxed)) {
            return;
        }
        cpu::FlatCount const done =
            claim(view_, keys + begin, end - begin, first_row + static_cast<std::uint32_t>(begin),
                  positions == nullptr ? nullptr : positions + begin);
        claimed.fetch_add(done.claimed, std::memory_order_relaxed);
        raise_to(longest, done.longest);
        if (done.full) {
            full.store(true, std::memory_order_relaxed);
        }
    });
    if (full.load(std::memory_order_relaxed)) {
        size_ += claimed.load(std::memory_order_relaxed);
        drop_from(first_row);
        return false;
    }
    size_ += claimed.load(std::memory_order_relaxed);
    view_.longest = longest.load(std::memory_order_relaxed);
    return true;
}

void FlatIndex::drop_from(std::uint32_t first_row) noexcept {
    // Later rows were inserted later, so no earlier key has probed past theirs. Emptying their
    // slots restores the earlier state.
    std::atomic<std::uint64_t> dropped{0};
    for_ranges(capacity(), kGrain, [&](std::size_t begin, std::size_t end) {
        std::uint64_t here = 0;
        for (std::size_t i = begin; i < end; ++i) {
            FlatSlot& slot = view_.slots[i];
            if (slot.key != step::kEmptyKey && slot.row >= first_row) {
                slot = kEmptySlot;
                ++here;
            }
        }
        dropped.fetch_add(here, std::memory_order_relaxed);
    });
    // Other code may have written to the shared slots, so they may hold more keys than were added.
    size_ -= std::min(size_, dropped.load(std::memory_order_relaxed));
}

FlatIndex FlatIndex::grown(std::uint64_t capacity) const {
    FlatIndex larger(capacity, double_hash(), view_.secret);
    std::atomic<std::uint32_t> longest{0};
    // Neighbours stay neighbours: slot i goes near i or near i + a multiple of the old capacity.
    for_ranges(this->capacity(), kGrain, [&](std::size_t begin, std::size_t end) {
        std::uint32_t farthest = 0;
        for (std::size_t i = begin; i < end; ++i) {
            FlatSlot const& slot = view_.slots[i];
            if (slot.key != step::kEmptyKey) {
                auto const placed =
                    step::flat_claim<step::Shared>(larger.view_, slot.key, slot.row);
                farthest = std::max(farthest, placed.steps);
            }
        }
        raise_to(longest, farthest);
    });
    larger.size_ = size_;
    larger.view_.longest = longest.load(std::memory_order_relaxed);
    return larger;
}

void FlatIndex::find_keys(std::uint64_t const* keys, std::size_t count, std::int32_t* out,
                          cpu::FlatWindow window) const {
    auto const& loops = cpu::flat_loops();
    for_ranges(count, kGrain, [&](std::size_t begin, std::size_t end) {
        loops.find_keys(view_, window, keys + begin, end - begin, out + begin);
    });
}

void FlatIndex::find_rows(cpu::FlatRows const& rows, std::size_t count, std::int32_t* out,
                          cpu::FlatWindow window) const {
    auto const& loops = cpu::flat_loops();
    for_ranges(count, kGrain, [&](std::size_t begin, std::size_t end) {
        loops.find_rows(view_, window, rows, begin, end, out + begin);
    });
}

std::size_t pack_rows(cpu::FlatRows const& rows, std::size_t count, std::uint64_t* keys) {
    auto const& loops = cpu::flat_loops();
    std::atomic<std::size_t> outside{0};
    for_ranges(count, kGrain, [&](std::size_t begin, std::size_t end) {
        outside.fetch_add(loops.pack(rows, begin, end, keys + begin), std::memory_order_relaxed);
    });
    return outside.load(std::memory_order_relaxed);
}

}  // namespace tensorhash::index
