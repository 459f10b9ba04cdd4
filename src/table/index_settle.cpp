// Who won each key of a batch, when several threads claimed at once.
#include <atomic>

#include "table/index.hpp"

namespace tensorhash::table {
namespace {

using runtime::Chunks;
using runtime::for_chunks;

/// Slots where an earlier row came after a later one; now and then others, never fewer. Made only if there are any: to
/// clear it costs more than a small batch.
class OvertakenSlots {
public:
    void clear() noexcept { bits_.fill(0); }
    void add(kernel::Position position) noexcept {
        std::atomic_ref(bits_[place(position) / 64])
            .fetch_or(std::uint64_t{1} << (place(position) % 64), std::memory_order_relaxed);
    }
    bool may_have(kernel::Position position) const noexcept {
        return (bits_[place(position) / 64] >> (place(position) % 64) & 1) != 0;
    }

private:
    static constexpr std::uint32_t kBits = 18;  // 32 KB: they stay near
    static std::uint32_t place(kernel::Position position) noexcept {
        return (position * 0x9e3779b1u) >> (32 - kBits);
    }
    std::array<std::uint64_t, (std::size_t{1} << kBits) / 64> bits_;
};

}  // namespace

/// A row that saw an earlier one at its slot has lost. A row that saw itself has won, unless an earlier row came to the slot
/// after it; and such a latecomer shows: it owns a slot that it did not claim. So only the slots of latecomers are read
/// again, a few, and the index stays untouched otherwise.
void Index::settle(unsigned char const* key_buffer, Batch const& batch, Chunks const& chunks,
                   Ranks& ranks) const noexcept {
    auto const index = view(key_buffer);
    auto const saw_itself = [&](std::size_t row) {
        return batch.numbers[row] == batch.base + static_cast<std::uint32_t>(row);
    };
    auto const came_late = [&](std::size_t row) {
        return batch.mask[row] == 0 && saw_itself(row);
    };
    std::atomic<bool> any{false};
    for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        bool here = false;  // no branch: this loop is made of vectors
        for (std::size_t row = begin; row < end; ++row) {
            here = here | came_late(row);
        }
        if (here) {
            any.store(true, std::memory_order_relaxed);
        }
    });
    OvertakenSlots overtaken;
    bool const some = any.load(std::memory_order_relaxed);
    if (some) {
        overtaken.clear();
        for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                if (came_late(row)) {
                    overtaken.add(batch.positions[row]);
                }
            }
        });
    }
    ranks[0] = 0;
    for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::uint64_t winners = 0;
        for (std::size_t row = begin; row < end; ++row) {
            if (!saw_itself(row)) {
                batch.mask[row] = 0;
            } else if (!some || !overtaken.may_have(batch.positions[row])) {
                batch.mask[row] = 1;
                ++winners;
            } else if (kernels_->settle(index, batch, row, row + 1) != 0) {
                ++winners;
            } else {
                batch.positions[row] = batch.numbers[row] - batch.base;  // for winner_of()
            }
        }
        ranks[chunk + 1] = winners;
    });
    for (std::size_t chunk = 0; chunk < chunks.count; ++chunk) {
        ranks[chunk + 1] += ranks[chunk];
    }
}

}  // namespace tensorhash::table
