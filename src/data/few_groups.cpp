// Threads take chunks of rows in order. Each numbers the keys of its chunks with tables of its own.
// Turns pass from chunk to chunk: one to number new keys in order of first occurrence, and one per
// fold to add rows in order. So several threads number, while another one adds.
#include "data/few_groups.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <vector>

#include "cpu/direct_words.hpp"
#include "cpu/partition.hpp"
#include "cpu/word_numbers.hpp"
#include "runtime/parallel.hpp"
#include "runtime/turns.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::data {
namespace {

/// Rows of a block: their keys, words and numbers stay in the first cache beside the table.
constexpr std::size_t kBlockRows = 512;

/// Rows of a chunk: enough to make up for a turn, few enough that their numbers stay in cache.
constexpr std::size_t kMostChunkRows = std::size_t{1} << 15;
constexpr std::size_t kFewestChunkRows = std::size_t{1} << 12;
constexpr std::size_t kChunksPerThread = 8;

std::size_t chunk_rows_for(std::size_t rows) {
    std::size_t const wanted =
        rows / (kChunksPerThread * static_cast<std::size_t>(num_threads())) + 1;
    return std::clamp(wanted, kFewestChunkRows, kMostChunkRows);
}

/// The words that a thread has met, and their numbers among all threads.
class OwnWords {
public:
    OwnWords(std::size_t expected, std::size_t most) : direct_(expected, most), most_(most) {
        table_.reset(most);  // it never grows: a thread with a turn must not fail
    }

    /// The numbers of all words but new ones. False if there are more than `most`.
    bool number(std::uint64_t const* words, std::uint32_t first_row, std::size_t count,
                std::uint32_t* numbers) {
        std::size_t done = direct_.recall(words, count, numbers);
        while (done < count) {
            std::uint32_t own;
            auto const row = first_row + static_cast<std::uint32_t>(done);
            if (table_.number(words + done, nullptr, row, 1, &own, most_) == 0) return false;
            if (own == direct_.count()) direct_.add(words[done], 0);
            numbers[done++] = direct_.number(own);
            done += direct_.recall(words + done, count - done, numbers + done);
        }
        return true;
    }

    bool has_new() const { return known_ < table_.count(); }

    /// Numbers the new words in `all`. False if it has more than `most` then.
    bool settle(cpu::WordNumbers& all) {
        for (; known_ < table_.count(); ++known_) {
            std::uint32_t number;
            if (all.number(&table_.words()[known_], &table_.rows()[known_], 0, 1, &number, most_) ==
                0) {
                return false;
            }
            direct_.renumber(known_, number);
        }
        return true;
    }

private:
    cpu::WordNumbers table_;   // of its own, in order of first occurrence
    cpu::DirectWords direct_;  // the same words, with their numbers among all threads
    std::size_t most_;
    std::size_t known_ = 0;  // words that are numbered; a new one has number 0
};

/// One batch, on all threads.
class Relay {
public:
    Relay(Plan const* plan, std::vector<Column> const* columns, KeyRows const& keys,
          step::HashSecret const& secret, std::size_t most)
        : plan_(plan), columns_(columns), keys_(keys.narrow()), rows_(keys.rows), secret_(secret),
          chunk_rows_(chunk_rows_for(rows_)),
          fold_turns_(plan == nullptr ? 0 : plan->folds().size()) {
        all_.reset(most);
        if (plan != nullptr) states_ = new_states(*plan, most);
    }

    /// False if there are too many groups. Writes the number of every row unless `numbers` is null.
    bool run(double groups, std::size_t most, std::uint32_t* numbers) {
        std::size_t const chunks = (rows_ + chunk_rows_ - 1) / chunk_rows_;
        std::size_t const tasks = std::min(chunks, static_cast<std::size_t>(num_threads()));
        std::vector<OwnWords> words;
        words.reserve(tasks);
        for (std::size_t i = 0; i < tasks; ++i) {
            words.emplace_back(static_cast<std::size_t>(groups), most);
        }
        runtime::Block room(numbers == nullptr ? tasks * chunk_rows_ * sizeof(std::uint32_t) : 0);
        auto* const of_chunks = reinterpret_cast<std::uint32_t*>(room.data());
        runtime::run_tasks(tasks, [&](std::size_t task) {
            for (std::size_t chunk = take(); chunk < chunks; chunk = take()) {
                work(words[task], static_cast<std::uint32_t>(chunk),
                     numbers == nullptr ? of_chunks + task * chunk_rows_
                                        : numbers + chunk * chunk_rows_);
            }
        });
        return !gave_up_.load(std::memory_order_relaxed);
    }

