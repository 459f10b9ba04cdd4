// Core: keys, index, live bits and free stack of a table on a device. The host launches and rarely
// asks: everything that one batch leaves for the next is in State, on the device.
// Over 400 lines: one class, with the buffers that all of its verbs share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "backend/capacities.hpp"
#include "backend/table_errors.hpp"
#include "device/array.hpp"
#include "device/column.hpp"
#include "device/index.hpp"
#include "device/queue.hpp"
#include "device/shrink.hpp"
#include "device/state.hpp"
#include "device/transfers.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::device {

/// Where a call writes its results, on the device.
struct Results {
    std::uint32_t* indices;
    unsigned char* mask;
};

template <class Queue, std::uint32_t Lanes = 1>
class Core {
public:
    using TableIndex = Index<Queue, Lanes>;

    /// Memory that has a size per buffer row.
    struct Buffers {
        std::uint64_t capacity;
        Column<Queue> keys;
        Array<Queue, std::uint32_t> live;
        Array<Queue, std::uint32_t> free;
    };
    /// A prepared insert: all memory is there, but no key is added yet.
    struct Insertion {
        BatchView batch;
        std::uint32_t rows = 0;
        Array<Queue, std::uint32_t> positions;
        Array<Queue, std::uint32_t> counts;
        std::optional<TableIndex> claimed_in;   // has the claims if the table's index is too small
        std::optional<TableIndex> replacement;  // the right size for the new capacity, still empty
        std::optional<Buffers> buffers;         // of the new capacity
        std::uint64_t capacity = 0;             // after the insert
        std::uint64_t claimed = 0;              // new keys, if the host had to ask, else rows
    };

    Core(Queue& queue, step::KeyFormat format, std::uint64_t capacity, std::uint64_t seed)
        : queue_(&queue), format_(format), buffers_(make_buffers(capacity)),
          index_(queue, format, buckets_for(format, capacity), seed),
          state_(Array<Queue, State>::zeros(queue, 1)) {}

    std::uint64_t capacity() const noexcept { return buffers_.capacity; }
    Buffers const& buffers() const noexcept { return buffers_; }
    TableIndex const& index() const noexcept { return index_; }
    State* state() const noexcept { return state_.data(); }

    /// Reads the state back: the one thing that waits. Throws CorruptTable if a probe had no end.
    State read_state() const {
        State const now = read_one(*queue_, state_.data());
        if (now.broken != 0) {
            throw CorruptTable(
                "a probe of this table found no end: its index is corrupt. Copy what is left with "
                "items() and build a new table");
        }
        return now;
    }

    void find(unsigned char const* keys, std::uint32_t rows, Results out) const {
        index_.find(keys_data(), {keys, 0, nullptr, out.indices, out.mask}, state(), rows);
    }

    void insert(unsigned char const* keys, std::uint32_t rows, Results out) {
        Insertion insertion = prepare_insert(keys, rows, out);
        finish_insert(std::move(insertion));
    }

    /// Claims slots and gets all memory. If it throws, the table is unchanged.
    Insertion prepare_insert(unsigned char const* keys, std::uint32_t rows, Results out) {
        Insertion insertion;
        insertion.rows = rows;
        insertion.positions = {*queue_, rows};
        insertion.counts = {*queue_, segments_of(rows)};
        insertion.batch = {keys, 0, insertion.positions.data(), out.indices, out.mask};
        insertion.capacity = capacity();
        insertion.claimed = rows;
        if (has_room(insertion)) {
            index_.claim(keys_data(), insertion.batch, state(), rows);
        } else {
            claim_beside(insertion);
        }
        return insertion;
    }

