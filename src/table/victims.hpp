// Who leaves next: the entries of a full table that rank lowest, kept from batch to batch.
#pragma once

#include <algorithm>
#include <cstddef>
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

/// The lowest entries, sorted, and a heap of those that came to rank low since. When both run empty the table is searched
/// for an eighth of it or more, so that an eviction costs little however large the table. Entries used since are noticed
/// when they come up: their rank is another then.
class Victims {
public:
    struct Item {
        Rank rank;
        std::uint32_t number;
    };

    /// The lowest of the entries 0 .. count-1; `rank_of(number)` is what they rank now. About so many are `wanted`.
    template <class RankOf>
    Item const& lowest(std::uint32_t count, std::size_t wanted, RankOf const& rank_of) {
        auto const is_stale = [&](Item const& item) { return rank_of(item.number) != item.rank; };
        for (;;) {
            while (next_ < sorted_.size() && is_stale(sorted_[next_])) {
                ++next_;
            }
            while (!added_.empty() && is_stale(added_.front())) {
                take_added();
            }
            if (next_ < sorted_.size() || !added_.empty()) {
                return lowest_is_added() ? added_.front() : sorted_[next_];
            }
            refill(count, wanted, rank_of);
        }
    }
    /// Takes out what lowest() gave.
    void take_lowest() {
        if (lowest_is_added()) {
            take_added();
        } else {
            ++next_;
        }
    }
    /// An entry has a new rank.
    void add(Rank rank, std::uint32_t number) {
        if (rank < bound_) {
            added_.push_back({rank, number});
            std::push_heap(added_.begin(), added_.end(), above);
        }
    }
    /// Entries have new ranks, of which this score is the lowest, and were not added.
    void changed(std::int64_t lowest_score) noexcept {
        if (lowest_score <= bound_.score) {
            forget();
        }
    }
    void forget() noexcept {
        sorted_.clear();
        added_.clear();
        next_ = 0;
        bound_ = kNothing;
    }

private:
    static constexpr Rank kNothing{std::numeric_limits<std::int64_t>::min(), 0};
    static bool above(Item const& a, Item const& b) { return a.rank > b.rank; }
    static bool below(Item const& a, Item const& b) { return a.rank < b.rank; }

    bool lowest_is_added() const {
        return next_ == sorted_.size() ||
               (!added_.empty() && below(added_.front(), sorted_[next_]));
    }
    void take_added() {
        std::pop_heap(added_.begin(), added_.end(), above);
        added_.pop_back();
    }

    template <class RankOf>
    void refill(std::uint32_t count, std::size_t wanted, RankOf const& rank_of) {
        next_ = 0;
        sorted_.resize(count);
        for (std::uint32_t number = 0; number < count; ++number) {
            sorted_[number] = {rank_of(number), number};
        }
        std::size_t const keep =
            std::min<std::size_t>(count, std::max<std::size_t>({count / 8, 1024, wanted}));
        auto const end = sorted_.begin() + static_cast<std::ptrdiff_t>(keep);
        std::nth_element(sorted_.begin(), end - 1, sorted_.end(), below);
        std::sort(sorted_.begin(), end, below);
        sorted_.resize(keep);
        bound_ = sorted_.back().rank;
    }

    std::vector<Item> sorted_;
    std::size_t next_ = 0;     // of `sorted_`: what is before was taken
    std::vector<Item> added_;  // a heap
    Rank bound_ = kNothing;    // every entry that ranks up to here is in one of the two
};

}  // namespace tensorhash::table
