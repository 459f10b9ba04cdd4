// An index filled from a smaller one, line by line: memory is walked, not jumped about in.
#include <algorithm>
#include <atomic>

#include "table/index.hpp"

namespace tensorhash::table {
namespace {

using kernel::NarrowLine;
using runtime::Chunks;

struct Entry {
    std::uint64_t word;
    kernel::Ticket ticket;
};

/// Entries that belong near a cut between threads. Few, unless keys were made to collide.
class Deferred {
public:
    void add(Entry const& entry) noexcept {
        std::size_t const at = count_.fetch_add(1, std::memory_order_relaxed);
        if (at < entries_.size()) {
            entries_[at] = entry;
        }
    }
    bool all_kept() const noexcept { return count() <= entries_.size(); }
    std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
    Entry const& operator[](std::size_t i) const noexcept { return entries_[i]; }

private:
    std::atomic<std::size_t> count_{0};
    std::array<Entry, 4096> entries_;
};

bool put(NarrowLine& line, Entry const& entry) noexcept {
    for (std::uint32_t lane = 0; lane < NarrowLine::kLanes; ++lane) {
        if (line.words[lane] == NarrowLine::kEmpty) {
            line.words[lane] = entry.word;
            line.tickets[lane] = entry.ticket;
            return true;
        }
    }
    return false;
}

}  // namespace

/// Home lines are the low bits of the word, so an old line's entries go to the line of its number and to those whole
/// multiples of the old size further on: a thread that has the old lines [begin, end) writes new lines that no other
/// does. What would cross a cut is put in its place at the end, by one thread. False: too many of these.
bool Index::spread(Index const& smaller) noexcept {
    auto const* const from = reinterpret_cast<NarrowLine const*>(smaller.memory_.data());
    auto* const to = reinterpret_cast<NarrowLine*>(memory_.data());
    std::uint64_t const old_mask = smaller.lines_ - 1;
    std::uint64_t const mask = lines_ - 1;
    Deferred deferred;
    runtime::for_ranges(smaller.lines_, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        auto const place_own = [&](Entry const& entry) {
            std::uint64_t const home = entry.word & old_mask;
            std::uint64_t line = entry.word & mask;
            bool own = home >= begin && home < end;
            while (own && !put(to[line], entry)) {
                line = (line + 1) & mask;
                own = (line & old_mask) != (end & old_mask);
            }
            if (!own) {
                deferred.add(entry);
            }
        };
        for (std::size_t line = begin; line < end; ++line) {
            for (std::uint32_t lane = 0; lane < NarrowLine::kLanes; ++lane) {
                if (from[line].words[lane] > NarrowLine::kErased) {
                    place_own({from[line].words[lane], from[line].tickets[lane]});
                }
            }
        }
    });
    if (!deferred.all_kept()) {
        return false;
    }
    for (std::size_t i = 0; i < deferred.count(); ++i) {
        std::uint64_t line = deferred[i].word & mask;
        while (!put(to[line], deferred[i])) {
            line = (line + 1) & mask;
        }
    }
    for (std::size_t side = 0; side <= NarrowLine::kErased; ++side) {
        to[side].tickets[NarrowLine::kSideLane] = from[side].tickets[NarrowLine::kSideLane];
    }
    return true;
}

void Index::place(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
                  std::uint64_t count, Index const& other) noexcept {
    // Wide slots have half a hash, which is not enough to place them by.
    if (cpu::is_narrow(layout_.bytes) && other.lines_ <= lines_) {
        if (spread(other)) {
            occupied_ += count;
            return;
        }
        clear();
    }
    place(key_buffer, live, top, count);
}

}  // namespace tensorhash::table