    void finish_insert(Insertion&& insertion) noexcept {
        if (insertion.claimed_in) {
            index_ = std::move(*insertion.claimed_in);
            queue_->launch(1, FinishRebuild{state()});
            most_occupied_ = most_top_;
        }
        if (insertion.buffers) {
            adopt(std::move(*insertion.buffers));
        }
        BatchView const& batch = insertion.batch;
        std::uint32_t const rows = insertion.rows;
        index_.publish(keys_data(), batch, state(), buffers_.free.data(), insertion.counts.data(),
                       rows);
        queue_->launch(rows,
                       FinishRows{batch, state(), keys_data(), buffers_.live.data(), format_.bytes,
                                  piece_of(format_.bytes, batch.keys, keys_data()), rows});
        queue_->launch(1, FinishInsert{state()});
        most_top_ = std::min(most_top_ + insertion.claimed, capacity());
        most_occupied_ += insertion.claimed;
        if (insertion.replacement) {
            replace_index(std::move(*insertion.replacement));
        }
    }

    /// Memory to erase a batch.
    struct Erasing {
        BatchView batch;
        std::uint32_t rows = 0;
        Array<Queue, std::uint32_t> positions;
        Array<Queue, std::uint32_t> indices;
        Array<Queue, std::uint32_t> counts;
    };
    Erasing prepare_erase(unsigned char const* keys, std::uint32_t rows,
                          unsigned char* mask) const {
        Erasing erasing;
        erasing.rows = rows;
        erasing.positions = {*queue_, rows};
        erasing.indices = {*queue_, rows};
        erasing.counts = {*queue_, segments_of(rows)};
        erasing.batch = {keys, 0, erasing.positions.data(), erasing.indices.data(), mask};
        return erasing;
    }
    void finish_erase(Erasing const& erasing) noexcept {
        BatchView const& batch = erasing.batch;
        std::uint32_t const rows = erasing.rows;
        std::uint32_t* const counts = erasing.counts.data();
        index_.find(keys_data(), batch, state(), rows);
        queue_->launch(rows, ClearLive{batch, state(), buffers_.live.data(), rows});
        index_.release(keys_data(), batch, state(), counts, rows);
        queue_->scan(counts, erasing.counts.size(), static_cast<std::uint32_t*>(nullptr));
        queue_->launch(rows, PushFreed{batch, state(), counts, buffers_.free.data(), rows});
        queue_->launch(1, FinishErase{state()});
    }
    void erase(unsigned char const* keys, std::uint32_t rows, unsigned char* mask) {
        finish_erase(prepare_erase(keys, rows, mask));
    }

    /// Undoes prepare_insert().
    void cancel(Insertion&& insertion) noexcept {
        if (!insertion.claimed_in) {
            index_.release_claims(keys_data(), insertion.batch, state(), insertion.rows);
        }
        queue_->launch(1, ForgetClaims{state()});
    }

    /// Memory for a larger capacity; nothing changes yet.
    struct Growth {
        std::optional<Buffers> buffers;
        std::optional<TableIndex> index;  // still empty
    };
    Growth prepare_reserve(std::uint64_t larger) {
        Growth growth;
        if (larger > capacity()) {
            most_top_ = read_state().top;
            growth.buffers = make_buffers(larger);
            std::uint64_t const buckets = buckets_for(format_, larger);
            if (buckets != index_.buckets()) {
                growth.index.emplace(*queue_, format_, buckets, index_.seed());
            }
        }
        return growth;
    }
    void finish_reserve(Growth&& growth) noexcept {
        if (growth.buffers) {
            adopt(std::move(*growth.buffers));
        }
        if (growth.index) {
            replace_index(std::move(*growth.index));
        }
    }

    /// One past the last live index. Waits.
    std::uint32_t end_of_live(std::uint32_t top) const {
        auto const end = Array<Queue, std::uint32_t>::zeros(*queue_, 1);
        std::uint64_t const words = (std::uint64_t{top} + 31) / 32;
        queue_->launch(words, FindEndOfLive{buffers_.live.data(), end.data(), words});
        return read_one(*queue_, end.data());
    }
    /// Memory for a capacity of `end`, with the free indices below it; nothing changes yet.
    Growth prepare_shrink(State const& now, std::uint32_t end) const {
        Growth room;
        std::uint32_t const entries = now.top - now.free;
        if (end < capacity()) {
            room.buffers = make_buffers(end);
            keep_free(now.free, end, end - entries, room.buffers->free.data());
        }
        std::uint64_t const buckets = buckets_for(format_, entries);
        if (buckets < index_.buckets()) {
            room.index.emplace(*queue_, format_, buckets, index_.seed());
        }
        return room;
    }
    void finish_shrink(Growth&& room, std::uint32_t end) noexcept {
        if (room.buffers) {
            buffers_.keys.copy_to(room.buffers->keys, end);
            queue_->copy(room.buffers->live.data(), buffers_.live.data(),
                         room.buffers->live.bytes(), Copy::Within);
            buffers_ = std::move(*room.buffers);
            queue_->launch(1, FinishShrink{state(), end});
            most_top_ = end;
        }
        if (room.index) {
            replace_index(std::move(*room.index));
        }
    }

