// The same steps by a tile of lanes: N lanes share one row, read its bucket with one access and
// decide together. The steps stay as they are: they are templates over how memory is accessed
// (`Access`) and how a bucket is read (`Snapshot`).
#pragma once

#include "device/grid.hpp"
#include "tensorhash/step/atomic.hpp"
#include "tensorhash/step/snapshot.hpp"

namespace tensorhash::device {

/// Lane 0 accesses memory and tells the others what it saw. Lanes that saw different states would
/// take different ways.
template <std::uint32_t N, class Access>
struct ByTile {
    static constexpr bool kShared = Access::kShared;
    using Lanes = Tile<N>;

    template <class T>
    static TH_STEP T load(T const* p) {
        if constexpr (kShared) {
            T seen = 0;
            if (Lanes::rank() == 0) {
                seen = Access::load(p);
            }
            return Lanes::shuffle(seen, 0);
        } else {
            return Access::load(p);  // no thread writes, so all lanes see the same
        }
    }
    template <class T>
    static TH_STEP void store(T* p, T value) {
        if (Lanes::rank() == 0) {
            Access::store(p, value);
        }
    }
    static TH_STEP std::uint32_t raise(std::uint32_t* p, std::uint32_t value) {
        std::uint32_t seen = 0;
        if (Lanes::rank() == 0) {
            seen = Access::raise(p, value);
        }
        return Lanes::shuffle(seen, 0);
    }
    template <class T>
    static TH_STEP bool cas(T* p, T& expected, T desired) {
        bool done = false;
        if (Lanes::rank() == 0) {
            done = Access::cas(p, expected, desired);
        }
        expected = Lanes::shuffle(expected, 0);
        return (Lanes::ballot(done) & 1) != 0;
    }
};

/// The eight words of a bucket, spread over the lanes: word i is with lane i / kEach.
template <std::uint32_t N, class Access>
class TileWords {
public:
    static_assert(N == 4 || N == 8);
    static constexpr std::uint32_t kEach = 8 / N;
    using Lanes = Tile<N>;

    TH_STEP explicit TileWords(void const* bucket) {
        auto const* const words = static_cast<std::uint64_t const*>(bucket) + Lanes::rank() * kEach;
        if constexpr (kEach == 1) {
            words_[0] = Access::load(words);
        } else {
            step::WordPair const pair = Access::load_pair(words);
            words_[0] = pair.first;
            words_[1] = pair.second;
        }
    }

    /// One bit per word that fulfils `test`.
    template <class Test>
    TH_STEP std::uint32_t where(Test const& test) const {
        if constexpr (kEach == 1) {
            return Lanes::ballot(test(words_[0]));
        } else {
            std::uint32_t const even = Lanes::ballot(test(words_[0]));
            return spread(even) | spread(Lanes::ballot(test(words_[1]))) << 1;
        }
    }

private:
    /// Bits 0 to 3 move to bits 0, 2, 4 and 6.
    static TH_STEP std::uint32_t spread(std::uint32_t bits) {
        bits = (bits | bits << 2) & 0x33;
        return (bits | bits << 1) & 0x55;
    }
    std::uint64_t words_[kEach];
};

}  // namespace tensorhash::device

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

template <std::uint32_t N, class Access>
class NarrowSnapshot<device::ByTile<N, Access>> {
public:
    TH_STEP explicit NarrowSnapshot(NarrowBucket const& bucket) : words_(&bucket) {}
    TH_STEP std::uint32_t with_word(std::uint64_t word) const {
        // Words from kLanes on are tickets.
        return words_.where([&](std::uint64_t seen) { return seen == word; }) &
               ((1u << NarrowBucket::kLanes) - 1);
    }
    TH_STEP std::uint32_t empty() const { return with_word(NarrowBucket::kEmpty); }
    TH_STEP std::uint32_t erased() const { return with_word(NarrowBucket::kErased); }

private:
    device::TileWords<N, Access> words_;
};

template <std::uint32_t N, class Access>
class WideSnapshot<device::ByTile<N, Access>> {
public:
    TH_STEP explicit WideSnapshot(WideBucket const& bucket) : words_(&bucket) {}
    TH_STEP bool has_fingerprint(std::uint64_t hash) const { return with_fingerprint(hash) != 0; }
    TH_STEP std::uint32_t with_fingerprint(std::uint64_t hash) const {
        return words_.where([&](std::uint64_t seen) { return ((seen & slot_) ^ hash) >> 32 == 0; });
    }
    TH_STEP std::uint32_t overflow_bits() const {
        return words_.where([](std::uint64_t seen) { return seen >= WideBucket::kOverflow; });
    }
    TH_STEP WideSnapshot without_overflow() const {
        WideSnapshot slots = *this;
        slots.slot_ = ~WideBucket::kOverflow;
        return slots;
    }
    TH_STEP std::uint32_t empty() const { return with_slot(WideBucket::kEmpty); }
    TH_STEP std::uint32_t erased() const { return with_slot(WideBucket::kErased); }

private:
    TH_STEP std::uint32_t with_slot(std::uint64_t slot) const {
        return words_.where([&](std::uint64_t seen) { return (seen & slot_) == slot; });
    }
    device::TileWords<N, Access> words_;
    std::uint64_t slot_ = ~0ull;  // the bits of a word that are its slot
};

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
