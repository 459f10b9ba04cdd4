// Eviction candidates: the lowest-ranked entries of a full table, kept from batch to batch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tensorhash::table {

/// The order of eviction: by score, then by last use, which no two entries share.
struct Rank {
    std::int64_t score;
    std::uint64_t use;
    friend auto operator<=>(Rank const&, Rank const&) = default;
};

/// The lowest-ranked entries, sorted, and a heap of entries that got a low rank later. When both
/// are empty, a scan of the table collects an eighth of it or more, so that evictions stay cheap in
/// large tables. An entry with an outdated rank is skipped when it comes up.
class Victims {
public:
    struct Item {
        Rank rank;
        std::uint32_t buf_index;
    };

    /// The lowest of the entries 0 .. count-1; rank_of(buf_index) is an entry's current rank. About
    /// `wanted` of them will be taken.
    template <class RankOf>
    Item const& lowest(std::uint32_t count, std::size_t wanted, RankOf const& rank_of) {
        auto const is_stale = [&](Item const& item) {
            return rank_of(item.buf_index) != item.rank;
        };
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
    /// Removes the entry that lowest() returned.
    void take_lowest() {
        if (lowest_is_added()) {
            take_added();
        } else {
            ++next_;
        }
    }
    /// Call this when an entry gets a new rank.
    void add(Rank rank, std::uint32_t buf_index) {
        if (rank < bound_) {
            added_.push_back({rank, buf_index});
            std::push_heap(added_.begin(), added_.end(), above);
        }
    }
    /// Call this when entries got new ranks without add().
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
        for (std::uint32_t buf_index = 0; buf_index < count; ++buf_index) {
            sorted_[buf_index] = {rank_of(buf_index), buf_index};
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
    std::size_t next_ = 0;     // items of sorted_ before this are used up
    std::vector<Item> added_;  // a heap
    Rank bound_ = kNothing;    // every entry that ranks up to here is in one of the two
};

}  // namespace tensorhash::table