    /// Takes buffers and an empty index for `entries` live entries without gaps.
    void finish_compact(Buffers&& moved, TableIndex&& empty, std::uint64_t entries) noexcept {
        buffers_ = std::move(moved);
        queue_->launch(1, FinishCompact{state()});
        most_top_ = entries;
        queue_->launch((entries + 31) / 32, SetLive{state(), buffers_.live.data()});
        replace_index(std::move(empty));
    }

    /// Takes what a CPU table had: keys are in the buffers, `live` and `free` too.
    void restore(std::uint32_t top, std::uint32_t free) {
        State restored{};
        restored.top = top;
        restored.free = free;
        write_one(*queue_, state_.data(), restored);
        index_.clear();
        most_top_ = top;
        index_.place(keys_data(), buffers_.live.data(), state(), top);
        queue_->launch(1, FinishRebuild{state()});
        most_occupied_ = top;
    }

    /// Becomes a copy of a table with the same format and capacity.
    void copy_from(Core const& other) {
        other.buffers_.keys.copy_to(buffers_.keys, capacity());
        auto const copy = [&](auto const& to, auto const& from) {
            queue_->copy(to.data(), from.data(), from.bytes(), Copy::Within);
        };
        copy(buffers_.live, other.buffers_.live);
        copy(buffers_.free, other.buffers_.free);
        copy(state_, other.state_);
        index_.copy_from(other.index_);
        most_top_ = other.most_top_;
        most_occupied_ = other.most_occupied_;
    }

    /// Live entries are below this. Known without asking.
    std::uint64_t most_top() const noexcept { return most_top_; }
    Buffers make_buffers(std::uint64_t capacity) const {
        using Words = Array<Queue, std::uint32_t>;
        return {capacity, Column<Queue>(*queue_, format_.bytes, capacity),
                Words::zeros(*queue_, (capacity + 31) / 32), Words::zeros(*queue_, capacity)};
    }
    TableIndex make_index(std::uint64_t capacity) const {
        return {*queue_, format_, buckets_for(format_, capacity), index_.seed()};
    }

    void clear() noexcept {
        index_.clear();
        buffers_.live.zero();
        state_.zero();
        most_top_ = 0;
        most_occupied_ = 0;
    }

private:
    unsigned char* keys_data() const noexcept { return buffers_.keys.data(); }

    bool fits(std::uint64_t added, std::uint64_t free) const {
        std::uint64_t const fresh = added - std::min(added, free);
        return most_top_ + fresh <= capacity() && most_occupied_ + added <= index_.limit();
    }

    /// Asks the device as little as possible: first what the host knows, then the exact state, then
    /// how many rows have no entry yet.
    bool has_room(Insertion const& insertion) {
        if (fits(insertion.rows, 0)) {
            return true;
        }
        now_ = read_state();
        most_top_ = now_.top;
        most_occupied_ = now_.occupied;
        if (fits(insertion.rows, now_.free)) {
            return true;
        }
        missing_ = insertion.rows;
        if (now_.top != now_.free) {
            missing_ = count_missing(insertion);
        }
        return fits(missing_, now_.free);
    }

