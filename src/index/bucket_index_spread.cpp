// An index filled from a smaller one, line by line: memory is walked, not jumped about in.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "index/bucket_index.hpp"

namespace tensorhash::table {
namespace {

using kernel::NarrowLine;
using runtime::Chunks;

struct Entry {
    std::uint64_t word;
    kernel::Ticket ticket;
};

/// An index's lines.
template <class Line>
struct Lines {
    Line* data;
    std::uint64_t mask;
};

// A larger step is left to place(): little is moved then.
constexpr std::uint64_t kMostParts = 8;

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

/// False if the line is full: then the entry goes past it.
bool put(Lines<NarrowLine> const& lines, std::uint64_t at, Entry const& entry) noexcept {
    NarrowLine& line = lines.data[at];
    for (std::uint32_t lane = 0; lane < NarrowLine::kLanes; ++lane) {
        if (line.words[lane] == NarrowLine::kEmpty) {
            line.words[lane] = entry.word;
            line.tickets[lane] = entry.ticket;
            return true;
        }
    }
    if (NarrowLine::keeps_traces(at)) {
        line.tickets[NarrowLine::kSpareLane] |= std::uint32_t{1}
                                                << NarrowLine::class_of(entry.word);
    }
    return false;
}

/// One thread's part of the work: the old lines [begin, end), one after the other. Home lines are the low bits of the
/// word, so an old line's entries go to the new line of its number and to those whole multiples of the old size further
/// on, which no other thread writes.
class Part {
public:
    Part(Lines<NarrowLine const> const& from, Lines<NarrowLine> const& to, std::size_t begin,
         Deferred& deferred)
        : from_(from), to_(to), begin_(begin), done_(begin), deferred_(deferred) {}

    /// Writes the new lines of the next old one. They are filled, not searched for room: no branch, no waiting for
    /// what was written just before.
    void fill_next() noexcept {
        NarrowLine const& old = from_.data[done_];
        std::uint64_t const old_lines = from_.mask + 1;
        for (std::uint64_t line = done_; line <= to_.mask; line += old_lines) {
            std::memset(&to_.data[line], 0, sizeof(NarrowLine));
        }
        auto const old_bits = std::bit_width(from_.mask);
        std::uint64_t counts = 0;  // a byte for each new line
        for (std::uint32_t lane = 0; lane < NarrowLine::kLanes; ++lane) {
            std::uint64_t const word = old.words[lane];
            bool const is_key = word > NarrowLine::kErased;
            bool const at_home = is_key && (word & from_.mask) == done_;
            std::uint64_t const line = at_home ? word & to_.mask : done_;
            std::uint64_t const shift = (line >> old_bits) * 8;
            std::uint64_t const next = counts >> shift & 0xff;  // no more than lanes so far
            to_.data[line].words[next] = at_home ? word : NarrowLine::kEmpty;
            to_.data[line].tickets[next] = at_home ? old.tickets[lane] : kernel::kNoTicket;
            counts += std::uint64_t{at_home} << shift;
            if (is_key && !at_home) {
                add_late({word, old.tickets[lane]});
            }
        }
        ++done_;
    }

    /// When all lines are done: what is left belongs beyond them.
    void finish() noexcept {
        place_late();
        for (std::size_t i = 0; i < late_count_; ++i) {
            deferred_.add(late_[i]);
        }
    }

private:
    /// An entry that had been pushed out of its old home line. Over a cut between threads, or over the end of the index, it
    /// came from lines that are not this part's.
    void add_late(Entry const& entry) noexcept {
        std::uint64_t const home = entry.word & from_.mask;
        if (late_count_ == late_.size()) {
            place_late();
        }
        if (home < begin_ || home > done_ || late_count_ == late_.size()) {
            deferred_.add(entry);
        } else {
            late_[late_count_++] = entry;
        }
    }

    /// Those stay whose way leads to lines that are not done.
    void place_late() noexcept {
        std::size_t left = 0;
        for (std::size_t i = 0; i < late_count_; ++i) {
            if (!place(late_[i])) {
                late_[left++] = late_[i];
            }
        }
        late_count_ = left;
    }

    /// Into its home line or one that follows, among those that this part has written.
    bool place(Entry const& entry) noexcept {
        auto const is_done = [&](std::uint64_t line) {
            return (line & from_.mask) >= begin_ && (line & from_.mask) < done_;
        };
        std::uint64_t line = entry.word & to_.mask;
        while (is_done(line) && !put(to_, line, entry)) {
            line = (line + 1) & to_.mask;
        }
        return is_done(line);
    }

    Lines<NarrowLine const> from_;
    Lines<NarrowLine> to_;
    std::size_t begin_;
    std::size_t done_;  // old lines below this are done
    Deferred& deferred_;
    std::array<Entry, 64> late_;
    std::size_t late_count_ = 0;
};

}  // namespace

/// What would cross a cut between threads is put in its place at the end, by one. False: too many of these.
bool Index::spread(Index const& smaller) noexcept {
    Lines<NarrowLine const> const from{reinterpret_cast<NarrowLine const*>(smaller.memory_.data()),
                                       smaller.lines_ - 1};
    Lines<NarrowLine> const to{reinterpret_cast<NarrowLine*>(memory_.data()), lines_ - 1};
    Deferred deferred;
    runtime::for_ranges(smaller.lines_, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        Part part(from, to, begin, deferred);
        for (std::size_t line = begin; line < end; ++line) {
            part.fill_next();
        }
        part.finish();
    });
    if (!deferred.all_kept()) {
        return false;
    }
    for (std::size_t i = 0; i < deferred.count(); ++i) {
        std::uint64_t line = deferred[i].word & to.mask;
        while (!put(to, line, deferred[i])) {
            line = (line + 1) & to.mask;
        }
    }
    for (std::size_t side = 0; side <= NarrowLine::kErased; ++side) {
        to.data[side].tickets[NarrowLine::kSpareLane] =
            from.data[side].tickets[NarrowLine::kSpareLane];
    }
    return true;
}

void Index::place(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
                  std::uint64_t count, Index const& other) noexcept {
    // Wide slots have half a hash, which is not enough to place them by.
    if (cpu::is_narrow(layout_.bytes) && other.lines_ <= lines_ &&
        lines_ / other.lines_ <= kMostParts && spread(other)) {
        occupied_ = count;
        return;
    }
    clear();
    place(key_buffer, live, top, count);
}

}  // namespace tensorhash::table
