// Who leaves next: the entries of a full table that rank lowest, kept from batch to batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace tensorhash::table {

/// What an entry is compared by: its score, then its last use, which no two entries share.
struct Rank {
    std::int64_t score;
    std::uint64_t use;
    friend auto operator<=>(Rank const&, Rank const&) = default;
};

/// A heap of the lowest entries, refilled when it runs empty: an eighth of the table at a time, so that an eviction costs
/// little however large the table. Entries used since are noticed when they come up: their rank is another then.
class Victims {
public:
    struct Item {
        Rank rank;
        std::uint32_t number;
    };

    /// The lowest of the entries 0 .. count-1; `rank_of(number)` is what they rank now.
    template <class RankOf>
    Item const& lowest(std::uint32_t count, RankOf const& rank_of) {
        for (;;) {
            while (!heap_.empty() && rank_of(heap_.front().number) != heap_.front().rank) {
                take_lowest();
            }
            if (!heap_.empty()) {
                return heap_.front();
            }
            refill(count, rank_of);
        }
    }
    void take_lowest() {
        std::pop_heap(heap_.begin(), heap_.end(), above);
        heap_.pop_back();
    }
    /// An entry has a new rank.
    void add(Rank rank, std::uint32_t number) {
        if (rank < bound_) {
            heap_.push_back({rank, number});
            std::push_heap(heap_.begin(), heap_.end(), above);
        }
    }
    /// Entries have new ranks, of which this score is the lowest, and were not added.
    void changed(std::int64_t lowest_score) noexcept {
        if (lowest_score <= bound_.score) {
            forget();
        }
    }
    void forget() noexcept {
        heap_.clear();
        bound_ = kNothing;
    }

private:
    static constexpr Rank kNothing{std::numeric_limits<std::int64_t>::min(), 0};
    static bool above(Item const& a, Item const& b) { return a.rank > b.rank; }

    template <class RankOf>
    void refill(std::uint32_t count, RankOf const& rank_of) {
        std::vector<Item> all(count);
        for (std::uint32_t number = 0; number < count; ++number) {
            all[number] = {rank_of(number), number};
        }
        auto const below = [](Item const& a, Item const& b) { return a.rank < b.rank; };
        std::size_t const keep = std::min<std::size_t>(count, std::max(count / 8, 1024u));
        std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(keep - 1),
                         all.end(), below);
        bound_ = all[keep - 1].rank;
        heap_.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(keep));
        std::make_heap(heap_.begin(), heap_.end(), above);
    }

    std::vector<Item> heap_;
    Rank bound_ = kNothing;  // every entry that ranks up to here is in the heap
};

}  // namespace tensorhash::table