    std::uint64_t count_missing(Insertion const& insertion) {
        auto const count = Array<Queue, std::uint32_t>::zeros(*queue_, 1);
        index_.find(keys_data(), insertion.batch, state(), insertion.rows);
        queue_->launch(insertion.rows,
                       CountMissing{insertion.batch.mask, count.data(), insertion.rows});
        return read_one(*queue_, count.data());
    }

    /// Claims in a second index. Their count tells how much the table must grow.
    void claim_beside(Insertion& insertion) {
        std::uint64_t const entries = now_.top - now_.free;
        TableIndex beside(*queue_, format_, buckets_for(format_, entries + missing_),
                          index_.seed());
        beside.place(keys_data(), buffers_.live.data(), state(), now_.top);
        beside.claim(keys_data(), insertion.batch, state(), insertion.rows);
        std::uint64_t const claimed = read_state().claimed;
        try {
            std::uint64_t const needed =
                now_.top + claimed - std::min<std::uint64_t>(claimed, now_.free);
            grow(insertion, needed, beside.buckets());
        } catch (...) {
            queue_->launch(1, ForgetClaims{state()});
            throw;
        }
        insertion.claimed = claimed;
        insertion.claimed_in = std::move(beside);
    }

    void grow(Insertion& insertion, std::uint64_t needed, std::uint64_t buckets_beside) {
        if (needed > kMaxEntries) {
            backend::fail_too_many(needed);
        }
        insertion.capacity = backend::grown_capacity(capacity(), needed);
        if (insertion.capacity != capacity()) {
            insertion.buffers = make_buffers(insertion.capacity);
        }
        std::uint64_t const buckets = buckets_for(format_, insertion.capacity);
        if (buckets != buckets_beside) {
            insertion.replacement.emplace(*queue_, format_, buckets, index_.seed());
        }
    }

    /// Copies the `kept` free indices below `end`, of `free` in all, in their order.
    void keep_free(std::uint32_t free, std::uint32_t end, std::uint32_t kept,
                   std::uint32_t* to) const {
        if (kept == 0) {
            return;
        }
        std::uint32_t const* const stack = buffers_.free.data();
        IsBelow const is_below{stack, end};
        Array<Queue, std::uint32_t> ranks(*queue_, segments_of(free));
        Array<Queue, std::uint32_t> places(*queue_, kept);
        queue_->launch(free, CountChosen<IsBelow>{is_below, 0, free, ranks.data()});
        queue_->scan(ranks.data(), ranks.size(), static_cast<std::uint32_t*>(nullptr));
        queue_->launch(free,
                       ListChosen<IsBelow>{is_below, 0, free, ranks.data(), kept, places.data()});
        PieceGrid const grid{kept, sizeof(std::uint32_t), sizeof(std::uint32_t)};
        queue_->launch(grid.size(),
                       GatherRows{reinterpret_cast<unsigned char const*>(stack), places.data(),
                                  nullptr, nullptr, 0, reinterpret_cast<unsigned char*>(to), grid});
    }

    /// Copies the entries to larger buffers and takes them.
    void adopt(Buffers&& larger) noexcept {
        buffers_.keys.copy_to(larger.keys, most_top_);
        queue_->copy(larger.live.data(), buffers_.live.data(), buffers_.live.bytes(), Copy::Within);
        queue_->copy(larger.free.data(), buffers_.free.data(), buffers_.free.bytes(), Copy::Within);
        buffers_ = std::move(larger);
    }

    void replace_index(TableIndex&& empty) noexcept {
        index_ = std::move(empty);
        index_.place(keys_data(), buffers_.live.data(), state(), most_top_);
        queue_->launch(1, FinishRebuild{state()});
        most_occupied_ = most_top_;
    }

    Queue* queue_;
    step::KeyFormat format_;
    Buffers buffers_;
    TableIndex index_;
    Array<Queue, State> state_;
    // Upper bounds of State::top and State::occupied. Only calls that change the table refine them.
    std::uint64_t most_top_ = 0;
    std::uint64_t most_occupied_ = 0;
    State now_{};                // what has_room() read
    std::uint64_t missing_ = 0;  // rows without an entry, as far as has_room() asked
};

}  // namespace tensorhash::device