    cpu::WordNumbers const& words() const { return all_; }
    States const& states() const { return states_; }

private:
    /// Relaxed: the number only picks a chunk.
    std::size_t take() { return next_.fetch_add(1, std::memory_order_relaxed); }

    /// Passes every turn in any case: other threads wait for it.
    void work(OwnWords& words, std::uint32_t chunk, std::uint32_t* numbers) noexcept {
        std::size_t const begin = chunk * chunk_rows_;
        std::size_t const end = std::min(rows_, begin + chunk_rows_);
        // A hint: the result is dropped in any case.
        bool fits = !gave_up_.load(std::memory_order_relaxed) && number(words, begin, end, numbers);
        number_turn_.await(chunk);
        bool const has_new = fits && words.has_new();
        if (has_new) fits = settle(words);
        number_turn_.pass(chunk);
        // New words had no number before. Another thread may have written more of them meanwhile.
        if (fits && has_new) fits = number(words, begin, end, numbers);
        if (!fits) gave_up_.store(true, std::memory_order_relaxed);  // read after the tasks join
        for (std::size_t which = 0; which < fold_turns_.size(); ++which) {
            fold_turns_[which].await(chunk);
            if (fits) add(which, begin, end, numbers);
            fold_turns_[which].pass(chunk);
        }
    }

    bool number(OwnWords& words, std::size_t begin, std::size_t end, std::uint32_t* numbers) const {
        std::array<std::uint64_t, kBlockRows> mixed;
        for (std::size_t row = begin; row < end; row += kBlockRows) {
            std::size_t const count = std::min(kBlockRows, end - row);
            cpu::group_loops().mix(keys_, secret_, row, count, mixed.data());
            // Between two blocks the processor forgets that it was reading the keys in order.
            std::size_t const next = std::min(kBlockRows, end - row - count);
            cpu::prefetch_bytes(keys_.data + (row + count) * keys_.bytes, next * keys_.bytes);
            if (!words.number(mixed.data(), static_cast<std::uint32_t>(row), count,
                              numbers + (row - begin))) {
                return false;
            }
        }
        return true;
    }

    /// Numbers the new words and starts the states of their groups.
    bool settle(OwnWords& words) {
        std::size_t const before = all_.count();
        if (!words.settle(all_)) return false;
        for (std::size_t which = 0; which < states_.size(); ++which) {
            auto* const states = static_cast<std::uint64_t*>(states_[which].data());
            plan_->folds()[which].ops().start(states, before, all_.count());
        }
        return true;
    }

    void add(std::size_t which, std::size_t begin, std::size_t end, std::uint32_t const* numbers) {
        auto* const states = static_cast<std::uint64_t*>(states_[which].data());
        add_rows(plan_->folds()[which], *columns_, {begin, end, numbers, 0}, states);
    }

    Plan const* plan_;
    std::vector<Column> const* columns_;
    cpu::NarrowKeys keys_;
    std::size_t rows_;
    step::HashSecret secret_;
    std::size_t chunk_rows_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> gave_up_{false};
    runtime::Turn number_turn_;
    std::vector<runtime::Turn> fold_turns_;
    cpu::WordNumbers all_;  // of the thread with the turn to number
    States states_;         // one for each fold: of the thread with its turn
};

/// The first `groups` states of every fold.
States trimmed(Plan const& plan, States const& states, std::size_t groups) {
    States out;
    for (std::size_t which = 0; which < states.size(); ++which) {
        std::size_t const words = groups * plan.folds()[which].ops().words;
        out.push_back(Tensor::empty(with_rows(words, {}), Dtype::UInt64));
        std::copy_n(static_cast<std::uint64_t const*>(states[which].data()), words,
                    static_cast<std::uint64_t*>(out.back().data()));
    }
    return out;
}

}  // namespace

std::optional<Reduced> reduce_few(Plan const& plan, std::vector<Column> const& columns,
                                  KeyRows const& keys, step::HashSecret const& secret,
                                  double groups, std::size_t most) {
    Relay relay(&plan, &columns, keys, secret, most);
    if (!relay.run(groups, most, nullptr)) return std::nullopt;
    Reduced out{first_rows_of(relay.words()), {}};
    out.states = trimmed(plan, relay.states(), out.groups());
    return out;
}

std::optional<Numbering> number_few(KeyRows const& keys, step::HashSecret const& secret,
                                    double groups, std::size_t most) {
    Relay relay(nullptr, nullptr, keys, secret, most);
    Numbering out{runtime::Block(keys.rows * sizeof(std::uint32_t)), {}};
    if (!relay.run(groups, most, reinterpret_cast<std::uint32_t*>(out.numbers.data()))) {
        return std::nullopt;
    }
    out.first_rows = first_rows_of(relay.words());
    return out;
}

}  // namespace tensorhash::data
